"""Models of a GPU's size that benchmarks train: each returns its loss from forward."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.models import Bert


class PaddedBert(Bert):
    """BERT over sequences of several lengths: a mask hides what only fills them."""

    def forward(self, ids: Tensor, labels: Tensor, lengths: Tensor) -> Tensor:
        """The loss of predicting the labels, of real tokens."""
        places = torch.arange(ids.shape[1], device=ids.device)
        is_real = places < lengths[:, None]
        x = self.norm(self.words(ids) + self.positions.weight[: ids.shape[1]])
        for layer in self.layers:
            x = layer(x, is_real[:, None, None, :])
        labels = labels.masked_fill(~is_real, -100)
        return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


class Vit(nn.Module):
    """ViT-S/16 for 224 x 224 images."""

    def __init__(self, width: int = 384, num_layers: int = 12) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(0.02 * torch.randn(1, 197, width))
        layer = nn.TransformerEncoderLayer(
            width, 6, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(
            layer, num_layers, nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of images."""
        patches = self.patches(x).flatten(2).transpose(1, 2)
        first = self.first.expand(x.shape[0], -1, -1)
        sequence = torch.cat([first, patches], 1) + self.positions
        return self.head(self.encoder(sequence)[:, 0])


def _two_convolutions(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class UNet(nn.Module):
    """A UNet of four levels that labels every pixel."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        widths = [width, 2 * width, 4 * width, 8 * width]
        pairs = list(zip([3, *widths], widths, strict=False))
        self.down = nn.ModuleList(_two_convolutions(a, b) for a, b in pairs)
        ways_up = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.widen = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in ways_up)
        self.up = nn.ModuleList(_two_convolutions(a, b) for a, b in ways_up)
        self.head = nn.Conv2d(width, 10, 1)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        """The loss over all pixels."""
        kept: list[Tensor] = []
        for block in self.down:
            x = block(F.max_pool2d(kept[-1], 2) if kept else x)
            kept.append(x)
        kept.pop()
        for widen, block in zip(self.widen, self.up, strict=True):
            x = block(torch.cat([kept.pop(), widen(x)], 1))
        return F.cross_entropy(self.head(x), labels)
