"""BERT and ViT encoders as torch modules, in the forms that were measured.

`Shape` says how large, `Form` how it is computed: the type of products (FP8 casts both
operands), GELU fused, by the error function or spelled out, norms and GELU in float,
dropout, whether queries, keys and values have weights of their own, joined, or
products of their own, and whether queries are scaled or scores.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch

FP8 = torch.float8_e4m3fn


@dataclass(frozen=True)
class Shape:
    """Sizes of an encoder."""

    num_layers: int
    hidden: int
    heads: int
    sequence: int
    vocabulary: int = 30_522


class Masks(enum.Enum):
    """What keeps positions apart, and where it is made."""

    POSITIONS = "a number for each position, made at the start"
    PAIRS = "a number for each pair of positions, made at the start"
    PAIRS_BY_LAYER = "a number for each pair of positions, made by each layer"


@dataclass(frozen=True)
class Form:
    """How an encoder computes."""

    has_fp8: bool = False
    has_gelu: bool = True
    has_exact_gelu: bool = False
    has_float_norms: bool = False
    has_attention_bias: bool = True
    dropout: float = 0.0
    has_attention_dropout: bool = True
    has_separate_weights: bool = False
    has_separate_products: bool = False
    has_divided_scores: bool = True
    has_scaled_queries: bool = False
    masks: Masks = Masks.POSITIONS


class Product(nn.Module):
    """A linear layer, its product in FP8 if asked for."""

    weight: Tensor

    def __init__(
        self, inputs: int, outputs: int, form: Form, has_bias: bool = True
    ) -> None:
        super().__init__()
        self.has_fp8 = form.has_fp8
        self.bias = nn.Parameter(torch.zeros(outputs)) if has_bias else None
        weight = torch.zeros(inputs, outputs)
        if form.has_fp8:
            self.register_buffer("weight", weight.to(FP8))
        else:
            self.weight = nn.Parameter(weight)

    def forward(self, x: Tensor) -> Tensor:
        """Product and bias."""
        product = self._in_fp8(x) if self.has_fp8 else x @ self.weight
        return product if self.bias is None else product + self.bias

    def _in_fp8(self, x: Tensor) -> Tensor:
        rows = x.to(FP8).flatten(0, -2) @ self.weight
        return rows.to(x.dtype).unflatten(0, x.shape[:-1])


class JoinedProduct(nn.Module):
    """Three linear layers whose weights are joined for one product.

    As nlp/bert/pytorch/bert_fused_attention.py of graphcore/examples has it.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        """All three products, one beside the other."""
        parts = (self.query, self.key, self.value)
        weight = torch.cat([part.weight for part in parts])
        bias = torch.cat([part.bias for part in parts])
        return x @ weight.transpose(-2, -1) + bias


