"""Keras for the IPU, under the names `keras.ipu` and `tensorflow.keras.ipu`.

Importing it makes models of an `IPUStrategy` run on the device (see `_hooks`).
"""

from typing import Any

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

# Classes of older releases, with the names they have had.
_OLD_MODELS = {
    "Model": "Model",
    "PipelineModel": "PipelineModel",
    "PipelineSequential": "PipelineSequential",
    "Sequential": "Sequential",
    "SequentialPipelineModel": "PipelineSequential",
}

_hooks.apply()


def __getattr__(name: str) -> Any:
    if name not in _OLD_MODELS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _old_models

    return getattr(_old_models, _OLD_MODELS[name])
