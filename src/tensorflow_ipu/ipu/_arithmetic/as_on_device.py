"""Operations of a program give what the device would give, while the CPU runs them.

In: every operation that a program makes, as TensorFlow hands it to a callback. Out: the
tensors that the program goes on with: rounded, checked and cut off as the configuration
says (`floating_point_behaviour`). Gradients pass as if nothing was, and so does the
cost: what is added here is marked as none of the machine's business.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import tensorflow.compat.v2 as tf
from tensorflow.python.eager import context, record

from tensorflow_ipu._translate import Arithmetic, arithmetic_of

from .. import _device
from . import exceptions, float16, half_products, rounding
from .made_op import MadeOp

__all__ = ["computing", "configured", "is_computing", "is_plain"]


class _Callback:
    """What TensorFlow calls with every new operation."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self._arithmetic = arithmetic

    def __call__(
        self,
        op_type: str,
        inputs: Sequence[tf.Tensor],
        attrs: object,
        outputs: Sequence[tf.Tensor],
        op_name: str | None = None,
        graph: tf.Graph | None = None,
    ) -> list[tf.Tensor]:
        """The outputs of a new operation; TensorFlow goes on with what is returned."""
        # A list, as operations give it: Keras changes some in place.
        if graph is None:
            return list(outputs)
        made = MadeOp(op_type, op_name or "", graph, tuple(inputs), tuple(outputs))
        # Tapes record what is returned as the output of the operation itself.
        with record.stop_recording():
            return self._computed(made)

    def _computed(self, made: MadeOp) -> list[tf.Tensor]:
        """Rounding comes first: a check looks at what was rounded, a cut at both."""
        if rounding.is_wanted(made, self._arithmetic):
            made = made.giving(rounding.rounded(made))
        elif half_products.is_half_product(made):
            return self._multiplied(made)
        else:
            made = made.giving(float16.summed(made))
        return self._within_range(made)

    def _multiplied(self, made: MadeOp) -> list[tf.Tensor]:
        """A product: where nobody looks for overflows, it is cut off in float32.

        That takes half the time that it takes in half precision.
        """
        arithmetic = self._arithmetic
        if arithmetic.nan_on_overflow or arithmetic.stops_somewhere:
            rounded = half_products.multiplied(made, float16.rounded)
            return self._within_range(made.giving(rounded))
        return half_products.multiplied(made, float16.clipped_and_rounded)

    def _within_range(self, made: MadeOp) -> list[tf.Tensor]:
        if self._arithmetic.stops_somewhere:
            made = made.giving(exceptions.checked(made, self._arithmetic))
        return float16.within_range(made, self._arithmetic.nan_on_overflow)


def configured() -> Arithmetic:
    """The arithmetic that the device is configured for."""
    return arithmetic_of(_device.get_options())


def is_plain() -> bool:
    """Whether results are rounded to the nearest here and nobody looks for more."""
    arithmetic = configured()
    if arithmetic.nan_on_overflow or arithmetic.stops_somewhere:
        return False
    return not rounding.is_random(tf.compat.v1.get_default_graph(), arithmetic)


@contextlib.contextmanager
def computing() -> Iterator[None]:
    """Operations made inside compute as the device is configured to."""
    if is_computing():
        yield
        return
    current = context.context()
    callback = _Callback(configured())
    current.add_op_callback(callback)
    try:
        yield
    finally:
        current.remove_op_callback(callback)


def is_computing() -> bool:
    """Whether operations made now compute as the device does."""
    callbacks = context.context().op_callbacks
    return any(isinstance(callback, _Callback) for callback in callbacks)
