"""Keras optimisers whose state may have another type than the variables."""

from .adam_optimizer import AdamIpuOptimizer
from .ipu_optimizer_base import IpuOptimizerBase
from .lamb_optimizer import LAMBIpuOptimizer
from .sgd_optimizer import SGDIpuOptimizer

__all__ = [
    "AdamIpuOptimizer",
    "IpuOptimizerBase",
    "LAMBIpuOptimizer",
    "SGDIpuOptimizer",
]
