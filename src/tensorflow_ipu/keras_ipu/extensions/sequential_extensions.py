"""Pipeline stages and saving of `Sequential` models."""

from __future__ import annotations

import copy
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.platform import tf_logging as logging
from tf_keras.src.engine import sequential

from tensorflow_ipu._types import DTypeLike, ShapeLike

from ._stages.stage_plan import plan_stages
from ._stages.stage_summary import LAYERS
from .extensions_base import KerasExtensionBase
from .pipeline_stage_assignment import (
    SequentialLayerPipelineStageAssignment,
    SequentialNestedModelPipelineStageAssignment,
)

__all__ = ["SequentialExtension"]


class SequentialExtension(KerasExtensionBase):
    """What an `IPUStrategy` adds to a `Sequential` model."""

    _SUMMARY_COLUMNS = LAYERS
    _LAYER_ASSIGNMENT = SequentialLayerPipelineStageAssignment
    _NESTED_ASSIGNMENT = SequentialNestedModelPipelineStageAssignment

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        super().__init__()
        self._pipeline_stage_assignment_valid = False

    def add(self, layer: tf.keras.layers.Layer) -> None:
        """Put a layer at the end; the stages have to be set again then."""
        self._invalidate_stages("added")
        super().add(layer)

    def pop(self) -> None:
        """Take away the last layer; the stages have to be set again then."""
        self._invalidate_stages("removed")
        super().pop()

    def _invalidate_stages(self, done: str) -> None:
        if self._is_pipelined():
            self._pipeline_stage_assignment_valid = False
            logging.info(
                f"A layer was {done}: the stages of the model are no longer valid. "
                "Call `set_pipeline_stage_assignment()` again before it runs."
            )

    def _get_network(self) -> tf.keras.Model:
        return self

    def _build_with_dtypes(
        self: Any, input_shape: ShapeLike, input_dtype: DTypeLike
    ) -> None:
        if not self._has_explicit_input_shape:
            if not isinstance(input_dtype, tf.DType):
                raise RuntimeError(
                    "Layers in a Sequential model should only have a single input, but "
                    f"the data have {input_shape}. Make a functional model for more."
                )
            self._build_graph_network_for_inferred_shape(input_shape, input_dtype)
        # Past Sequential, which would make the network again with another type.
        super(sequential.Sequential, self).build(input_shape)

    def get_pipeline_stage_assignment(self) -> list[Any]:
        """The stage of every layer, and of the layers of models inside, in order."""
        if not self._pipeline_stage_assignment:
            return [_unassigned(layer) for layer in self.layers]
        if not self._pipeline_stage_assignment_valid:
            logging.info(
                "Layers were added or removed since the stages of the model were set: "
                "they are no longer valid."
            )
        return copy.copy(self._pipeline_stage_assignment)

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def set_pipeline_stage_assignment(
        self: Any, pipeline_stage_assignment: Any
    ) -> None:
        """Put every layer into a pipeline stage.

        Takes one assignment, or simply the number of a stage, per layer. The first
        layer belongs to stage 0, every other one to the stage of the layer before it or
        to the next; ValueError otherwise.
        """
        given, layers = pipeline_stage_assignment, self.layers
        if not isinstance(given, list):
            raise ValueError("`pipeline_stage_assignment` must be a list of stages.")
        if len(given) != len(layers):
            raise ValueError(
                "The length of the provided `pipeline_stage_assignment` "
                f"({len(given)}) "
                f"does not match the number of layers in the graph ({len(layers)}). "
                "Give one stage per layer, the input layer left out."
            )
        assignments = [
            SequentialLayerPipelineStageAssignment(layer, each)
            if isinstance(each, int)
            else each
            for layer, each in zip(layers, given, strict=True)
        ]
        self._check_assignments(assignments)
        self._assign_stages(assignments)
        self._pipeline_stage_assignment_valid = True

    def reset_pipeline_stage_assignment(self) -> None:
        """Take all layers out of their stages: the model is no pipeline any more."""
        super().reset_pipeline_stage_assignment()
        self._pipeline_stage_assignment_valid = False

    def _check_assignments(self, assignments: list[Any]) -> None:
        kinds = (self._LAYER_ASSIGNMENT, self._NESTED_ASSIGNMENT)
        if not all(isinstance(each, kinds) for each in assignments):
            raise ValueError(
                "All elements of `pipeline_stage_assignment` must be stages or "
                "instances of `SequentialLayerPipelineStageAssignment`, for models "
                "inside of `SequentialNestedModelPipelineStageAssignment`."
            )
        if any(hasattr(each, "get_pipeline_stage_assignment") for each in self.layers):
            # Layers inside need not follow each other: the graph must be looked at.
            plan_stages(self, assignments)
        else:
            _check_steps_of_one(self.layers, assignments)

    def _check_call_is_kept(self) -> None:
        if self._is_pipelined() and type(self).call is not sequential.Sequential.call:
            raise RuntimeError(
                f"The function `call` of {self.name} has been overridden. A pipelined "
                "Sequential model runs its layers, not `call`: remove it."
            )

    def _get_config_supported(self) -> bool:
        return True

    def _get_config_delegate(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._ipu_options.to_config(),
            "pipeline_stage_assignment_valid": self._pipeline_stage_assignment_valid,
            "pipeline_stage_assignment": [
                each.pipeline_stage for each in self._pipeline_stage_assignment
            ],
        }

    def _deserialize_from_config_supported(self, config: Any) -> bool:
        return True

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def _deserialize_from_config_delegate(self, config: dict[str, Any]) -> None:
        super()._deserialize_from_config_delegate(config)
        valid = config.get("pipeline_stage_assignment_valid", False)
        self._pipeline_stage_assignment_valid = valid
        stages = config.get("pipeline_stage_assignment", [])
        self._pipeline_stage_assignment = [
            SequentialLayerPipelineStageAssignment(layer, stage)
            for layer, stage in zip(self.layers, stages, strict=False)
        ]


def _unassigned(layer: tf.keras.layers.Layer) -> Any:
    if hasattr(layer, "get_pipeline_stage_assignment"):
        return SequentialNestedModelPipelineStageAssignment(
            layer, layer.get_pipeline_stage_assignment()
        )
    return SequentialLayerPipelineStageAssignment(layer)


def _check_steps_of_one(layers: list[Any], assignments: list[Any]) -> None:
    """Stages begin with 0 and grow by at most one from layer to layer."""
    before = None
    for index, (layer, each) in enumerate(zip(layers, assignments, strict=True)):
        stage = each.pipeline_stage
        if stage is None:
            raise ValueError(
                f"Layer {each.layer.name} has no pipeline stage: give it a number."
            )
        if layer is not each.layer:
            raise ValueError(
                f"The provided assignment at index {index} `pipeline_stage_assignment` "
                f"is for layer {each.layer.name}, but the layer in the Sequential "
                f"model at index {index} is {layer.name}."
            )
        if before is None and stage != 0:
            raise ValueError(
                "The first layer in a pipelined sequential model needs to be assigned "
                f"to the 0th pipeline stage, however it was assigned to {stage}."
            )
        if before is not None and stage not in (before, before + 1):
            raise ValueError(
                f"Layer {layer.name} has been assigned to pipeline stage {stage}, "
                "however the previous layer in the Sequential model was assigned to "
                f"pipeline stage {before}. A layer in a Sequential model can only be "
                "assigned to the same pipeline stage as the previous layer or to the "
                "next pipeline stage."
            )
        before = stage
