"""Embeddings whose lookup can be divided."""

from __future__ import annotations

from typing import Any

from tensorflow.compat.v2 import keras
from tensorflow.python.ipu.ops import embedding_ops

from tensorflow_ipu._types import ShapeLike

from .ipu_layer import IPULayer, check_unsupported

_UNSUPPORTED = {
    "embeddings_regularizer": None,
    "activity_regularizer": None,
    "embeddings_constraint": None,
    "mask_zero": False,
    "input_length": None,
}


class Embedding(IPULayer):
    """Rows of a table, for a batch of sequences of indices.

    `serialization_factor` divides the table among as many lookups, one after another,
    where another layer uses the table too.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        serialization_factor: int = 1,
        **kwargs: Any,
    ) -> None:
        check_unsupported("Embedding", kwargs, _UNSUPPORTED)
        rest = {key: kwargs[key] for key in kwargs if key not in _UNSUPPORTED}
        super().__init__(**{**rest, "autocast": False})
        self.input_dim = input_dim
        self.output_dim = output_dim
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.serialization_factor = serialization_factor
        self.embeddings: Any = None

    def build(self, input_shape: ShapeLike) -> None:
        if len(input_shape) != 2:
            raise ValueError(
                "The input shape should be a tensor of shape [batch, input_length], not"
                f" {input_shape}."
            )
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.input_dim, self.output_dim),
            initializer=self.embeddings_initializer,
        )
        super().build(input_shape)

    def call(
        self, inputs: Any, inputs_are_sorted: Any = False, training: Any = None
    ) -> Any:
        """The rows of these indices; sorted ones are looked up faster."""
        del training
        return embedding_ops.embedding_lookup(
            self.embeddings,
            ids=inputs,
            serialization_factor=self.serialization_factor,
            indices_are_sorted=inputs_are_sorted,
            name=self.name,
        )

    def compute_output_shape(self, input_shape: ShapeLike) -> Any:
        """The shape of the indices, and one dimension more."""
        return (*input_shape, self.output_dim)

    def get_config(self) -> dict[str, Any]:
        initializer = keras.initializers.serialize(self.embeddings_initializer)
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "embeddings_initializer": initializer,
            "serialization_factor": self.serialization_factor,
        }
