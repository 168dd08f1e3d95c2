"""Which pipeline stage a layer belongs to, said by scope or by a list of assignments.

In: a :class:`PipelineStage` scope around layers and their calls, or one assignment per
call of a layer. Out: `_pipeline_stage` on layers and nodes made inside a scope (the
hooks of `keras.ipu` put it there), and the objects that `get_pipeline_stage_assignment`
and `set_pipeline_stage_assignment` of a model exchange.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v2 as tf

__all__ = [
    "FunctionalLayerPipelineStageAssignment",
    "FunctionalNestedModelPipelineStageAssignment",
    "ModelLayerPipelineStageAssignment",
    "NestedModelPipelineStageAssignment",
    "PipelineStage",
    "SequentialLayerPipelineStageAssignment",
    "SequentialNestedModelPipelineStageAssignment",
    "mark_with_stage",
]

_STAGE = "_pipeline_stage"


class PipelineStage:
    """Layers made, or called, inside this scope belong to pipeline stage `stage`.

    The stage of a call goes before the stage of the layer that is called. Scopes work
    inside the scope of an `IPUStrategy` only and do not nest.
    """

    def __init__(self, stage: int) -> None:
        self._stage = stage
        self._strategy: Any = None

    def __enter__(self) -> PipelineStage:
        if self._stage < 0:
            raise ValueError(
                f"{self._stage} is not a valid pipeline stage. Stages count from 0."
            )
        strategy = tf.distribute.get_strategy()
        if not hasattr(strategy, "_patch_keras_extension"):
            raise RuntimeError(
                "A PipelineStage counts within an IPUStrategy only: open it inside "
                "`with strategy.scope():`."
            )
        if hasattr(strategy, _STAGE):
            raise RuntimeError(
                "Pipeline stages must not be nested. Close the scope of stage "
                f"{getattr(strategy, _STAGE)} before that of stage {self._stage}."
            )
        setattr(strategy, _STAGE, self._stage)
        self._strategy = strategy
        return self

    def __exit__(
        self, _exception_type: object, _value: object, _traceback: object
    ) -> None:
        delattr(self._strategy, _STAGE)


def mark_with_stage(made: Any) -> None:
    """Let a layer or node know the stage in whose scope it is being made, if any."""
    stage = getattr(tf.distribute.get_strategy(), _STAGE, None)
    if stage is not None:
        setattr(made, _STAGE, stage)


class _Layer:
    """A layer and its stage; None while it has none."""

    pipeline_stage: int | None

    def __init__(
        self, layer: tf.keras.layers.Layer, pipeline_stage: int | None = None
    ) -> None:
        self._layer = layer
        self.pipeline_stage = pipeline_stage

    @property
    def layer(self) -> tf.keras.layers.Layer:
        """The layer that is assigned."""
        return self._layer

    @property
    def is_nested_model(self) -> bool:
        """Whether the assignment is that of a model inside the model."""
        return False


class SequentialLayerPipelineStageAssignment(_Layer):
    """The stage of one layer of a `Sequential` model."""

    def __str__(self) -> str:
        return (
            f"Layer: {self.layer.name} is assigned to pipeline stage: "
            f"{self.pipeline_stage}"
        )


class ModelLayerPipelineStageAssignment(_Layer):
    """The stage of one call of a layer, in a subclass of `Model`.

    A layer that is called several times has one assignment per call, told apart by
    `node_index`; all its stages must lie on the same device, which holds its weights.
    """

    def __init__(
        self,
        layer: tf.keras.layers.Layer,
        node_index: int,
        pipeline_stage: int | None = None,
    ) -> None:
        super().__init__(layer, pipeline_stage)
        self._node_index = node_index

    @property
    def node_index(self) -> int:
        """Which call of the layer, counted from 0."""
        return self._node_index

    @property
    def inbound_layers(self) -> list[Any]:
        """The layers whose outputs this call takes."""
        return _inbound_layers(self._layer, self._node_index)

    def __str__(self) -> str:
        return (
            f"Layer: {self.layer.name} (node index {self.node_index}) is assigned "
            f"to pipeline stage: {self.pipeline_stage}"
        )


class FunctionalLayerPipelineStageAssignment(ModelLayerPipelineStageAssignment):
    """The stage of one call of a layer, in a model made of inputs and outputs."""


class _NestedModel:
    """A model inside a model, with the assignments of its own layers."""

    def __init__(
        self, nested_model: Any, pipeline_stage_assignments: Sequence[Any]
    ) -> None:
        self._nested_model = nested_model
        self._pipeline_stage_assignments = list(pipeline_stage_assignments)

    @property
    def nested_model(self) -> tf.keras.Model:
        """The model that is called as a layer."""
        return self._nested_model

    @property
    def pipeline_stage_assignments(self) -> list[Any]:
        """The assignments of this call, apart from those set on the model itself."""
        return list(self._pipeline_stage_assignments)

    @property
    def is_nested_model(self) -> bool:
        """Whether the assignment is that of a model inside the model."""
        return True

    def _described(self, which: str) -> str:
        lines = "".join(f"\n  {each}" for each in self._pipeline_stage_assignments)
        return f"Model: {which} has the following pipeline stage assignments:{lines}"


class SequentialNestedModelPipelineStageAssignment(_NestedModel):
    """The stages of the layers of a model inside a `Sequential` model."""

    def __str__(self) -> str:
        return self._described(self.nested_model.name)


class NestedModelPipelineStageAssignment(_NestedModel):
    """The stages of one call of a model inside a subclass of `Model`."""

    def __init__(
        self,
        nested_model: Any,
        node_index: int,
        pipeline_stage_assignments: Sequence[Any],
    ) -> None:
        super().__init__(nested_model, pipeline_stage_assignments)
        self._node_index = node_index

    @property
    def node_index(self) -> int:
        """Which call of the nested model, counted from 0."""
        return self._node_index

    @property
    def inbound_layers(self) -> list[Any]:
        """The layers whose outputs this call takes."""
        return _inbound_layers(self._nested_model, self._node_index)

    def __str__(self) -> str:
        return self._described(
            f"{self.nested_model.name} (node index {self.node_index})"
        )


class FunctionalNestedModelPipelineStageAssignment(NestedModelPipelineStageAssignment):
    """The stages of one call of a model inside a model of inputs and outputs."""


def _inbound_layers(layer: tf.keras.layers.Layer, node_index: int) -> list[Any]:
    return [node.layer for node in layer._inbound_nodes[node_index].parent_nodes]
