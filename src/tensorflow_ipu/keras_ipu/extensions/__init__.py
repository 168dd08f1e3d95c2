"""What an `IPUStrategy` adds to Keras models made in its scope.

Each kind of model gets the methods of one class: functional, sequential, subclassed.
"""

from tensorflow.python.ipu import keras_extensions as _keras_extensions
from tf_keras.src.engine import functional, sequential, training

from ._extension import KerasExtension as _KerasExtension
from .extensions_base import ReplicatedMetricReductionMethod
from .functional_extensions import FunctionalExtension
from .model_extensions import ModelExtension
from .pipeline_stage_assignment import (
    FunctionalLayerPipelineStageAssignment,
    FunctionalNestedModelPipelineStageAssignment,
    ModelLayerPipelineStageAssignment,
    NestedModelPipelineStageAssignment,
    PipelineStage,
    SequentialLayerPipelineStageAssignment,
    SequentialNestedModelPipelineStageAssignment,
)
from .sequential_extensions import SequentialExtension

__all__ = [
    "FunctionalExtension",
    "FunctionalLayerPipelineStageAssignment",
    "FunctionalNestedModelPipelineStageAssignment",
    "ModelExtension",
    "ModelLayerPipelineStageAssignment",
    "NestedModelPipelineStageAssignment",
    "PipelineStage",
    "ReplicatedMetricReductionMethod",
    "SequentialExtension",
    "SequentialLayerPipelineStageAssignment",
    "SequentialNestedModelPipelineStageAssignment",
]

# The first that fits is taken: the most special class goes first.
for _class, _extension in (
    (sequential.Sequential, SequentialExtension),
    (functional.Functional, FunctionalExtension),
    (training.Model, ModelExtension),
):
    _keras_extensions._extensions_manager._register_extension(
        _class, _KerasExtension, _extension
    )
