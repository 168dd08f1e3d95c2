"""Types of arguments for which TensorFlow has no name, or more than one.

They say to a reader what is accepted; TensorFlow itself converts most of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, Union

import numpy as np
import tensorflow.compat.v2 as tf
from google.protobuf.message import Message

__all__ = [
    "Callbacks",
    "DTypeLike",
    "Data",
    "Function",
    "GradientsAndVariables",
    "Infeed",
    "IpuOptions",
    "Message",
    "Optimizer",
    "Returned",
    "ShapeLike",
    "TensorLike",
    "Tensors",
    "UpdateState",
]

Tensors: TypeAlias = tf.Tensor | Sequence["Tensors"] | Mapping[str, "Tensors"]
"""A tensor, or tensors in lists, tuples and dictionaries, as `tf.nest` takes them."""

Returned: TypeAlias = Tensors | tf.Operation | None
"""What a program gives: tensors, or the operation that runs it."""

TensorLike: TypeAlias = tf.Tensor | tf.Variable | np.ndarray | Sequence[Any] | float
"""What `tf.convert_to_tensor` takes."""

DTypeLike: TypeAlias = Union[tf.DType, "np.dtype[Any]", type, str]
"""What `tf.as_dtype` takes."""

ShapeLike: TypeAlias = tf.TensorShape | tf.Tensor | Sequence[int | None]
"""What `tf.TensorShape` takes, or a shape that is computed."""

GradientsAndVariables: TypeAlias = Iterable[
    tuple[tf.Tensor | tf.IndexedSlices | None, tf.Variable]
]
"""Gradients, where there are any, and what they are the gradients of."""

UpdateState: TypeAlias = Mapping[tuple[str, tf.DType], Mapping[str, tf.Tensor]]
"""Hyperparameters of a Keras optimiser, by device and type of the variables."""

Data: TypeAlias = Tensors | np.ndarray | tf.data.Dataset | Iterable[Any] | None
"""What Keras models are trained on and asked about."""

# As text: Keras is loaded by programs that use it.
Callbacks: TypeAlias = (
    "tf.keras.callbacks.CallbackList | Sequence[tf.keras.callbacks.Callback] | None"
)
"""Who hears of the steps of a Keras model."""

Function: TypeAlias = Callable[..., Any]
"""A function of the program; a `tf.function` is one too."""

IpuOptions: TypeAlias = Message
"""The configuration as a message: its class is made when it is imported."""


class Optimizer(Protocol):
    """An optimiser of TensorFlow 1 or of Keras, of whichever Keras."""

    def apply_gradients(
        self, grads_and_vars: GradientsAndVariables, *args: Any, **kwargs: Any
    ) -> Any:
        """Update the variables."""
        ...


class Infeed(Protocol):
    """What a loop reads: an `IPUInfeedQueue`."""

    @property
    def dequeued(self) -> bool:
        """Whether a program reads it."""
        ...

    @property
    def number_of_tuple_elements(self) -> int:
        """How many arguments an element gives to the body of a loop."""
        ...

    def _dequeue(self) -> Any: ...