class Products(nn.Module):
    """Three linear layers, each with a product of its own."""

    def __init__(self, size: int, form: Form) -> None:
        super().__init__()
        self.query = Product(size, size, form)
        self.key = Product(size, size, form)
        self.value = Product(size, size, form)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values."""
        return self.query(x), self.key(x), self.value(x)


def _attention_inputs(size: int, form: Form) -> nn.Module:
    if form.has_separate_products:
        return Products(size, form)
    if form.has_separate_weights:
        return JoinedProduct(size)
    return Product(size, 3 * size, form, form.has_attention_bias)


class Half(nn.Module):
    """Half a layer: what it computes is added to what it reads, then normalised."""

    def __init__(self, shape: Shape, form: Form) -> None:
        super().__init__()
        self.form = form
        self.norm = nn.LayerNorm(shape.hidden)

    def _added(self, x: Tensor, change: Tensor) -> Tensor:
        x, norm = x + self._drop(change), self.norm
        if not self.form.has_float_norms:
            return norm(x)
        scale, shift = norm.weight.float(), norm.bias.float()
        return F.layer_norm(x.float(), x.shape[-1:], scale, shift).to(x.dtype)

    def _drop(self, x: Tensor) -> Tensor:
        rate = self.form.dropout
        return F.dropout(x, rate, training=True) if rate else x


class Attention(Half):
    """The half of a layer that mixes positions."""

    def __init__(self, shape: Shape, form: Form) -> None:
        super().__init__(shape, form)
        size = shape.hidden
        self.heads = shape.heads
        self.qkv = _attention_inputs(size, form)
        self.project = Product(size, size, form, form.has_attention_bias)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """The hidden states, each with what it took from others."""
        return self._added(x, self.project(self._attend(x, mask)))

    def _attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        size = x.shape[-1]
        q, k, v = self._by_head(x)
        scores = self._scores(q, k.transpose(-1, -2), math.sqrt(size // self.heads))
        scores = scores if mask is None else scores + self._penalty(mask, scores.dtype)
        shares = scores.softmax(-1)
        shares = self._drop(shares) if self.form.has_attention_dropout else shares
        mixed = shares @ v
        return mixed.transpose(1, 2).reshape(x.shape)

    def _penalty(self, mask: Tensor, dtype: torch.dtype) -> Tensor:
        """What is added to scores; 0 where the numbers of two positions are equal."""
        if self.form.masks is not Masks.PAIRS_BY_LAYER:
            return mask
        # As the op AttentionMask of graphcore/examples nlp/bert/popart/custom_ops.
        number = mask.to(dtype)
        apart = (number[:, :, None] - number[:, None, :]).abs().tanh()
        return (apart * -10_000.0)[:, None]

    def _scores(self, q: Tensor, k: Tensor, size: float) -> Tensor:
        """Products over a number: divided by it, or factors multiplied, as they say."""
        if self.form.has_scaled_queries:
            return q * (1 / size) @ k
        scores = q @ k
        return scores / size if self.form.has_divided_scores else scores * (1 / size)

    def _by_head(self, x: Tensor) -> Sequence[Tensor]:
        """Queries, keys and values, heads before positions."""
        batch, length, size = x.shape
        parts = self.qkv(x)
        if isinstance(parts, tuple):
            shape = batch, length, self.heads, size // self.heads
            return [part.view(shape).transpose(1, 2) for part in parts]
        parts = parts.view(batch, length, 3, self.heads, size // self.heads)
        return parts.permute(2, 0, 3, 1, 4).unbind(0)


class FeedForward(Half):
    """The half of a layer that works on each position alone."""

    def __init__(self, shape: Shape, form: Form) -> None:
        super().__init__(shape, form)
        size = shape.hidden
        self.up = Product(size, 4 * size, form)
        self.down = Product(4 * size, size, form)

    def forward(self, x: Tensor) -> Tensor:
        """The next hidden states."""
        return self._added(x, self.down(self._gelu(self.up(x))))

    def _gelu(self, x: Tensor) -> Tensor:
        if not self.form.has_gelu:
            # As the first BERT has it, with a power.
            inner = math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
            return 0.5 * x * (1.0 + torch.tanh(inner))
        if self.form.has_exact_gelu:
            return exact_gelu(x)
        if self.form.has_float_norms:
            return F.gelu(x.float()).to(x.dtype)
        return F.gelu(x)


def exact_gelu(x: Tensor) -> Tensor:
    """GELU by the error function: `enable_erf_gelu` of PopRT's converter."""
    return poptorch.custom_op([x], "GeluErf", "ai.graphcore", 1, [x])[0]


class Layer(nn.Module):
    """An encoder layer: attention and a feed-forward part; either may be kept."""

    def __init__(self, shape: Shape, form: Form) -> None:
        super().__init__()
        self.attention = Attention(shape, form)
        self.feed_forward = FeedForward(shape, form)
        self.keeps_attention = False
        self.keeps_result = True

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """The next hidden states."""
        x = self.attention(x, mask)
        x = poptorch.recomputationCheckpoint(x) if self.keeps_attention else x
        x = self.feed_forward(x)
        return poptorch.recomputationCheckpoint(x) if self.keeps_result else x


