"""Recurrent layers: those of Keras, without what the device cannot do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.compat.v2 import keras
from tensorflow.compiler.plugin.poplar.ops import _recurrent
from tensorflow.python.ipu._modelling import layer_options

from ..._options import check_options
from .ipu_layer import check_unsupported

# Arguments of Keras -> the only value that the device takes.
_UNSUPPORTED = {
    "kernel_regularizer": None,
    "recurrent_regularizer": None,
    "bias_regularizer": None,
    "activity_regularizer": None,
    "kernel_constraint": None,
    "recurrent_constraint": None,
    "bias_constraint": None,
    "recurrent_dropout": 0.0,
    "go_backwards": False,
    "unroll": False,
}
# Arguments that tune the device and change no value.
_TUNING = (
    "available_memory_proportion_bwd",
    "available_memory_proportion_fwd",
    "options",
    "options_bwd",
    "partials_dtype",
)


class _Weights:
    """The weights of a layer's cell, as its own."""

    cell: Any

    @property
    def kernel(self) -> tf.Variable:
        """What inputs are multiplied with."""
        return self.cell.kernel

    @property
    def recurrent_kernel(self) -> tf.Variable:
        """What the state is multiplied with."""
        return self.cell.recurrent_kernel

    @property
    def biases(self) -> tf.Variable:
        """What is added to the products."""
        return self.cell.bias


class LSTM(keras.layers.LSTM, _Weights):
    """Long short-term memory; `seed` is that of the weights."""

    def __init__(self, units: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(units, *args, **_arguments("LSTM", kwargs))
        self._tuning = _tuning(kwargs)

    def call(
        self,
        inputs: tf.Tensor,
        mask: Any = None,
        training: bool | tf.Tensor | None = None,
        initial_state: Sequence[tf.Tensor] | None = None,
    ) -> tf.Tensor | list[tf.Tensor]:
        """What the layer of Keras gives."""
        with layer_options.tuned(**self._tuning):
            return super().call(inputs, mask, training, initial_state)


class GRU(keras.layers.GRU, _Weights):
    """Gated recurrent unit; the reset gate comes before the product by default."""

    def __init__(self, units: int, *args: Any, **kwargs: Any) -> None:
        arguments = {"reset_after": False, **_arguments("GRU", kwargs)}
        super().__init__(units, *args, **arguments)
        self._tuning = _tuning(kwargs)

    def call(
        self,
        inputs: tf.Tensor,
        mask: Any = None,
        training: bool | tf.Tensor | None = None,
        initial_state: Sequence[tf.Tensor] | None = None,
    ) -> tf.Tensor | list[tf.Tensor]:
        """Outputs, or the last one, and the last state if that is wanted.

        Keras has no function for a layer whose reset gate comes first.
        """
        with layer_options.tuned(**self._tuning):
            if mask is not None or not self._is_plain(inputs):
                return super().call(inputs, mask, training, initial_state)
            return self._call_plain(inputs, initial_state)

    def _call_plain(
        self, inputs: tf.Tensor, initial_state: Sequence[tf.Tensor] | None
    ) -> tf.Tensor | list[tf.Tensor]:
        if initial_state is None:
            initial_state = self.get_initial_state(inputs)
        outputs = _recurrent.gru(
            inputs if self.time_major else tf.transpose(inputs, [1, 0, 2]),
            tf.nest.flatten(initial_state)[0],
            self.kernel,
            tf.reshape(self.biases, [3, -1]),
            None,
            None,
            self._activations(),
            resets_after=False,
            recurrent_kernel=self.recurrent_kernel,
        )
        last = outputs[-1]
        if self.return_sequences:
            result = outputs if self.time_major else tf.transpose(outputs, [1, 0, 2])
        else:
            result = last
        return [result, last] if self.return_state else result

    def _is_plain(self, inputs: tf.Tensor) -> bool:
        """Whether the layer is one loop and nothing else."""
        is_more = self.reset_after or self.stateful or self.dropout
        is_known = set(self._activations()) <= set(_recurrent.ACTIVATIONS)
        return is_known and not is_more and isinstance(inputs, tf.Tensor)

    def _activations(self) -> tuple[str, str]:
        """Names of the functions of outputs and gates."""
        functions = (self.activation, self.recurrent_activation)
        first, second = map(keras.activations.serialize, functions)
        return str(first), str(second)


def _tuning(given: dict[str, Any]) -> dict[str, Any]:
    """Arguments that tune the device, as the model of its cost takes them."""
    return {name: given[name] for name in _TUNING if name in given}


def _arguments(layer: str, given: dict[str, Any]) -> dict[str, Any]:
    """What Keras is given, once everything is checked."""
    check_unsupported(layer, given, _UNSUPPORTED)
    check_options(given.get("options"), given.get("options_bwd"))
    if not given.get("use_bias", True):
        raise NotImplementedError(
            f"IPU custom {layer} layer does not support use_bias = False."
        )
    dropped = (*_TUNING, "dropout_seed")
    kept = {name: given[name] for name in given if name not in dropped}
    seed = kept.pop("seed", None)
    if seed is not None:
        initializers = keras.initializers
        kept.setdefault("kernel_initializer", initializers.GlorotUniform(seed))
        kept.setdefault("recurrent_initializer", initializers.Orthogonal(seed=seed))
    return kept


PopnnGRU = GRU
PopnnLSTM = LSTM
