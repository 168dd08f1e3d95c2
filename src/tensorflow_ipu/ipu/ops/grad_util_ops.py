"""Places in a model at which gradients are kept."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from ..eager import backprop
from ._tensors import Gradient, Tensor


def capture_upstream_gradients(args: Any, tag: str = "") -> tf.Tensor | list[tf.Tensor]:
    """The same tensors; the gradients that arrive here are kept under `tag`.

    They are found in `captured_gradients` of the `GradientCaptureContext` or
    `GradientCaptureTape` around this call.
    """
    context = backprop.innermost_context()

    @tf.custom_gradient
    def marked(*values: Tensor) -> tuple[list[Tensor], Gradient]:
        def gradient(*gradients: Tensor) -> list[Tensor]:
            keeper = context or backprop.innermost_context()
            if keeper is None:
                raise RuntimeError(
                    "capture_upstream_gradients may only be used within the context of "
                    "ipu.eager.backprop.GradientCaptureTape or GradientCaptureContext."
                )
            keeper.capture(tag, list(gradients))
            return list(gradients)

        return [tf.identity(value) for value in values], gradient

    flat = [tf.convert_to_tensor(value) for value in tf.nest.flatten(args)]
    return tf.nest.pack_sequence_as(args, list(marked(*flat)))
