"""Dropout with the random numbers of the device."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.compat.v2 import keras
from tensorflow.python.ipu.ops import rand_ops

from tensorflow_ipu._types import ShapeLike

from .ipu_layer import IPULayer


class Dropout(IPULayer):
    """Zeros a part of its inputs in training, and scales the rest up.

    `seed` is two int32 numbers; without it every call draws anew. `ref` chose between
    two ways to store what is kept and changes no value.
    """

    def __init__(
        self,
        rate: float = 0.5,
        noise_shape: Any = None,
        seed: Any = None,
        **kwargs: Any,
    ) -> None:
        kwargs.pop("ref", None)
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"rate is {rate}, and it must be in the range [0, 1).")
        self.rate = rate
        self.noise_shape = noise_shape
        self.seed = seed

    def call(
        self, inputs: tf.Tensor, training: bool | tf.Tensor | None = None
    ) -> tf.Tensor:
        """The inputs, in training without a part of them."""
        phase: Any = keras.backend.learning_phase() if training is None else training
        if isinstance(phase, bool | int):
            return self._dropped(inputs) if phase else tf.identity(inputs)
        return tf.cond(
            tf.cast(phase, tf.bool),
            lambda: self._dropped(inputs),
            lambda: tf.identity(inputs),
        )

    def _dropped(self, inputs: tf.Tensor) -> tf.Tensor:
        return rand_ops.dropout(
            inputs, rate=self.rate, noise_shape=self.noise_shape, seed=self.seed
        )

    def compute_output_shape(self, input_shape: ShapeLike) -> Any:
        """That of the inputs."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "rate": self.rate,
            "noise_shape": self.noise_shape,
            "seed": self.seed,
        }
