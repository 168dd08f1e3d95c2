"""Optimisers that wrap an optimiser of TensorFlow 1."""

from .cross_replica_optimizer import CrossReplicaOptimizer
from .gradient_accumulation_optimizer import (
    CrossReplicaGradientAccumulationOptimizer,
    CrossReplicaGradientAccumulationOptimizerV2,
    GradientAccumulationOptimizer,
    GradientAccumulationOptimizerV2,
    GradientAccumulationReductionMethod,
)
from .ipu_optimizer import IpuOptimizer
from .map_gradient_optimizer import MapGradientOptimizer
from .map_gradient_optimizer import (
    _MapGradientOptimizerInvertedChaining as _MapGradientOptimizerInvertedChaining,
)
from .sharded_optimizer import ShardedOptimizer

__all__ = [
    "CrossReplicaGradientAccumulationOptimizer",
    "CrossReplicaGradientAccumulationOptimizerV2",
    "CrossReplicaOptimizer",
    "GradientAccumulationOptimizer",
    "GradientAccumulationOptimizerV2",
    "GradientAccumulationReductionMethod",
    "IpuOptimizer",
    "MapGradientOptimizer",
    "ShardedOptimizer",
]
