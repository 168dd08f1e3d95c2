"""Chains of element-wise operators as one kernel, where TensorFlow has its compiler.

An operator of TensorFlow passes over memory once, a compiled chain of a dozen of them
as well. Compiling takes 60 ms for each size, and a call 10 us, so it is for large
tensors whose size is known.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf

__all__ = ["FOR_THE_HOST", "as_one_kernel", "is_worth_compiling"]


class _ForTheHost:
    """Says `jit_compile=True`, and is told apart from what programs say."""


FOR_THE_HOST = _ForTheHost()

# Elements from which an update is quicker as a kernel: 49 us against 75 us of operators
# at this size, 43 against 42 at half of it.
_MIN_ELEMENTS = 1 << 15


def is_worth_compiling(tensor: tf.Tensor) -> bool:
    """Whether a chain over a tensor is quicker as one kernel."""
    is_large = (tensor.shape.num_elements() or 0) >= _MIN_ELEMENTS
    return is_large and _has_compiler()


def as_one_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors, compiled for each size that it is called with."""
    compiler: Any = FOR_THE_HOST
    kernel = tf.function(function, jit_compile=compiler, autograph=False)

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        # Called itself, `kernel` would stand outside of a loop of TensorFlow 1 that it
        # is called in: TensorFlow puts what it compiles into a context without one.
        return kernel.get_concrete_function(*args)(*args)

    return call


@functools.cache
def _has_compiler() -> bool:
    """Whether this TensorFlow compiles for the CPU; some builds cannot."""
    with tf.init_scope(), tf.device("/device:CPU:0"):
        try:
            as_one_kernel(tf.negative)(tf.constant(1.0))
        except (tf.errors.OpError, NotImplementedError):
            return False
    return True
