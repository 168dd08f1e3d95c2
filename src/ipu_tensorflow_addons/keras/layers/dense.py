"""Dense layers: with a product in parts, and with numbers of eight bits."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.compat.v2 import keras
from tensorflow.python.ipu.ops import f8_ops, math_ops

from tensorflow_ipu._types import ShapeLike

_NO_NUMBER = 0x80  # in both formats of eight bits

# What the layer calls a dimension -> what the operator calls it.
_DIMENSIONS = {
    "input_columns": "a_columns",
    "input_rows_kernel_columns": "a_rows_b_columns",
    "kernel_rows": "b_rows",
}


class SerialDense(keras.layers.Dense):
    """`Dense` with the matrix product in `serialization_factor` parts.

    The parts are along the dimension named `input_columns`,
    `input_rows_kernel_columns` or `kernel_rows`.
    """

    def __init__(
        self,
        units: int,
        serialization_factor: int,
        serialization_dimension: str,
        **kwargs: Any,
    ) -> None:
        if serialization_dimension not in _DIMENSIONS:
            raise ValueError(
                f"Invalid serialization_dimension={serialization_dimension!r}: expected"
                f" one of {sorted(_DIMENSIONS)}."
            )
        super().__init__(units, **kwargs)
        self.serialization_factor = serialization_factor
        self.serialization_dimension = serialization_dimension

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The activation of inputs times kernel, plus bias."""
        shape = inputs.shape
        rows = tf.reshape(inputs, [-1, shape[-1]]) if shape.rank > 2 else inputs
        product = math_ops.serialized_matmul(
            tf.cast(rows, self.compute_dtype),
            self.kernel,
            self.serialization_factor,
            _DIMENSIONS[self.serialization_dimension],
        )
        product = tf.reshape(product, [*shape[:-1], self.units])
        if self.use_bias:
            product = tf.nn.bias_add(product, self.bias)
        return product if self.activation is None else self.activation(product)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "serialization_factor": self.serialization_factor,
            "serialization_dimension": self.serialization_dimension,
        }


class Dense(keras.layers.Dense):
    """`Dense` that also takes numbers of eight bits, as `ConvertToF8` gives them.

    Given a list of data and metadata, its kernel is one of 8-bit numbers in the format
    `kernel_format`, scaled by two to the `kernel_scale`, and its results are float16.
    `kernel_data_initializer` makes the bytes of the kernel; without it all numbers are
    equally likely.
    """

    def __init__(
        self,
        units: int,
        kernel_format: f8_ops.Format = f8_ops.Format.F143,
        kernel_scale: int = 0,
        kernel_data_initializer: Any = None,
        **kwargs: Any,
    ) -> None:
        if not -32 <= kernel_scale <= 31:
            raise ValueError(
                "`kernel_scale` should be in the range [-32, 31], but it is "
                f"{kernel_scale}."
            )
        super().__init__(units, **kwargs)
        self.kernel_format = f8_ops.Format(kernel_format)
        self.kernel_scale = kernel_scale
        self.kernel_data_initializer = keras.initializers.get(kernel_data_initializer)
        self.input_spec = None  # there may be two inputs

    def build(self, input_shape: Any) -> None:
        if not isinstance(input_shape, list):
            super().build(input_shape)
            return
        self.kernel_data = self.add_weight(
            name="kernel_data",
            shape=[input_shape[0][-1], self.units],
            initializer=self.kernel_data_initializer or _any_numbers,
            dtype="uint8",
        )
        metadata = f8_ops.create_metadata(self.kernel_format, self.kernel_scale)
        self.kernel_metadata = self.add_weight(
            name="kernel_metadata",
            shape=[],
            initializer=keras.initializers.Constant(metadata),
            dtype="uint8",
        )
        self.bias = self._half_bias() if self.use_bias else None
        self.built = True

    def _half_bias(self) -> Any:
        return self.add_weight(
            name="bias",
            shape=[self.units],
            initializer=self.bias_initializer,
            regularizer=self.bias_regularizer,
            constraint=self.bias_constraint,
            dtype="float16",
        )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The activation of inputs times kernel, plus bias."""
        if not isinstance(inputs, list):
            return super().call(inputs)
        kernel = f8_ops.QuarterTensor(
            tf.convert_to_tensor(self.kernel_data),
            tf.convert_to_tensor(self.kernel_metadata),
        )
        product = f8_ops.f8_matmul(f8_ops.QuarterTensor(*inputs), kernel)
        if self.bias is not None:
            product = tf.nn.bias_add(product, self.bias)
        return product if self.activation is None else self.activation(product)

    def get_config(self) -> dict[str, Any]:
        initializer = keras.initializers.serialize(self.kernel_data_initializer)
        return {
            **super().get_config(),
            "kernel_format": int(self.kernel_format),
            "kernel_scale": self.kernel_scale,
            "kernel_data_initializer": initializer,
        }


def _any_numbers(shape: ShapeLike, dtype: tf.DType) -> tf.Tensor:
    """Bytes that are all equally likely, but for the one that is no number."""
    drawn = tf.random.uniform(shape, 0, 256, tf.int32)
    return tf.cast(tf.where(drawn == _NO_NUMBER, 0, drawn), dtype)
