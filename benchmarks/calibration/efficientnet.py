"""EfficientNet for edge devices as a torch module, sizes L, for inference.

Norms are folded into the products, as frozen graphs have them: a convolution, its bias
and an activation. Blocks of the first stages expand by a 3x3 convolution and project
with the stride; later ones expand, convolve every channel by itself, and project.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Stage:
    """Blocks that are alike; the first has the stride."""

    num_blocks: int
    kernel: int
    stride: int
    expansion: int
    inputs: int
    outputs: int
    is_fused: bool = False
    has_skip: bool = True


# tensorflow/tpu efficientnet_edgetpu_builder.py: widths by 1.2, depths by 1.4.
STEM = 40
STAGES = (
    Stage(2, 3, 1, 4, 32, 32, is_fused=True, has_skip=False),
    Stage(3, 3, 2, 8, 32, 40, is_fused=True),
    Stage(6, 3, 2, 8, 40, 56, is_fused=True),
    Stage(7, 5, 2, 8, 56, 112),
    Stage(6, 5, 1, 8, 112, 176),
    Stage(3, 5, 2, 8, 176, 232),
)
HEAD = 1280


class Block(nn.Module):
    """One inverted bottleneck."""

    def __init__(self, stage: Stage, inputs: int, stride: int, width: int) -> None:
        super().__init__()
        first, last = (3, stride) if stage.is_fused else (1, 1)
        self.expand = nn.Conv2d(inputs, width, first, padding=first // 2)
        self.depthwise = None
        if not stage.is_fused:
            size = stage.kernel
            self.depthwise = nn.Conv2d(
                width, width, size, stride, size // 2, groups=width
            )
        self.project = nn.Conv2d(width, stage.outputs, 1, last)
        self.has_skip = stage.has_skip and stride == 1 and inputs == stage.outputs

    def forward(self, x: Tensor) -> Tensor:
        """The next activations."""
        wide = F.relu(self.expand(x))
        if self.depthwise is not None:
            wide = F.relu(self.depthwise(wide))
        narrow = self.project(wide)
        return narrow + x if self.has_skip else narrow


class EfficientNetEdgeL(nn.Module):
    """The whole network: stem, blocks, head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, STEM, 3, 2, 1)
        self.blocks = nn.ModuleList(_blocks())
        self.head = nn.Conv2d(STAGES[-1].outputs, HEAD, 1)
        self.classes = nn.Linear(HEAD, 1001)

    def forward(self, images: Tensor) -> Tensor:
        """Scores of every class."""
        x = F.relu(self.stem(images))
        for block in self.blocks:
            x = block(x)
        return self.classes(F.relu(self.head(x)).mean((2, 3)))


def _blocks() -> Iterator[Block]:
    inputs = STEM
    for stage in STAGES:
        for index in range(stage.num_blocks):
            narrow = stage.outputs if index else stage.inputs
            stride = 1 if index else stage.stride
            yield Block(stage, inputs, stride, stage.expansion * narrow)
            inputs = stage.outputs
