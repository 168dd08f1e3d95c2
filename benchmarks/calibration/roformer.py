"""RoFormerV2 (small) as a torch module: positions as rotations of queries and keys.

6 layers of 384 with 6 heads, as the name of the published model says
(chinese_roformer-v2-char_L-6_H-384_A-6); no biases, norms without parameters.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_NUM_LAYERS, _SIZE, _HEADS = 6, 384, 6
_VOCABULARY = 12_000
_EPSILON = 1e-5


class Layer(nn.Module):
    """Attention with rotated queries and keys, and a feed-forward part."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.project = (
            nn.Linear(_SIZE, _SIZE, bias=False) for _ in range(4)
        )
        self.up = nn.Linear(_SIZE, 4 * _SIZE, bias=False)
        self.down = nn.Linear(4 * _SIZE, _SIZE, bias=False)

    def forward(self, x: Tensor, mask: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """The next hidden states."""
        x = _norm(x + self._attend(x, mask, turn))
        return _norm(x + self.down(F.relu(self.up(x))))

    def _attend(self, x: Tensor, mask: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        q, k = (_rotated(_by_head(part(x)), turn) for part in (self.query, self.key))
        scores = q @ k.transpose(-1, -2) / math.sqrt(_SIZE // _HEADS) + mask
        mixed = scores.softmax(-1) @ _by_head(self.value(x))
        return self.project(mixed.transpose(1, 2).reshape(x.shape))


class RoFormer(nn.Module):
    """Classes of texts of `length` tokens."""

    cosines: Tensor
    sines: Tensor

    def __init__(self, length: int) -> None:
        super().__init__()
        self.words = nn.Embedding(_VOCABULARY, _SIZE)
        self.kinds = nn.Embedding(2, _SIZE)
        self.layers = nn.ModuleList(Layer() for _ in range(_NUM_LAYERS))
        self.dense = nn.Linear(_SIZE, _SIZE)
        self.classes = nn.Linear(_SIZE, 2)
        for name in ("cosines", "sines"):
            self.register_buffer(name, torch.zeros(length, _SIZE // _HEADS))

    def forward(self, ids: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
        """Scores of every class."""
        x = _norm(self.words(ids) + self.kinds(kinds))
        penalty = ((1.0 - mask) * -1000.0)[:, None, None, :].to(x.dtype)
        for layer in self.layers:
            x = layer(x, penalty, (self.cosines, self.sines))
        return self.classes(torch.tanh(self.dense(x[:, 0])))


def _by_head(x: Tensor) -> Tensor:
    return x.view(*x.shape[:2], _HEADS, -1).transpose(1, 2)


def _rotated(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Neighbouring elements turned by the angle of their position."""
    cosines, sines = turn
    crossed = torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
    return x * cosines + crossed * sines


def _norm(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + _EPSILON)
