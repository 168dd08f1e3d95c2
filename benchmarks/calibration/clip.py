"""CLIP ViT-B/32 as a torch module: images and texts in one space (Radford et al. 2021).

A vision transformer of 50 tokens and a text transformer of 77, both with norms before
their parts and GELU as a sigmoid; every image is compared with every text.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

_VISION = (768, 12, 12)
_TEXT = (512, 8, 12)
_PATCH = 32
_NUM_PATCHES = (224 // _PATCH) ** 2
_LENGTH = 77
_VOCABULARY = 49_408
_SPACE = 512


class Layer(nn.Module):
    """Attention and a feed-forward part, each behind a norm."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.project = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """The next hidden states."""
        x = x + self._attend(self.first(x), mask)
        wide = self.up(self.second(x))
        return x + self.down(wide * torch.sigmoid(1.702 * wide))

    def _attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        batch, length, size = x.shape
        parts = self.qkv(x).view(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q / math.sqrt(size // self.heads) @ k.transpose(-1, -2)
        scores = scores if mask is None else scores + mask
        mixed = scores.softmax(-1) @ v
        return self.project(mixed.transpose(1, 2).reshape(x.shape))


class Tower(nn.Module):
    """Layers one behind the other."""

    def __init__(self, size: int, heads: int, count: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(size, heads) for _ in range(count))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Hidden states of the last layer."""
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Clip(nn.Module):
    """How well each image goes with each text."""

    mask: Tensor

    def __init__(self) -> None:
        super().__init__()
        wide, narrow = _VISION[0], _TEXT[0]
        self.patches = nn.Conv2d(3, wide, _PATCH, _PATCH, bias=False)
        self.image_class = nn.Parameter(torch.zeros(1, 1, wide))
        self.image_places = nn.Parameter(torch.zeros(_NUM_PATCHES + 1, wide))
        self.before, self.after = nn.LayerNorm(wide), nn.LayerNorm(wide)
        self.vision, self.text = Tower(*_VISION), Tower(*_TEXT)
        self.words = nn.Embedding(_VOCABULARY, narrow)
        self.text_places = nn.Parameter(torch.zeros(_LENGTH, narrow))
        self.text_norm = nn.LayerNorm(narrow)
        self.from_image = nn.Linear(wide, _SPACE, bias=False)
        self.from_text = nn.Linear(narrow, _SPACE, bias=False)
        later = torch.full((_LENGTH, _LENGTH), -1000.0).triu(1)
        self.register_buffer("mask", later)

    def forward(self, images: Tensor, texts: Tensor) -> tuple[Tensor, Tensor]:
        """Scores by image and by text."""
        seen, read = _normalised(self._see(images)), _normalised(self._read(texts))
        scores = 100.0 * seen @ read.t()
        return scores, scores.t()

    def _see(self, images: Tensor) -> Tensor:
        patches = self.patches(images).flatten(2).transpose(1, 2)
        first = self.image_class.expand(len(images), -1, -1)
        x = self.before(torch.cat([first, patches], 1) + self.image_places)
        return self.from_image(self.after(self.vision(x)[:, 0]))

    def _read(self, texts: Tensor) -> Tensor:
        x = self.text(self.words(texts) + self.text_places, self.mask)
        # A text ends with its largest number.
        ends = texts.argmax(-1)[:, None, None].expand(-1, 1, x.shape[-1])
        return self.from_text(self.text_norm(x).gather(1, ends)[:, 0])


def _normalised(x: Tensor) -> Tensor:
    return x / x.norm(dim=-1, keepdim=True)
