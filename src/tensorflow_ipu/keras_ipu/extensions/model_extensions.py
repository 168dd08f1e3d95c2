"""Pipeline stages and saving of models that are subclasses of `Model`.

Such a model is code, not a graph of layers: its `call` is run once on symbolic inputs
to see which layers it calls, and the graph that comes out is kept beside the model.
"""

from __future__ import annotations

import copy
from typing import Any

import tensorflow.compat.v2 as tf
from tf_keras.src.engine import (
    base_layer_utils,
    functional,
    input_layer,
    training,
)

from tensorflow_ipu._types import DTypeLike, ShapeLike, Tensors

from ._extension import plain_models
from ._stages import stage_assignments
from ._stages.stage_plan import StagePlan, plan_stages
from ._stages.stage_summary import CALLS
from .extensions_base import KerasExtensionBase
from .pipeline_stage_assignment import (
    ModelLayerPipelineStageAssignment,
    NestedModelPipelineStageAssignment,
)

__all__ = ["ModelExtension"]


class ModelExtension(KerasExtensionBase):
    """What an `IPUStrategy` adds to a subclass of `Model`."""

    _SUMMARY_COLUMNS = CALLS
    _LAYER_ASSIGNMENT = ModelLayerPipelineStageAssignment
    _NESTED_ASSIGNMENT = NestedModelPipelineStageAssignment

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        super().__init__()
        self._ipu_network: Any = None

    def build(self, input_shape: ShapeLike) -> None:
        """Build the model for inputs of these shapes, or for `keras.Input`s.

        Called by the user, it also looks for the layers that `call` uses; inputs in the
        place of shapes say which types they have.
        """
        self._check_call_is_kept()
        shapes = _map_inputs(input_shape, _shape_of)
        # Past Model, which would run `call` on placeholders.
        super(training.Model, self).build(shapes)
        if not base_layer_utils.call_context().in_call:
            self._check_call_args("build")
            self._trace_network(_map_inputs(input_shape, _as_input))

    def _build_with_dtypes(
        self: Any, input_shape: ShapeLike, input_dtype: DTypeLike
    ) -> None:
        if self._ipu_network is not None:
            return
        self._check_call_is_kept()
        inputs = tf.__internal__.nest.map_structure_up_to(
            input_dtype,
            lambda dtype, shape: input_layer.Input(batch_shape=shape, dtype=dtype),
            input_dtype,
            input_shape,
        )
        self._trace_network(inputs)

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def _trace_network(self, inputs: Any) -> None:
        """Keep the graph of layers that `call` makes of symbolic inputs."""
        for layer in self.layers:
            # Calls of an earlier build would shift the indices of those to come.
            layer._inbound_nodes.clear()
            layer._outbound_nodes.clear()
        outputs = self._call_on_inputs(inputs)
        with plain_models():
            self._ipu_network = functional.Functional(inputs, outputs, name=self.name)
        self._set_save_spec(inputs)
        if not self._pipeline_stage_assignment:
            assignments = stage_assignments.annotated(self)
            if assignments:
                self.set_pipeline_stage_assignment(assignments)

    def _call_on_inputs(self, inputs: Any) -> Tensors:
        kwargs = {}
        required = self._call_spec.full_argspec
        num_defaults = len(required.defaults or [])
        if "training" in required.args[2 : len(required.args) - num_defaults]:
            kwargs["training"] = False
        # Not `self(...)`: called on symbolic tensors that would be one layer.
        context = base_layer_utils.call_context()
        with context.enter(layer=self, inputs=inputs, build_graph=True):
            if not self.built:
                self.build(tf.nest.map_structure(_shape_of, inputs))
            try:
                return self.call(inputs, **kwargs)
            except (tf.errors.InvalidArgumentError, TypeError) as error:
                raise ValueError(
                    "The model cannot be built from shapes alone if your layers do not "
                    "support float type inputs: give `build` a `keras.Input` with the "
                    f"right `dtype` in the place of a shape. `call` says: {error}"
                ) from error

    @property
    def layers(self) -> list[Any]:
        """The layers of the model; once it is built, inputs and in order of calls."""
        if self._ipu_network is None:
            return super().layers
        return self._ipu_network.layers

    def _get_network(self) -> tf.keras.Model:
        if self._ipu_network is None:
            raise RuntimeError(
                f"Cannot get pipeline stage assignments for model `{self.name}` which "
                "has not been built yet. Please call `model.build()` first."
            )
        return self._ipu_network

    def get_pipeline_stage_assignment(self) -> list[Any]:
        """The stage of every call of a layer, in the order of computation.

        One assignment for each call and each model inside; a copy of the list that was
        set, or one without stages. The model must have been built.
        """
        self._get_network()
        if self._pipeline_stage_assignment:
            return copy.copy(self._pipeline_stage_assignment)
        return stage_assignments.unassigned(self)

    def set_pipeline_stage_assignment(
        self: Any, pipeline_stage_assignment: Any
    ) -> None:
        """Put every call of a layer into a pipeline stage.

        Takes what :meth:`get_pipeline_stage_assignment` gives, with stages filled in.
        Raises RuntimeError before the model is built, and ValueError where a list is
        not an assignment of this model.
        """
        if self._ipu_network is None:
            raise RuntimeError(
                f"`{self.name}` has not been built yet, so there are no layers to put "
                "in stages. Call `model.build()` first, or use `PipelineStage` scopes "
                "in `call`."
            )
        plan_stages(self, pipeline_stage_assignment)
        self._assign_stages(pipeline_stage_assignment)

    def _stage_plan(self) -> StagePlan:
        try:
            return super()._stage_plan()
        except ValueError as error:
            raise RuntimeError(
                f"The pipeline stages of {self.name} are no longer valid: "
                f'"{error}" This happens when the model was built again for '
                "other shapes or types: build it for shapes that fit all data."
            ) from error

    def _has_call(self) -> bool:
        return type(self).call is not training.Model.call

    def _check_call_is_kept(self) -> None:
        if not self._has_call():
            raise NotImplementedError(
                "The function `call` is missing: a subclass of `Model` must have one, "
                f"and {self.name} has none."
            )

    def _assert_weights_created(self) -> None:
        if "build" in vars(self.__original_class__):
            super()._assert_weights_created()

    def _get_config_supported(self) -> bool:
        return True

    def _get_config_delegate(self) -> dict[str, Any]:
        config = {**self._ipu_options.to_config(), _MARK: True}
        if self._ipu_network is not None:
            config["graph_network_initialized"] = True
            config[_IS_LIST] = isinstance(self._ipu_network._nested_inputs, list)
            config.update(
                copy.deepcopy(functional.get_network_config(self._ipu_network))
            )
        stages = stage_assignments.to_config(self, self._pipeline_stage_assignment)
        return {**config, "pipeline_stage_assignment": stages}

    def _deserialize_from_config_supported(self, config: Any) -> bool:
        return True

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def _deserialize_from_config_delegate(self, config: dict[str, Any]) -> None:
        super()._deserialize_from_config_delegate(config)
        if _MARK not in config:
            raise RuntimeError(
                "get_config() has been overridden on a subclassed Model and does not "
                "return what an IPUStrategy has to keep. Start it with "
                "`config = super().get_config()` and add to that."
            )
        # Loaded without its class it can be called, but its layers are out of sight.
        if config.get("graph_network_initialized", False) and self._has_call():
            self._restore_network(config)

    def _restore_network(self, config: dict[str, Any]) -> None:
        """Trace the model for the inputs it was saved with; put back its stages.

        Its own layers are called, whatever they were named when it was saved.
        """
        self._ipu_network = None
        self._trace_network(_inputs_of(config))
        stages = config.get("pipeline_stage_assignment", [])
        if stages:
            assignments = stage_assignments.from_config(self, stages)
            self.set_pipeline_stage_assignment(assignments)


