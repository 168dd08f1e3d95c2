"""Floating-point exceptions: an operation that goes wrong stops the program.

In: an operation, and which of its mistakes the configuration calls exceptions
(`floating_point_behaviour.inv`, `div0`, `oflo`). Out: its results, which fail to come
if it makes one: a NaN of operands that had none, a quotient by zero, an infinity of
finite operands. As on the machine a program stops where an exception arises, not where
a NaN that came with the data is passed on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

import tensorflow.compat.v2 as tf

from popple.engine.tensorflow import region
from popple.marks import NOTHING
from tensorflow_ipu._translate import Arithmetic

from .. import _errors
from .float16 import CONVERSION
from .made_op import MadeOp

__all__ = ["checked"]

# Functions with a pole: the operand that stands below a line, and where the pole is.
_POLES = {
    "Div": (1, 0.0),
    "Inv": (0, 0.0),
    "Log": (0, 0.0),
    "Log1p": (0, -1.0),
    "RealDiv": (1, 0.0),
    "Reciprocal": (0, 0.0),
    "Rsqrt": (0, 0.0),
    "Xdivy": (1, 0.0),
    # No division, as programs take such powers and replace the infinite ones.
    "Pow": (0, 0.0),
}
_NOT_DIVIDING = frozenset({"Pow"})
_ORDERS = frozenset({"Greater", "GreaterEqual", "Less", "LessEqual"})

# Control flow, whose parts are checked themselves (and whose operations of TensorFlow 1
# may not be separated), and what the host computes or only passes on.
_UNCHECKED = frozenset(
    {
        "Case",
        "EagerPyFunc",
        "Enter",
        "Exit",
        "ExpandDims",
        "Identity",
        "IdentityN",
        "If",
        "Merge",
        "NextIteration",
        "PartitionedCall",
        "PlaceholderWithDefault",
        "PyFunc",
        "PyFuncStateless",
        "RefEnter",
        "Reshape",
        "Squeeze",
        "StatefulPartitionedCall",
        "StatelessCase",
        "StatelessIf",
        "StatelessWhile",
        "StopGradient",
        "Switch",
        "SymbolicGradient",
        "While",
    }
)
# Memory of TensorFlow 1, whose order is told by tensors that look like numbers.
_KEPT = ("Stack", "TensorArray", "TensorList")
_HANDLES = (tf.resource, tf.variant)
# The mark of what the host computes, see `_programs.outside_compilation`.
_OUTSIDE = "_xla_outside_compilation"

Test = Callable[[tf.Tensor], tf.Tensor]


def checked(made: MadeOp, stops: Arithmetic) -> list[tf.Tensor]:
    """The results of an operation, tied to checks of them."""
    if _is_unchecked(made):
        return list(made.outputs)
    # The machine has no part in what is asked here, so the cost model has none.
    with region(NOTHING):
        asserts = [_assertion(*problem) for problem in _problems(made, stops)]
    if not asserts:
        return list(made.outputs)
    # By control dependency: whoever takes the result waits for the check of it.
    with tf.control_dependencies(asserts):
        return [
            output if output.dtype in _HANDLES else tf.identity(output)
            for output in made.outputs
        ]


def _is_unchecked(made: MadeOp) -> bool:
    is_outside = _OUTSIDE in made.graph._attr_scope_map
    return is_outside or made.type in _UNCHECKED or made.type.startswith(_KEPT)


def _assertion(is_wrong: tf.Tensor, text: str) -> tf.Operation:
    # An assertion, as a program that fails one leaves its variables as they were.
    _errors.expect(text)
    return tf.raw_ops.Assert(condition=tf.logical_not(is_wrong), data=[text])


def _problems(made: MadeOp, stops: Arithmetic) -> Iterator[tuple[tf.Tensor, str]]:
    """What may go wrong: whether it has, and what to say."""
    if not made.float_inputs:
        return
    if stops.stops_at_invalid and (invalid := _find_invalid(made)) is not None:
        yield invalid, _text(made, "an invalid operation", "inv")
    at_pole = _find_poles(made)
    if stops.stops_at_zero and at_pole is not None and made.type not in _NOT_DIVIDING:
        yield tf.reduce_any(at_pole), _text(made, "a division by zero", "div0")
    if stops.stops_at_overflow and made.float_outputs:
        yield _find_overflow(made), _text(made, "an overflow", "oflo")


def _text(made: MadeOp, what: str, flag: str) -> str:
    # Without quotation marks, which TensorFlow would change on the way.
    return (
        f"Tiles in excepted state: {what} in {made.name} ({made.type}). Change its"
        f" operands, or set floating_point_behaviour.{flag} to False."
    )


def _find_invalid(made: MadeOp) -> tf.Tensor | None:
    """Whether an operation is invalid; None if it cannot be."""
    had_nan = _any_of(tf.math.is_nan, made.float_inputs)
    if made.type in _ORDERS:
        return had_nan
    if made.type == CONVERSION and made.outputs[0].dtype.is_integer:
        (x,) = made.inputs
        # Not the opposite comparison: NaN is to be among them.
        fits = tf.abs(tf.cast(x, tf.float32)) <= float(made.outputs[0].dtype.max)
        return tf.logical_not(tf.reduce_all(fits))
    if not made.float_outputs:
        return None
    has_nan = _any_of(tf.math.is_nan, made.float_outputs)
    return tf.logical_and(has_nan, tf.logical_not(had_nan))


def _find_poles(made: MadeOp) -> tf.Tensor | None:
    """Where an operation is at a pole and not invalid; None if it has none."""
    if made.type not in _POLES:
        return None
    index, pole = _POLES[made.type]
    is_pole = tf.equal(made.inputs[index], tf.cast(pole, made.inputs[index].dtype))
    if index == 0:
        return is_pole
    above = made.inputs[0]
    is_number = tf.logical_and(tf.math.is_finite(above), tf.not_equal(above, 0))
    return tf.logical_and(is_pole, is_number)


def _find_overflow(made: MadeOp) -> tf.Tensor:
    """Whether finite operands gave an infinity elsewhere than at a pole."""
    at_pole = _find_poles(made)
    if at_pole is None:
        is_infinite = _any_of(tf.math.is_inf, made.float_outputs)
    else:
        found = tf.math.is_inf(made.outputs[0])
        is_infinite = tf.reduce_any(tf.logical_and(found, tf.logical_not(at_pole)))
    was_infinite = _any_of(tf.math.is_inf, made.float_inputs)
    return tf.logical_and(is_infinite, tf.logical_not(was_infinite))


def _any_of(test: Test, tensors: Sequence[tf.Tensor]) -> tf.Tensor:
    """Whether the test holds for a number in one of the tensors."""
    found = [tf.reduce_any(test(tensor)) for tensor in tensors]
    return functools.reduce(tf.logical_or, found)
