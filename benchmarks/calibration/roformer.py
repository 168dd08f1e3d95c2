"""RoFormerV2 (small) as a torch module: positions as rotations of queries and keys.

6 layers of 384 with 6 heads, as the name of the published model says
(chinese_roformer-v2-char_L-6_H-384_A-6); no biases, norms without parameters, as in
src/roformer/modeling_roformer.py of JunnYu/RoFormer_pytorch. How queries and keys are
turned and where scores are scaled is as a `Form` says: PopRT's converter changes both
if a program asks for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_NUM_LAYERS, _SIZE, _HEADS = 6, 384, 6
_VOCABULARY = 12_000
_EPSILON = 1e-5


@dataclass(frozen=True)
class Form:
    """Neighbours are turned pair by pair, or by a product that changes their places.

    Scores are divided by a number, or queries multiplied by its inverse before.
    """

    has_turning_product: bool = False
    has_scaled_queries: bool = False


class Layer(nn.Module):
    """Attention with rotated queries and keys, and a feed-forward part."""

    def __init__(self, form: Form) -> None:
        super().__init__()
        self.form = form
        self.query, self.key, self.value, self.project = (
            nn.Linear(_SIZE, _SIZE, bias=False) for _ in range(4)
        )
        self.up = nn.Linear(_SIZE, 4 * _SIZE, bias=False)
        self.down = nn.Linear(4 * _SIZE, _SIZE, bias=False)

    def forward(self, x: Tensor, mask: Tensor, turn: tuple[Tensor, ...]) -> Tensor:
        """The next hidden states."""
        x = _norm(x + self._attend(x, mask, turn))
        return _norm(x + self.down(F.relu(self.up(x))))

    def _attend(self, x: Tensor, mask: Tensor, turn: tuple[Tensor, ...]) -> Tensor:
        q, k = (
            self._turned(_by_head(part(x)), turn) for part in (self.query, self.key)
        )
        scores = self._scores(q, k) + mask
        mixed = scores.softmax(-1) @ _by_head(self.value(x))
        return self.project(mixed.transpose(1, 2).reshape(x.shape))

    def _turned(self, x: Tensor, turn: tuple[Tensor, ...]) -> Tensor:
        is_product = self.form.has_turning_product
        return turned_by_product(x, *turn) if is_product else turned_pairs(x, *turn)

    def _scores(self, q: Tensor, k: Tensor) -> Tensor:
        size = math.sqrt(_SIZE // _HEADS)
        if self.form.has_scaled_queries:
            return q * (1 / size) @ k.transpose(-1, -2)
        return q @ k.transpose(-1, -2) / size


class RoFormer(nn.Module):
    """Classes of texts of `length` tokens."""

    cosines: Tensor
    sines: Tensor
    places: Tensor

    def __init__(self, length: int, form: Form) -> None:
        super().__init__()
        self.words = nn.Embedding(_VOCABULARY, _SIZE)
        self.kinds = nn.Embedding(2, _SIZE)
        self.layers = nn.ModuleList(Layer(form) for _ in range(_NUM_LAYERS))
        self.dense = nn.Linear(_SIZE, _SIZE)
        self.classes = nn.Linear(_SIZE, 2)
        width = _SIZE // _HEADS
        # Pairs share their angle; the product's factors have it twice.
        angles = width if form.has_turning_product else width // 2
        for name in ("cosines", "sines"):
            self.register_buffer(name, torch.zeros(length, angles))
        self.register_buffer("places", torch.zeros(width, width))
        self.form = form

    def forward(self, ids: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
        """Scores of every class."""
        x = _norm(self.words(ids) + self.kinds(kinds))
        penalty = ((1.0 - mask) * -1000.0)[:, None, None, :].to(x.dtype)
        turn = self.cosines, self.sines
        turn = (*turn, self.places) if self.form.has_turning_product else turn
        for layer in self.layers:
            x = layer(x, penalty, turn)
        return self.classes(torch.tanh(self.dense(x[:, 0])))


def _by_head(x: Tensor) -> Tensor:
    return x.view(*x.shape[:2], _HEADS, -1).transpose(1, 2)


def turned_pairs(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Neighbouring elements turned by the angle of their position."""
    even, odd = x[..., ::2], x[..., 1::2]
    parts = even * cosines - odd * sines, odd * cosines + even * sines
    return torch.stack(parts, -1).flatten(-2)


def turned_by_product(
    x: Tensor, cosines: Tensor, sines: Tensor, places: Tensor
) -> Tensor:
    """The same: a product with a matrix of 1, -1 and 0 makes neighbours change."""
    return x * cosines + (x @ places) * sines


def _norm(x: Tensor) -> Tensor:
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + _EPSILON)
