"""Keras for the IPU, under the names `keras.ipu` and `tensorflow.keras.ipu`.

Importing it makes models of an `IPUStrategy` run on the device (see `_hooks`).
"""

from . import _hooks, layers, optimizers
from .extensions import (
    FunctionalLayerPipelineStageAssignment,
    FunctionalNestedModelPipelineStageAssignment,
    ModelLayerPipelineStageAssignment,
    NestedModelPipelineStageAssignment,
    PipelineStage,
    ReplicatedMetricReductionMethod,
    SequentialLayerPipelineStageAssignment,
    SequentialNestedModelPipelineStageAssignment,
)

__all__ = [
    "FunctionalLayerPipelineStageAssignment",
    "FunctionalNestedModelPipelineStageAssignment",
    "ModelLayerPipelineStageAssignment",
    "NestedModelPipelineStageAssignment",
    "PipelineStage",
    "ReplicatedMetricReductionMethod",
    "SequentialLayerPipelineStageAssignment",
    "SequentialNestedModelPipelineStageAssignment",
    "layers",
    "optimizers",
]

__ipu__built__ = "1"

_hooks.apply()
