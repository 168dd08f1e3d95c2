"""Raw operators of neural networks: recurrent layers and group norms.

Arguments that choose precision, memory or kind of code change no value here; those of
recurrent layers are handed to the cost model.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any, NamedTuple

import tensorflow.compat.v2 as tf
from tensorflow.python.ipu import _errors
from tensorflow.python.ipu._modelling import layer_options

from . import _absent, _recurrent

Tensor = Any


class Lstm(NamedTuple):
    """All outputs, the last cell state, and what a backward pass would need."""

    output: Tensor
    output_c_state: Tensor
    intermediates: Tensor


class Gru(NamedTuple):
    """All outputs, and what a backward pass would need."""

    output: Tensor
    intermediates: Tensor


class GroupNorm(NamedTuple):
    """The normalised inputs, and the statistics of each group of each example."""

    output: Tensor
    mean: Tensor
    inv_std_dev: Tensor


class Statistics(NamedTuple):
    """Mean and reciprocal deviation of each group of each example, in one vector."""

    mean: Tensor
    inv_std_dev: Tensor


def popnn_lstm_layer(
    inputs: Tensor,
    input_h_state: Tensor,
    input_c_state: Tensor,
    kernel: Tensor,
    biases: Tensor,
    activation: str,
    recurrent_activation: str,
    num_channels: int,
    is_training: bool,
    name: str | None = None,
    **tuning: Any,
) -> Lstm:
    """An LSTM over a time-major sequence."""
    return popnn_dynamic_lstm_layer(
        inputs,
        input_h_state,
        input_c_state,
        kernel,
        biases,
        None,
        activation,
        recurrent_activation,
        num_channels,
        is_training,
        name=name,
        **tuning,
    )


def popnn_dynamic_lstm_layer(
    inputs: Tensor,
    input_h_state: Tensor,
    input_c_state: Tensor,
    kernel: Tensor,
    biases: Tensor,
    seq_len: Tensor | None,
    activation: str,
    recurrent_activation: str,
    num_channels: int,
    is_training: bool,
    preserve_final_state: bool = False,
    name: str | None = None,
    **tuning: Any,
) -> Lstm:
    """An LSTM over time-major sequences of different lengths.

    Without `preserve_final_state` the last state of shorter sequences is zero.
    """
    with _tuned(tuning), tf.name_scope(name or "PopnnLstmLayer"):
        outputs, last = _recurrent.lstm(
            inputs,
            input_h_state,
            input_c_state,
            kernel,
            biases,
            seq_len,
            (activation, recurrent_activation),
            keeps_last=preserve_final_state,
        )
    return Lstm(outputs, last, tf.zeros([0], outputs.dtype))


def popnn_gru_layer(
    inputs: Tensor,
    initial_state: Tensor,
    kernel: Tensor,
    biases: Tensor,
    activation: str,
    recurrent_activation: str,
    num_channels: int,
    is_training: bool,
    reset_after: bool = False,
    name: str | None = None,
    **tuning: Any,
) -> Gru:
    """A GRU over a time-major sequence."""
    layer = (inputs, initial_state, kernel, biases)
    activations = (activation, recurrent_activation)
    with _tuned(tuning):
        return _gru(layer, activations, reset_after, None, None, name)


def popnn_dynamic_gru_layer(
    inputs: Tensor,
    initial_state: Tensor,
    kernel: Tensor,
    biases: Tensor,
    seq_len: Tensor,
    activation: str,
    recurrent_activation: str,
    num_channels: int,
    is_training: bool,
    reset_after: bool = False,
    name: str | None = None,
    **tuning: Any,
) -> Gru:
    """A GRU over time-major sequences of different lengths."""
    layer = (inputs, initial_state, kernel, biases)
    activations = (activation, recurrent_activation)
    with _tuned(tuning):
        return _gru(layer, activations, reset_after, seq_len, None, name)


def popnn_augru_layer(
    inputs: Tensor,
    initial_state: Tensor,
    kernel: Tensor,
    biases: Tensor,
    seq_len: Tensor,
    att_score: Tensor,
    activation: str,
    recurrent_activation: str,
    num_channels: int,
    is_training: bool,
    reset_after: bool = False,
    name: str | None = None,
    **tuning: Any,
) -> Gru:
    """A GRU whose update gates are scaled by one minus an attention score."""
    layer = (inputs, initial_state, kernel, biases)
    activations = (activation, recurrent_activation)
    with _tuned(tuning):
        return _gru(layer, activations, reset_after, seq_len, att_score, name)


popnn_a_u_g_r_u_layer = popnn_augru_layer


def _gru(
    layer: tuple[Tensor, Tensor, Tensor, Tensor],
    activations: tuple[str, str],
    resets_after: bool,
    seq_len: Tensor | None,
    att_score: Tensor | None,
    name: str | None,
) -> Gru:
    with tf.name_scope(name or "PopnnGruLayer"):
        outputs = _recurrent.gru(*layer, seq_len, att_score, activations, resets_after)
    return Gru(outputs, tf.zeros([0], outputs.dtype))


def _tuned(arguments: dict[str, Any]) -> contextlib.AbstractContextManager[None]:
    """Layers built inside are planned as these arguments say."""
    known = {
        "partials_dtype",
        "options",
        "options_bwd",
        "available_memory_proportion_fwd",
        "available_memory_proportion_bwd",
    }
    unknown = sorted(set(arguments) - known)
    if unknown:
        raise TypeError(f"There are no arguments {unknown}.")
    options = {
        name: json.loads(arguments.get(name) or "{}") or {}
        for name in ("options", "options_bwd")
    }
    for name, given in options.items():
        _check_options(name, given)
    return layer_options.tuned(**{**arguments, **options})


def _check_options(name: str, options: dict[str, Any]) -> None:
    proportion = float(options.get("availableMemoryProportion") or 0)
    if proportion < 0:
        raise _errors.error(
            tf.errors.InternalError,
            f"availableMemoryProportion is {proportion} in {name}: Value must be"
            " greater than or equal to 0. It is a part of a tile's memory.",
        )


def popnn_group_norm_training(
    inputs: Tensor,
    gamma: Tensor,
    beta: Tensor,
    data_format: str,
    epsilon: float,
    num_groups: int,
    strided_channel_grouping: bool = True,
    name: str | None = None,
) -> GroupNorm:
    """Normalise groups of channels by their own statistics."""
    grouping = _Grouping(data_format, num_groups, strided_channel_grouping)
    statistics = _statistics(inputs, grouping, epsilon)
    return GroupNorm(_normalise(inputs, gamma, beta, statistics, grouping), *statistics)


def popnn_group_norm_inference(
    inputs: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    inv_std_dev: Tensor,
    data_format: str,
    epsilon: float,
    num_groups: int,
    strided_channel_grouping: bool = True,
    name: str | None = None,
) -> Tensor:
    """Normalise groups of channels by given statistics."""
    grouping = _Grouping(data_format, num_groups, strided_channel_grouping)
    return _normalise(inputs, gamma, beta, Statistics(mean, inv_std_dev), grouping)


def popnn_group_norm_statistics(
    inputs: Tensor,
    data_format: str,
    epsilon: float,
    num_groups: int,
    strided_channel_grouping: bool = True,
    name: str | None = None,
) -> Statistics:
    """The statistics of groups of channels."""
    grouping = _Grouping(data_format, num_groups, strided_channel_grouping)
    return _statistics(inputs, grouping, epsilon)


class _Grouping(NamedTuple):
    data_format: str
    num_groups: int
    is_strided: bool

    def split(self, inputs: Tensor) -> Tensor:
        """As [examples, groups, members, everything else]."""
        inputs = tf.convert_to_tensor(inputs)
        rank = inputs.shape.rank
        axis = self.data_format.index("C")
        order = [0, axis, *(i for i in range(1, rank) if i != axis)]
        moved: Any = tf.transpose(inputs, order)
        size = [-1, self.num_groups] if self.is_strided else [self.num_groups, -1]
        members = moved.shape.as_list()[1] // self.num_groups
        size = [members if s == -1 else s for s in size]
        split = tf.reshape(moved, [moved.shape.as_list()[0], *size, -1])
        return tf.transpose(split, [0, 2, 1, 3]) if self.is_strided else split

    def join(self, split: Tensor, like: Tensor) -> Tensor:
        """The inverse of `split`, in the shape of `like`."""
        axis = self.data_format.index("C")
        shape = list(like.shape)
        moved = [shape[0], shape[axis], *(shape[1:axis] + shape[axis + 1 :])]
        back = tf.transpose(split, [0, 2, 1, 3]) if self.is_strided else split
        order = list(range(2, len(shape)))
        order.insert(axis - 1, 1)
        return tf.transpose(tf.reshape(back, moved), [0, *order])


def _statistics(inputs: Tensor, grouping: _Grouping, epsilon: float) -> Statistics:
    mean, variance = tf.nn.moments(grouping.split(inputs), axes=[2, 3])
    inv_std_dev = tf.math.rsqrt(variance + epsilon)
    return Statistics(tf.reshape(mean, [-1]), tf.reshape(inv_std_dev, [-1]))


def _normalise(
    inputs: Tensor,
    gamma: Tensor,
    beta: Tensor,
    statistics: Statistics,
    grouping: _Grouping,
) -> Tensor:
    inputs = tf.convert_to_tensor(inputs)
    shape = [inputs.shape.as_list()[0], grouping.num_groups, 1, 1]
    mean, inv_std_dev = (tf.reshape(s, shape) for s in statistics)
    normal = grouping.join((grouping.split(inputs) - mean) * inv_std_dev, inputs)
    axis = grouping.data_format.index("C")
    along = [-1 if i == axis else 1 for i in range(inputs.shape.rank)]
    return normal * tf.reshape(gamma, along) + tf.reshape(beta, along)


__getattr__ = _absent.explain(__name__, {"": "ops.nn_ops or ops.normalization_ops"})
