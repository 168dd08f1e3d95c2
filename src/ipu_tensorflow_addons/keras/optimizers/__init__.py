"""Keras optimisers whose state may have another type than the variables."""

from .adam import AdamIpuOptimizer
from .ipu_optimizer import IpuOptimizerBase
from .lamb import LAMBIpuOptimizer
from .sgd import SGDIpuOptimizer

__all__ = [
    "AdamIpuOptimizer",
    "IpuOptimizerBase",
    "LAMBIpuOptimizer",
    "SGDIpuOptimizer",
]
