"""Swin-Tiny as a torch module: attention within windows of an image, which shift.

Sizes are those of the paper (Liu et al. 2021, table 7). Biases of positions and masks
of shifted windows are constants of inference. GELU is as benchmarks/Swin-Tiny of PopRT
has it converted.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.calibration.bert import exact_gelu

_PATCH = 4
_WINDOW = 7
_SIZE = 56
_STAGES = ((96, 2, 3), (192, 2, 6), (384, 6, 12), (768, 2, 24))
_NUM_CLASSES = 1000


class WindowAttention(nn.Module):
    """Attention among the tokens of each window."""

    bias: Tensor

    def __init__(self, size: int, heads: int, num_masks: int) -> None:
        super().__init__()
        tokens = _WINDOW**2
        self.heads = heads
        self.qkv = nn.Linear(size, 3 * size)
        self.project = nn.Linear(size, size)
        self.register_buffer("bias", torch.zeros(1, num_masks, heads, tokens, tokens))

    def forward(self, windows: Tensor) -> Tensor:
        """Windows of [count, tokens, size], mixed."""
        count, tokens, size = windows.shape
        parts = self.qkv(windows).view(count, tokens, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q * (size // self.heads) ** -0.5 @ k.transpose(-1, -2)
        num_masks = self.bias.shape[1]
        by_mask = scores.view(-1, num_masks, *scores.shape[1:]) + self.bias
        mixed = by_mask.view(scores.shape).softmax(-1) @ v
        return self.project(mixed.transpose(1, 2).reshape(windows.shape))


class Block(nn.Module):
    """Window attention and a feed-forward part, on windows moved by `shift`."""

    def __init__(self, size: int, heads: int, side: int, shift: int) -> None:
        super().__init__()
        self.side, self.shift = side, shift
        num_masks = (side // _WINDOW) ** 2 if shift else 1
        self.attention = WindowAttention(size, heads, num_masks)
        self.first, self.second = nn.LayerNorm(size), nn.LayerNorm(size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens of [batch, side, side, size]."""
        x = x + self._attend(self.first(x))
        return x + self.down(exact_gelu(self.up(self.second(x))))

    def _attend(self, x: Tensor) -> Tensor:
        moved = torch.roll(x, (-self.shift, -self.shift), (1, 2)) if self.shift else x
        mixed = _joined(self.attention(_windows(moved)), self.side)
        if not self.shift:
            return mixed
        return torch.roll(mixed, (self.shift, self.shift), (1, 2))


class Merge(nn.Module):
    """Four neighbours become one token of twice the size."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * size)
        self.reduce = nn.Linear(4 * size, 2 * size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Half as many tokens each way."""
        corners = [x[:, i::2, j::2] for j in range(2) for i in range(2)]
        return self.reduce(self.norm(torch.cat(corners, -1)))


class SwinTiny(nn.Module):
    """Classes of images."""

    def __init__(self) -> None:
        super().__init__()
        first = _STAGES[0][0]
        self.patches = nn.Conv2d(3, first, _PATCH, _PATCH)
        self.norm = nn.LayerNorm(first)
        parts: list[nn.Module] = []
        side = _SIZE
        for index, (size, depth, heads) in enumerate(_STAGES):
            if index:
                parts.append(Merge(size // 2))
                side //= 2
            for number in range(depth):
                is_shifted = number % 2 == 1 and side > _WINDOW
                shift = _WINDOW // 2 if is_shifted else 0
                parts.append(Block(size, heads, side, shift))
        self.parts = nn.ModuleList(parts)
        self.last = nn.LayerNorm(_STAGES[-1][0])
        self.classes = nn.Linear(_STAGES[-1][0], _NUM_CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """Scores of every class."""
        x = self.norm(self.patches(images).permute(0, 2, 3, 1))
        for part in self.parts:
            x = part(x)
        return self.classes(self.last(x).mean((1, 2)))


def _windows(x: Tensor) -> Tensor:
    batch, side, _, size = x.shape
    count = side // _WINDOW
    tiles = x.view(batch, count, _WINDOW, count, _WINDOW, size).transpose(2, 3)
    return tiles.reshape(-1, _WINDOW**2, size)


def _joined(windows: Tensor, side: int) -> Tensor:
    count, size = side // _WINDOW, windows.shape[-1]
    tiles = windows.view(-1, count, count, _WINDOW, _WINDOW, size).transpose(2, 3)
    return tiles.reshape(-1, side, side, size)
