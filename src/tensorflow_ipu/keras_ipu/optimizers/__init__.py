"""Optimisers for the IPU: automatic loss scaling, accumulation of gradients."""

from .adam import ALSOptimizerAdam
from .als_optimizer import ALSGradientAccumulationOptimizer, ALSOptimizer
from .gradient_accumulation_optimizer import GradientAccumulationOptimizer
from .gradient_descent import ALSOptimizerSGD
from .rmsprop import ALSOptimizerRMSProp

__all__ = [
    "ALSGradientAccumulationOptimizer",
    "ALSOptimizer",
    "ALSOptimizerAdam",
    "ALSOptimizerRMSProp",
    "ALSOptimizerSGD",
    "GradientAccumulationOptimizer",
]
