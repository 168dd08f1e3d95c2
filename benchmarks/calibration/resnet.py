"""ResNet-50 as a torch module: bottleneck blocks with batch normalisation."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch

_BLOCKS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
_EXPANSION = 4


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolution beside a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int, groups: int) -> None:
        super().__init__()
        outputs = _EXPANSION * width
        # Groups are 4, 8, 16 and 32 channels wide: twice the width of ResNet-50.
        inner = 2 * width if groups > 1 else width
        self.body = nn.Sequential(
            *_conv(inputs, inner, 1),
            nn.ReLU(),
            *_conv(inner, inner, 3, stride, groups),
            nn.ReLU(),
            *_conv(inner, outputs, 1),
        )
        self.shortcut = nn.Sequential()
        if inputs != outputs or stride != 1:
            self.shortcut = nn.Sequential(*_conv(inputs, outputs, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        """The block's output."""
        return F.relu(self.body(x) + self.shortcut(x))


class ResNet50(nn.Module):
    """Classes of images, which may come as bytes.

    Recomputation begins at each of the blocks `cuts`, by number.
    """

    factor: Tensor
    shift: Tensor

    def __init__(self, cuts: Sequence[int] = (), groups: int = 1) -> None:
        super().__init__()
        self.cuts = frozenset(cuts)
        self.register_buffer("factor", torch.ones(1, 3, 1, 1))
        self.register_buffer("shift", torch.zeros(1, 3, 1, 1))
        self.stem = nn.Sequential(*_conv(3, 64, 7, 2), nn.ReLU())
        blocks: list[nn.Module] = []
        inputs = 64
        for width, count, stride in _BLOCKS:
            for index in range(count):
                step = stride if index == 0 else 1
                blocks.append(Bottleneck(inputs, width, step, groups))
                inputs = _EXPANSION * width
        self.blocks = nn.ModuleList(blocks)
        self.classes = nn.Linear(inputs, 1000)

    def forward(self, images: Tensor) -> Tensor:
        """Scores of every class."""
        if not images.is_floating_point():
            # As graphcore/PopRT benchmarks/resnet50 has it, for each of three channels.
            images = images.to(self.factor.dtype) * self.factor - self.shift
        x = F.max_pool2d(self.stem(images), 3, 2, 1)
        for number, block in enumerate(self.blocks):
            x = block(x)
            x = poptorch.recomputationCheckpoint(x) if number in self.cuts else x
        return self.classes(x.mean((2, 3)))


class ResNeXt50(ResNet50):
    """ResNeXt-50 32x4d: 3x3 convolutions of 32 groups."""

    def __init__(self) -> None:
        super().__init__(groups=32)


class Training(nn.Module):
    """A classifier with its loss."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        return F.cross_entropy(self.body(images).float(), labels)


def _conv(
    inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1
) -> list[nn.Module]:
    padding = kernel // 2
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, 1, groups, bias=False)
    return [conv, nn.BatchNorm2d(outputs)]
