"""LSTM and GRU for graphs of TensorFlow 1, as the device's library defines them.

Inputs are [time, batch, channels]. The kernel holds the weights of the inputs above
those of the state; biases are one row for each gate.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.compiler.plugin.poplar.ops import gen_popnn_ops
from tensorflow.python import ipu  # noqa: F401  makes the program one for the IPU

from tensorflow_ipu._types import DTypeLike, ShapeLike

from ..._options import check_options

v1 = tf.compat.v1
LSTMStateTuple = v1.nn.rnn_cell.LSTMStateTuple


_Layer: Any = v1.layers.Layer


class _Recurrent(_Layer):
    """Weights and settings that the layers share."""

    num_gates: int

    def __init__(
        self,
        num_units: int,
        dtype: DTypeLike = tf.float32,
        partials_dtype: Any = tf.float32,
        seed: int | None = None,
        weights_initializer: Any = None,
        bias_initializer: Any = None,
        activation: str = "tanh",
        recurrent_activation: str = "sigmoid",
        return_state: bool = True,
        name: str | None = None,
        options: dict[str, Any] | None = None,
        options_bwd: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(dtype=dtype, name=name)
        for chosen in (dtype, partials_dtype):
            if tf.as_dtype(chosen) not in (tf.float16, tf.float32):
                raise ValueError(f"Only support float16, float32, provided {chosen}")
        check_options(options, options_bwd)
        self._tuning = {
            "partials_dtype": partials_dtype,
            "options": json.dumps(options),
            "options_bwd": json.dumps(options_bwd),
        }
        self.num_units = num_units
        self._weights_initializer = weights_initializer
        self._seed = seed
        self._bias_initializer = bias_initializer or v1.zeros_initializer()
        self._activation = activation
        self._recurrent_activation = recurrent_activation
        self._return_state = return_state
        self.kernel: Any = None
        self.biases: Any = None

    def build(self, input_shape: ShapeLike) -> None:
        shape: Any = tf.TensorShape(input_shape)
        channels = tf.compat.dimension_value(shape[2]) if shape.rank == 3 else None
        if channels is None:
            raise ValueError(
                f"Expecting an input of [time, batch, channels], got {shape}."
            )
        initializer = self._weights_initializer
        if initializer is None:
            initializer = v1.glorot_uniform_initializer(self._seed, dtype=self.dtype)
        self.kernel = self.add_weight(
            "kernel",
            shape=[channels + self.num_units, self.num_units * self.num_gates],
            initializer=initializer,
        )
        self.biases = self.add_weight(
            "biases", shape=self._bias_shape(), initializer=self._bias_initializer
        )
        super().build(input_shape)

    def state_shape(self, batch_size: Any) -> Any:
        """The shape of one state tensor."""
        return [batch_size, self.num_units]

    def _bias_shape(self) -> list[int]:
        return [self.num_gates, self.num_units]

    def _arguments(self, inputs: tf.Tensor, training: bool) -> dict[str, Any]:
        return {
            "inputs": inputs,
            "kernel": self.kernel,
            "biases": self.biases,
            "activation": self._activation,
            "recurrent_activation": self._recurrent_activation,
            "num_channels": self.num_units,
            "is_training": training,
            "name": self.name,
            **self._tuning,
        }

    def _zeros(self, inputs: tf.Tensor) -> tf.Tensor:
        return tf.zeros(self.state_shape(tf.shape(inputs)[1]), self.dtype)


class _LSTM(_Recurrent):
    """Long short-term memory."""

    num_gates = 4

    def _run(
        self,
        inputs: tf.Tensor,
        initial_state: Sequence[tf.Tensor],
        training: bool,
        seq_len: tf.Tensor | None = None,
    ) -> tf.Tensor | tuple[tf.Tensor, ...]:
        inputs = tf.convert_to_tensor(inputs, self.dtype)
        if initial_state is None:
            initial_state = LSTMStateTuple(self._zeros(inputs), self._zeros(inputs))
        if not isinstance(initial_state, LSTMStateTuple):
            raise ValueError(
                f"Invalid initial_state type: `{type(initial_state)}`, expecting"
                " `LSTMStateTuple`."
            )
        c, h = initial_state
        outputs, last, _ = gen_popnn_ops.popnn_dynamic_lstm_layer(
            input_h_state=h,
            input_c_state=c,
            seq_len=seq_len,
            preserve_final_state=True,
            **self._arguments(inputs, training),
        )
        if not self._return_state:
            return outputs
        return outputs, LSTMStateTuple(last, _last_outputs(outputs, seq_len))


class PopnnLSTM(_LSTM):
    """Long short-term memory; its state is an `LSTMStateTuple`."""

    def call(
        self,
        inputs: tf.Tensor,
        initial_state: Sequence[tf.Tensor] | None = None,
        training: bool = True,
    ) -> tf.Tensor | tuple[tf.Tensor, ...]:
        """All outputs, and the last state if that is wanted."""
        return self._run(inputs, initial_state, training)


class PopnnDynamicLSTM(_LSTM):
    """The same for sequences of different lengths."""

    def call(
        self,
        inputs: tf.Tensor,
        seq_len: tf.Tensor,
        initial_state: Sequence[tf.Tensor] | None = None,
        training: bool = True,
    ) -> tf.Tensor | tuple[tf.Tensor, ...]:
        """All outputs, and the last state if that is wanted."""
        return self._run(inputs, initial_state, training, seq_len)


class _GRU(_Recurrent):
    """Gated recurrent unit."""

    num_gates = 3

    def __init__(
        self, num_units: int, reset_after: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(num_units, **kwargs)
        self._reset_after = reset_after

    def _run(
        self,
        operator: Any,
        inputs: tf.Tensor,
        initial_state: Sequence[tf.Tensor],
        training: bool,
        **more: Any,
    ) -> tf.Tensor | tuple[tf.Tensor, ...]:
        inputs = tf.convert_to_tensor(inputs, self.dtype)
        if initial_state is None:
            initial_state = self._zeros(inputs)
        outputs, _ = operator(
            initial_state=tf.convert_to_tensor(initial_state, self.dtype),
            reset_after=self._reset_after,
            **more,
            **self._arguments(inputs, training),
        )
        if not self._return_state:
            return outputs
        return outputs, _last_outputs(outputs, more.get("seq_len"))

    def _bias_shape(self) -> list[int]:
        if self._reset_after:
            return [self.num_gates, 2, self.num_units]
        return super()._bias_shape()


class PopnnGRU(_GRU):
    """Gated recurrent unit."""

    def call(
        self,
        inputs: tf.Tensor,
        initial_state: Sequence[tf.Tensor] | None = None,
        training: bool = True,
    ) -> tf.Tensor | tuple[tf.Tensor, ...]:
        """All outputs, and the last state if that is wanted."""
        return self._run(gen_popnn_ops.popnn_gru_layer, inputs, initial_state, training)


class PopnnDynamicGRU(_GRU):
    """The same for sequences of different lengths."""

    def call(
        self,
        inputs: tf.Tensor,
        seq_len: tf.Tensor,
        initial_state: Sequence[tf.Tensor] | None = None,
        training: bool = True,
        time_major: bool = True,
    ) -> tf.Tensor | tuple[tf.Tensor, ...]:
        """All outputs, and the last state if that is wanted.

        Without `time_major` the inputs are [batch, time, channels]; outputs never are.
        """
        inputs = inputs if time_major else tf.transpose(inputs, [1, 0, 2])
        operator = gen_popnn_ops.popnn_dynamic_gru_layer
        return self._run(operator, inputs, initial_state, training, seq_len=seq_len)


class PopnnAUGRU(_GRU):
    """A GRU whose update gates an attention score scales."""

    def call(
        self,
        inputs: tf.Tensor,
        seq_len: tf.Tensor,
        attention_score: Any,
        initial_state: Sequence[tf.Tensor] | None = None,
        training: bool = True,
        time_major: bool = True,
    ) -> tf.Tensor | tuple[tf.Tensor, ...]:
        """All outputs, and the last state if that is wanted.

        Without `time_major` inputs and scores have the batch first; outputs never do.
        """
        if not time_major:
            inputs = tf.transpose(inputs, [1, 0, 2])
            attention_score = tf.transpose(attention_score, [1, 0])
        return self._run(
            gen_popnn_ops.popnn_augru_layer,
            inputs,
            initial_state,
            training,
            seq_len=seq_len,
            att_score=tf.convert_to_tensor(attention_score, self.dtype),
        )


def _last_outputs(outputs: tf.Tensor, seq_len: tf.Tensor) -> tf.Tensor:
    """The output of each sequence's last step."""
    if seq_len is None:
        return outputs[-1]
    by_example = tf.transpose(outputs, [1, 0, 2])
    return tf.gather(by_example, tf.cast(seq_len, tf.int32) - 1, batch_dims=1)