class Bert(nn.Module):
    """Embeddings and encoder layers; `span` scores each token as begin and end."""

    def __init__(self, shape: Shape, form: Form) -> None:
        super().__init__()
        size = shape.hidden
        self.words = nn.Embedding(shape.vocabulary, size)
        self.places = nn.Embedding(shape.sequence, size)
        self.kinds = nn.Embedding(2, size)
        self.norm = nn.LayerNorm(size)
        self.layers = nn.ModuleList(Layer(shape, form) for _ in range(shape.num_layers))
        self.span = nn.Linear(size, 2)
        self.masks = form.masks

    def encode(self, ids: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
        """Hidden states of the last layer."""
        places = torch.arange(ids.shape[1], device=ids.device)
        embedded = self.words(ids) + self.places(places) + self.kinds(kinds)
        x = self.norm(embedded)
        penalty = self._penalty(mask, x.dtype)
        for layer in self.layers:
            x = layer(x, penalty)
        return x

    def _penalty(self, mask: Tensor, dtype: torch.dtype) -> Tensor:
        """What layers get of the mask: what they add to scores, or what they need."""
        if self.masks is Masks.PAIRS_BY_LAYER:
            return mask
        if self.masks is Masks.PAIRS:
            kept = (mask[:, :, None] == mask[:, None, :]).to(dtype)
            return ((1.0 - kept) * -10_000.0)[:, None]
        return ((1.0 - mask) * -1000.0)[:, None, None, :].to(dtype)

    def forward(self, ids: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
        """Scores of every token."""
        return self.span(self.encode(ids, kinds, mask))


class Squad(nn.Module):
    """BERT that learns where answers begin and end."""

    def __init__(self, shape: Shape, form: Form) -> None:
        super().__init__()
        self.bert = Bert(shape, form)

    def forward(
        self, ids: Tensor, kinds: Tensor, mask: Tensor, begin: Tensor, end: Tensor
    ) -> Tensor:
        """The mean of both losses."""
        first, last = self.bert(ids, kinds, mask).unbind(-1)
        loss = F.cross_entropy(first, begin) + F.cross_entropy(last, end)
        return poptorch.identity_loss(loss / 2, "none")


@dataclass(frozen=True)
class Stage:
    """Attention and feed-forward parts of encoder layers that lie on one chip."""

    chip: int
    attentions: int
    feed_forwards: int

    @property
    def num_halves(self) -> int:
        """Halves of layers in the stage."""
        return self.attentions + self.feed_forwards


def place_layers(layers: nn.ModuleList, stages: Sequence[Stage]) -> None:
    """Put halves of layers on the chips of stages, from the second stage on."""
    halves = [h for x in layers for h in (x.attention, x.feed_forward)]
    first = stages[0].num_halves
    for stage in stages[1:]:
        poptorch.BeginBlock(halves[first], f"from{first}", ipu_id=stage.chip)
        first += stage.num_halves


class Pretraining(nn.Module):
    """BERT with the losses of masked words and of the next sentence.

    Embeddings lie on the first chip, halves of layers as `stages` have them, heads on
    the first chip again, which has the table of words: in a stage of their own unless
    the last of `stages` is there. Their product is computed in so many `parts`.
    """

    def __init__(
        self, shape: Shape, form: Form, stages: Sequence[Stage], parts: int = 1
    ) -> None:
        super().__init__()
        self.bert = Bert(shape, form)
        self.change = nn.Linear(shape.hidden, shape.hidden)
        self.norm = nn.LayerNorm(shape.hidden)
        self.next = nn.Linear(shape.hidden, 2)
        self.parts = parts
        self.has_own_stage = stages[-1].chip != 0
        place_layers(self.bert.layers, stages)

    def forward(
        self, ids: Tensor, kinds: Tensor, mask: Tensor, places: Tensor, goals: Tensor
    ) -> Tensor:
        """The sum of both losses; `goals` are the masked words, then the sentence's."""
        x = self.bert.encode(ids, kinds, mask)
        if not self.has_own_stage:
            return self._losses(x, places, goals)
        with poptorch.Block("heads", ipu_id=0):
            return self._losses(x, places, goals)

    def _losses(self, x: Tensor, places: Tensor, goals: Tensor) -> Tensor:
        index = places[:, :, None].expand(-1, -1, x.shape[-1])
        scores = self._scores(self.norm(F.gelu(self.change(x.gather(1, index)))))
        loss = F.cross_entropy(scores.flatten(0, 1), goals[:, :-1].flatten())
        order = F.cross_entropy(self.next(x[:, 0]), goals[:, -1])
        return poptorch.identity_loss(loss + order, "none")

    def _scores(self, masked: Tensor) -> Tensor:
        table = self.bert.words.weight.t()
        if self.parts == 1:
            return masked @ table
        mode = poptorch.MatMulSerializationMode.OutputChannels
        return poptorch.serializedMatMul(masked, table, mode, self.parts)


class Vit(nn.Module):
    """A vision transformer: patches of an image, encoder layers, classes."""

    def __init__(self, shape: Shape, form: Form, patch: int = 16) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, shape.hidden, patch, patch)
        self.first = nn.Parameter(torch.zeros(1, 1, shape.hidden))
        self.places = nn.Parameter(torch.zeros(1, shape.sequence, shape.hidden))
        self.layers = nn.ModuleList(Layer(shape, form) for _ in range(shape.num_layers))
        self.classes = nn.Linear(shape.hidden, 1000)

    def forward(self, images: Tensor) -> Tensor:
        """Scores of every class."""
        patches = self.patches(images).flatten(2).transpose(1, 2)
        first = self.first.expand(patches.shape[0], -1, -1)
        x = torch.cat([first, patches], 1) + self.places
        for layer in self.layers:
            x = layer(x, None)
        return self.classes(x[:, 0])


def with_dtype(module: nn.Module, dtype: torch.dtype) -> nn.Module:
    """The module with its numbers in a type; those of FP8 products stay."""
    module.to(dtype)
    for each in module.modules():
        if isinstance(each, Product) and each.has_fp8:
            each.weight = each.weight.to(FP8)
    return module
