"""Pipeline stages and saving of models that are made of inputs and outputs."""

from __future__ import annotations

import copy
from typing import Any

import tensorflow.compat.v2 as tf
from tf_keras.src.engine import functional

from tensorflow_ipu._types import DTypeLike, ShapeLike, Tensors

from ._stages import stage_assignments
from ._stages.stage_plan import plan_stages
from ._stages.stage_summary import CALLS
from .extensions_base import KerasExtensionBase
from .pipeline_stage_assignment import (
    FunctionalLayerPipelineStageAssignment,
    FunctionalNestedModelPipelineStageAssignment,
)

__all__ = ["FunctionalExtension"]


class FunctionalExtension(KerasExtensionBase):
    """What an `IPUStrategy` adds to a functional model."""

    _SUMMARY_COLUMNS = CALLS
    _LAYER_ASSIGNMENT = FunctionalLayerPipelineStageAssignment
    _NESTED_ASSIGNMENT = FunctionalNestedModelPipelineStageAssignment

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        super().__init__()

    def _init_graph_network(self, inputs: Tensors, outputs: Tensors) -> None:
        super()._init_graph_network(inputs, outputs)
        assignments = stage_assignments.annotated(self)
        if assignments:
            plan_stages(self, assignments)
            self._assign_stages(assignments)

    def _get_network(self) -> tf.keras.Model:
        return self

    def _build_with_dtypes(
        self: Any, input_shape: ShapeLike, input_dtype: DTypeLike
    ) -> None:
        # The inputs it was made of have shapes and types already.
        if not self.built:
            self.build(input_shape)

    def get_pipeline_stage_assignment(self) -> list[Any]:
        """The stage of every call of a layer, in the order of computation.

        One assignment for each call (input layers left out) and each model inside; a
        copy of the list that was set, or one without stages.
        """
        if self._pipeline_stage_assignment:
            return copy.copy(self._pipeline_stage_assignment)
        return stage_assignments.unassigned(self)

    def set_pipeline_stage_assignment(self, pipeline_stage_assignment: Any) -> None:
        """Put every call of a layer into a pipeline stage.

        Takes what :meth:`get_pipeline_stage_assignment` gives, with stages filled in.
        Raises ValueError where a list is not an assignment of this model, or a layer
        would need what only a later stage computes.
        """
        plan_stages(self, pipeline_stage_assignment)
        self._assign_stages(pipeline_stage_assignment)

    def _check_call_is_kept(self) -> None:
        own = getattr(type(self), "call", None)
        if self._is_pipelined() and own is not functional.Functional.call:
            raise RuntimeError(
                f"The function `call` of {self.name} has been overridden. A pipelined "
                "functional model runs its layers, not `call`: remove it."
            )

    def _get_config_supported(self) -> bool:
        return True

    def _get_config_delegate(self) -> dict[str, Any]:
        config = super().get_config()
        stages = stage_assignments.to_config(self, self._pipeline_stage_assignment)
        options = self._ipu_options.to_config()
        return {**config, **options, "pipeline_stage_assignment": stages}

    def _deserialize_from_config_supported(self, config: Any) -> bool:
        return True

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def _deserialize_from_config_delegate(self, config: dict[str, Any]) -> None:
        super()._deserialize_from_config_delegate(config)
        stages = config.get("pipeline_stage_assignment", [])
        self._pipeline_stage_assignment = stage_assignments.from_config(self, stages)
