"""Layers around layers: they keep the gradients that come to them on the way back.

In: a layer and a tag. Out: a layer that computes the same; the gradients it meets in
training are handed to the optimiser's `apply_gradients` as `captured_grads`, by tag, if
the optimiser takes them.
"""

from __future__ import annotations

import inspect
from typing import Any

from tensorflow.python.ipu.ops.grad_util_ops import capture_upstream_gradients
from tensorflow.python.platform import tf_logging as logging
from tf_keras.src import activations
from tf_keras.src.engine.base_layer import Layer
from tf_keras.src.layers import Activation
from tf_keras.src.saving.object_registration import custom_object_scope

from tensorflow_ipu._types import ShapeLike, Tensors

__all__ = ["CaptureActivationGradients", "CaptureUpstreamGradients"]


class _GradientCaptureLayerBase(Layer):
    """A layer that stands for the one inside it, weights and all."""

    def __init__(self, layer: Any, tag: str | None = None, suffix: str = "") -> None:
        _check_is_layer(layer)
        self._layer = layer
        self._tag = layer.name + suffix if tag is None else tag
        super().__init__(dtype=layer.dtype, name=self._tag)

    def build(self, input_shape: ShapeLike) -> None:
        """Build the layer inside."""
        super().build(input_shape)
        self.layer.build(input_shape)

    def get_config(self) -> dict[str, Any]:
        """The configuration: class and configuration of the layer inside, and tag."""
        return {
            **super().get_config(),
            "wrapped_layer_type": type(self.layer),
            "wrapped_layer_config": self._inner_config(),
            "tag": self.tag,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """The layer that a configuration describes."""
        inner = config["wrapped_layer_type"]
        layer = inner.from_config(config["wrapped_layer_config"])
        return cls(layer, tag=config["tag"])

    def _inner_config(self) -> dict[str, Any]:
        return self.layer.get_config()

    def _call_inner(
        self, inputs: Tensors, args: Any, kwargs: dict[str, Any]
    ) -> Tensors:
        return self.layer.call(inputs, *args, **_accepted(self.layer, kwargs))

    @property
    def tag(self) -> str:
        """The name under which gradients are kept."""
        return self._tag

    @property
    def layer(self) -> Any:
        """The layer inside."""
        return self._layer

    @property
    def non_trainable_variables(self) -> list[Any]:
        return self.layer.non_trainable_variables

    @property
    def trainable_variables(self) -> list[Any]:
        return self.layer.trainable_variables

    @property
    def variables(self) -> list[Any]:
        return self.layer.variables

    @property
    def non_trainable_weights(self) -> list[Any]:
        return self.layer.non_trainable_weights

    @property
    def trainable_weights(self) -> list[Any]:
        return self.layer.trainable_weights

    @property
    def weights(self) -> list[Any]:
        return self.layer.weights


class CaptureUpstreamGradients(_GradientCaptureLayerBase):
    """Keeps the gradients with respect to what a layer gives out."""

    def __init__(self, layer: Any, tag: str | None = None) -> None:
        super().__init__(layer, tag, suffix="_cug")

    def call(self, inputs: Tensors, *args: Any, **kwargs: Any) -> Tensors:
        """What the layer inside computes."""
        outputs = self._call_inner(inputs, args, kwargs)
        return capture_upstream_gradients(outputs, tag=self.tag)


class _ActivationCapture(Activation):
    """An activation that keeps the gradients with respect to what it is given."""

    def __init__(self, activation: Any, tag: str, **kwargs: Any) -> None:
        super().__init__(activation, **kwargs)
        self._original_activation = activation
        self._tag = tag

    def call(self, inputs: Tensors) -> Tensors:
        """The activation of the inputs."""
        return super().call(capture_upstream_gradients(inputs, tag=self._tag))

    def get_config(self) -> dict[str, Any]:
        """The configuration: the activation itself and the tag."""
        config = super().get_config()
        own = {"activation": self._original_activation, "tag": self._tag}
        return {**config, **own}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> _ActivationCapture:
        """The activation that a configuration describes."""
        return cls(**config)


class CaptureActivationGradients(_GradientCaptureLayerBase):
    """Keeps the gradients with respect to the inputs of a layer's activations.

    The layer inside is a copy of the one given, with its activations replaced; a layer
    without any is refused.
    """

    def __init__(self, layer: Any, tag: str | None = None) -> None:
        super().__init__(layer, tag, suffix="_cag")
        if not self.layer_is_supported(layer):
            raise ValueError(
                f"Layer {layer.name} does not use an activation function, and there "
                "is nothing to capture. Use CaptureUpstreamGradients for it."
            )
        config = layer.get_config()
        names = _activation_names(config)
        self._unwrapped_activations = {name: config[name] for name in names}
        self._wrapped_activations = {
            name: _ActivationCapture(
                activations.deserialize(config[name]), tag=f"{self.tag}_{name}"
            )
            for name in names
        }
        with custom_object_scope(self._wrapped_activations):
            self._layer = type(layer).from_config(
                {**config, **self._wrapped_activations}
            )

    def call(self, inputs: Tensors, *args: Any, **kwargs: Any) -> Tensors:
        """What the layer inside computes."""
        return self._call_inner(inputs, args, kwargs)

    def _inner_config(self) -> dict[str, Any]:
        return {**super()._inner_config(), **self._unwrapped_activations}

    @staticmethod
    def layer_is_supported(layer: Any) -> bool:
        """Whether a layer has activations that can be replaced."""
        _check_is_layer(layer)
        return bool(_activation_names(layer.get_config()))


def _check_is_layer(layer: Any) -> None:
    if not isinstance(layer, Layer):
        raise ValueError(
            "Expected an instance of a keras.engine.base_layer.Layer, not "
            f"{type(layer).__name__}. Wrap the layer itself, not what it returns."
        )


def _activation_names(config: dict[str, Any]) -> list[str]:
    """The entries of a layer's configuration that are activations."""
    return [name for name in config if "activation" in name and _is_known(config[name])]


def _is_known(activation: Any) -> bool:
    if activation is None:
        return False
    try:
        activations.deserialize(activation)
    # Keras says in several ways that something is no activation.
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    return True


def _accepted(layer: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments that the layer inside takes: not all know `training`."""
    parameters = inspect.signature(layer.call).parameters
    if "training" not in kwargs or "training" in parameters:
        return kwargs
    logging.debug(f"Layer {layer.name} takes no `training` argument: it is left out.")
    return {name: value for name, value in kwargs.items() if name != "training"}