_MARK = "get_config_has_been_called"
# Keras writes a single input as a list of one.
_IS_LIST = "inputs_are_a_list"


def _inputs_of(config: dict[str, Any]) -> Any:
    """New inputs for a model, those of a configuration."""
    kind = input_layer.InputLayer.__name__
    layers = [each for each in config["layers"] if each["class_name"] == kind]
    only_inputs = {"layers": layers, "output_layers": config["input_layers"]}
    inputs, _, _ = functional.reconstruct_from_config({**config, **only_inputs})
    is_single = isinstance(inputs, list) and len(inputs) == 1
    return inputs[0] if is_single and not config.get(_IS_LIST) else inputs


def _map_inputs(inputs: Any, function: Any) -> Any:
    """Apply a function to every shape, or input, of one input or several."""
    if isinstance(inputs, dict):
        return {key: function(each) for key, each in inputs.items()}
    if isinstance(inputs, list | tuple) and not _is_shape(inputs):
        return [function(each) for each in inputs]
    return function(inputs)


def _is_shape(value: Any) -> bool:
    return all(d is None or isinstance(d, int | tf.compat.v1.Dimension) for d in value)


def _is_input(value: Any) -> bool:
    history = getattr(value, "_keras_history", None)
    return history is not None and isinstance(history[0], input_layer.InputLayer)


def _shape_of(value: Any) -> Any:
    if _is_input(value):
        return tuple(value.shape.as_list())
    if not isinstance(value, tuple | list | tf.TensorShape | dict):
        raise ValueError(
            "The input shape is not one of the valid types: a tuple with the batch, a "
            f"list of such, or a `keras.Input`, not {type(value)}."
        )
    return value


def _as_input(value: Any) -> Any:
    return value if _is_input(value) else input_layer.Input(batch_shape=value)
