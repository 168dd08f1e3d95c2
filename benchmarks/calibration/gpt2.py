"""GPT-2 as a torch module that learns the next word, as a pipeline of chips.

As nlp/gpt2/pytorch/train_gpt2.py of graphcore/examples has it: the table of words on
the first chip, for the scores too, whose product is in parts; positions and layers from
the second chip on; the loss of stretches of the text one after the other.
"""

from __future__ import annotations

import math
import re

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from benchmarks.calibration.bert import Shape, Stage
from benchmarks.calibration.configurations import read_settings
from benchmarks.calibration.finetuning import staged_run
from benchmarks.calibration.rows import NotExpressed
from benchmarks.calibration.runs import Run

_SIZES = {"small": (12, 768, 12), "medium": (24, 1024, 16), "large": (36, 1280, 20)}
_DROPOUT = 0.1
_STRETCH = 128


class Layer(nn.Module):
    """Attention to earlier words and a feed-forward part, each behind a norm."""

    mask: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        size, length = shape.hidden, shape.sequence
        self.heads = shape.heads
        self.first, self.second = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.project = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        later = torch.ones(length, length).triu(1)
        self.register_buffer("mask", later[None, None])

    def forward(self, x: Tensor) -> Tensor:
        """The next hidden states, from which recomputation begins."""
        x = x + _drop(self.project(self._attend(self.first(x))))
        x = x + _drop(self.down(F.gelu(self.up(self.second(x)))))
        return poptorch.recomputationCheckpoint(x)

    def _attend(self, x: Tensor) -> Tensor:
        q, k, v = (self._by_head(part) for part in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        shares = _drop((scores - 1e4 * self.mask).softmax(-1))
        return (shares @ v).transpose(1, 2).reshape(x.shape)

    def _by_head(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        return x.view(batch, length, self.heads, -1).transpose(1, 2)


class Gpt2(nn.Module):
    """The loss of the next words."""

    def __init__(self, shape: Shape, stages: tuple[Stage, ...], parts: int) -> None:
        super().__init__()
        self.parts = parts
        self.words = nn.Embedding(shape.vocabulary, shape.hidden)
        self.places = nn.Embedding(shape.sequence, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.num_layers))
        self.norm = nn.LayerNorm(shape.hidden)
        poptorch.BeginBlock(self.places, "places", ipu_id=1)
        first = 0
        for stage in stages:
            if stage.attentions:
                poptorch.BeginBlock(
                    self.layers[first], f"from{first}", ipu_id=stage.chip
                )
            first += stage.attentions

    def forward(self, ids: Tensor, goals: Tensor) -> Tensor:
        """The mean loss of all words."""
        words = self.words(ids)
        places = torch.arange(ids.shape[1], device=ids.device)
        x = _drop(words + self.places(places))
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        with poptorch.Block("scores", ipu_id=0):
            return self._loss(x, goals.flatten())

    def _loss(self, x: Tensor, goals: Tensor) -> Tensor:
        mode = poptorch.MatMulSerializationMode.OutputChannels
        table = self.words.weight.t()
        scores = poptorch.serializedMatMul(x, table, mode, self.parts).flatten(0, 1)
        losses = [
            F.cross_entropy(part, goal, reduction="sum").float()
            for part, goal in zip(
                scores.split(_STRETCH), goals.split(_STRETCH), strict=True
            )
        ]
        mean = torch.stack(losses).sum() / goals.numel()
        return poptorch.identity_loss(mean, "none")


def _drop(x: Tensor) -> Tensor:
    return F.dropout(x, _DROPOUT, training=True)


def gpt2_training(model: str, words: str, num_chips: int) -> Run:
    """Training of the size that the model has, on so many chips."""
    found = re.search(r"GPT-2 (\w+) SL(\d+)", model)
    if found is None or found[1] not in _SIZES:
        raise NotExpressed(f"{model!r} does not say how large it is")
    settings = read_settings(words)
    shape = Shape(*_SIZES[found[1]], int(found[2]), settings.vocabulary)
    module = Gpt2(shape, settings.stages, settings.parts)
    ids = torch.zeros(settings.micro_batch, shape.sequence, dtype=torch.int32)
    return staged_run(module, (ids, ids.long()), settings, num_chips, "AdamW")
