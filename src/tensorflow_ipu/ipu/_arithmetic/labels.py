"""Labels that name no class: their loss is not a number, as on the device.

In: the function that makes the cross entropy of labels. Out: one of the same arguments,
for programs on the IPU. The CPU's kernel refuses the whole batch instead.
"""

from __future__ import annotations

import functools
import math
from types import ModuleType
from typing import Any

import tensorflow.compat.v2 as tf

from popple.engine.tensorflow import region
from popple.marks import NOTHING, SAME
from tensorflow_ipu._types import TensorLike

from .._programs import compilation

_NAME = "sparse_softmax_cross_entropy_with_logits"


def complete(module: ModuleType) -> None:
    """Replace the function of `gen_nn_ops`."""
    stock = getattr(module, _NAME)

    @functools.wraps(stock)
    def cross_entropy(
        features: TensorLike, labels: TensorLike, name: str | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        if compilation.compiling():
            features, labels = _known(features, labels)
        return stock(features, labels, name)

    setattr(module, _NAME, cross_entropy)


def _known(features: Any, labels: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Rows of logits and labels that the kernel takes; wrong labels spoil their row."""
    features = tf.convert_to_tensor(features)
    labels = tf.convert_to_tensor(labels)
    with region(NOTHING):
        num_classes = tf.cast(tf.shape(features)[-1], labels.dtype)
        is_class = (labels >= 0) & (labels < num_classes)
    with region(SAME):
        # Added, not multiplied: the gradient of the other rows stays as it is.
        spoiled = tf.where(is_class, 0.0, math.nan)
        features += tf.cast(spoiled, features.dtype)[:, tf.newaxis]
    with region(SAME):
        labels = tf.where(is_class, labels, tf.zeros_like(labels))
    return features, labels
