"""Dense layers whose product is computed in parts."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow import keras
from tensorflow.python.ipu.ops import math_ops

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

    def call(self, inputs: Any) -> Any:
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
