"""Group, instance and layer normalisation."""

from __future__ import annotations

import math
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.compat.v2 import keras
from tensorflow.compiler.plugin.poplar.ops import gen_popnn_ops

from tensorflow_ipu._types import ShapeLike

from .ipu_layer import IPULayer, check_unsupported

_UNSUPPORTED = {
    "beta_regularizer": None,
    "gamma_regularizer": None,
    "beta_constraint": None,
    "gamma_constraint": None,
}


class GroupNormalization(IPULayer):
    """Normalises each example over groups of its channels.

    With `strided_channel_grouping` channel c belongs to group c modulo `groups`, which
    the device computes faster; without, groups are of neighbouring channels.
    """

    def __init__(
        self,
        groups: int = 2,
        channels_axis: int = -1,
        center: bool = True,
        scale: bool = True,
        epsilon: float = 1e-3,
        beta_initializer: Any = None,
        gamma_initializer: Any = None,
        strided_channel_grouping: bool = True,
        trainable: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, **kwargs)
        self.groups = groups
        self.channels_axis = channels_axis
        self.center = center
        self.scale = scale
        self.epsilon = epsilon
        self.beta_initializer = keras.initializers.get(beta_initializer or "zeros")
        self.gamma_initializer = keras.initializers.get(gamma_initializer or "ones")
        self.strided_channel_grouping = strided_channel_grouping
        self.gamma: Any = None
        self.beta: Any = None

    def build(self, input_shape: ShapeLike) -> None:
        channels = input_shape[self._checked_axis(len(input_shape))]
        self._check_groups(channels)
        self._build_weights([channels])
        super().build(input_shape)

    def _build_weights(self, shape: list[int]) -> None:
        if self.scale:
            self.gamma = self.add_weight(
                name="gamma", shape=shape, initializer=self.gamma_initializer
            )
        if self.center:
            self.beta = self.add_weight(
                name="beta", shape=shape, initializer=self.beta_initializer
            )

    def call(
        self, inputs: tf.Tensor, training: bool | tf.Tensor | None = None
    ) -> tf.Tensor:
        """The inputs, normalised: the same in training and after."""
        del training
        axis = self._checked_axis(inputs.shape.rank)
        channels = tf.compat.dimension_value(inputs.shape[axis])
        is_last = axis == inputs.shape.rank - 1
        # The operator takes images: all places of an example become one row of one.
        shape = [tf.shape(inputs)[0], -1, 1, channels]
        if not is_last:
            shape = [tf.shape(inputs)[0], channels, 1, -1]
        outputs, _, _ = gen_popnn_ops.popnn_group_norm_training(
            inputs=tf.reshape(inputs, shape),
            gamma=self._or_constant(self.gamma, 1.0, channels, inputs.dtype),
            beta=self._or_constant(self.beta, 0.0, channels, inputs.dtype),
            data_format="NHWC" if is_last else "NCHW",
            epsilon=self.epsilon,
            num_groups=self.groups,
            strided_channel_grouping=self.strided_channel_grouping,
        )
        return tf.ensure_shape(tf.reshape(outputs, tf.shape(inputs)), inputs.shape)

    def _or_constant(
        self, weight: tf.Variable | None, value: float, channels: int, dtype: tf.DType
    ) -> tf.Tensor:
        if weight is None:
            return tf.fill([channels], tf.cast(value, dtype))
        return tf.reshape(tf.cast(weight, dtype), [channels])

    def _checked_axis(self, rank: int) -> int:
        axis = self.channels_axis % rank if -rank <= self.channels_axis < rank else None
        if axis is None:
            raise ValueError(f"Axis is out of bounds: {self.channels_axis}.")
        if axis not in (1, rank - 1):
            raise ValueError(
                "Unsupported data format: channels are the second or the last"
                f" dimension, not {self.channels_axis}."
            )
        return axis

    def _check_groups(self, channels: int) -> None:
        if self.groups > channels:
            raise ValueError(f"Invalid groups {self.groups} for {channels} channels.")
        if channels % self.groups:
            raise ValueError(
                f"{channels} channels is not commensurate with {self.groups} groups."
            )

    def _config(self, *names: str) -> dict[str, Any]:
        serialize = keras.initializers.serialize
        shared = ("center", "scale", "epsilon", "trainable")
        return {
            **super().get_config(),
            **{name: getattr(self, name) for name in (*names, *shared)},
            "beta_initializer": serialize(self.beta_initializer),
            "gamma_initializer": serialize(self.gamma_initializer),
        }

    def get_config(self) -> dict[str, Any]:
        return self._config("groups", "channels_axis", "strided_channel_grouping")


class InstanceNormalization(GroupNormalization):
    """Normalises each channel of each example."""

    def __init__(self, channels_axis: int = -1, **kwargs: Any) -> None:
        super().__init__(groups=1, channels_axis=channels_axis, **kwargs)

    def build(self, input_shape: ShapeLike) -> None:
        self.groups = input_shape[self._checked_axis(len(input_shape))]
        super().build(input_shape)

    def get_config(self) -> dict[str, Any]:
        return self._config("channels_axis")


class LayerNormalization(GroupNormalization):
    """Normalises each example over the dimensions in `axis`."""

    def __init__(self, axis: Any = -1, epsilon: float = 1e-3, **kwargs: Any) -> None:
        if not isinstance(axis, int | list | tuple):
            raise ValueError(
                "Expected an int or a list/tuple of ints for the argument 'axis', but"
                f" received instead: {axis}"
            )
        check_unsupported("LayerNormalization", kwargs, _UNSUPPORTED)
        rest = {key: kwargs[key] for key in kwargs if key not in _UNSUPPORTED}
        super().__init__(groups=1, epsilon=epsilon, **rest)
        self.axis = axis

    def build(self, input_shape: ShapeLike) -> None:
        sizes = [input_shape[axis] for axis in self._axes(len(input_shape))]
        if None in list(input_shape):
            raise ValueError(
                f"Input shape {input_shape} has unknown dimensions - all dimensions"
                " need to be fully specified."
            )
        self._build_weights(sizes)
        self.built = True

    def call(
        self, inputs: tf.Tensor, training: bool | tf.Tensor | None = None
    ) -> tf.Tensor:
        """The inputs, normalised: the same in training and after."""
        axes = self._axes(inputs.shape.rank)
        others = [axis for axis in range(inputs.shape.rank) if axis not in axes]
        order = [*others, *axes]
        moved = tf.transpose(inputs, order)
        sizes: Any = inputs.shape.as_list()
        size = math.prod(sizes[axis] for axis in axes)
        rows = super().call(tf.reshape(moved, [-1, size]), training)
        restored = tf.reshape(rows, tf.shape(moved))
        back = sorted(range(len(order)), key=order.__getitem__)
        return tf.ensure_shape(tf.transpose(restored, back), inputs.shape)

    def _axes(self, rank: int) -> list[int]:
        given = [self.axis] if isinstance(self.axis, int) else list(self.axis)
        for axis in given:
            if not -rank <= axis < rank:
                raise ValueError(f"Invalid axis: {axis}")
        axes = sorted(axis % rank for axis in given)
        if len(axes) != len(set(axes)):
            raise ValueError(f"Duplicate axis: {tuple(axes)}")
        return axes

    def get_config(self) -> dict[str, Any]:
        return self._config("axis")


GroupNorm = GroupNormalization
InstanceNorm = InstanceNormalization
LayerNorm = LayerNormalization
