"""Stochastic rounding of half precision: up or down at random, the nearer one likelier.

In: an operation with results in half precision. Out: the same computed in single
precision and rounded as the device does it, so that small updates are not lost. The
operation itself stays in the graph, for gradients and for the cost model.
"""

from __future__ import annotations

import tensorflow.compat.v2 as tf
from tensorflow.compiler.plugin.poplar.driver import backend_config_pb2, threestate_pb2
from tensorflow.compiler.xla import xla_data_pb2

from popple.engine.tensorflow import region
from popple.marks import NOTHING, SAME
from tensorflow_ipu._translate import Arithmetic

from .float16 import CHOICE_GRADIENT, CONVERSION, MEANT, OVERFLOWING
from .half_products import in_single_precision, widened
from .made_op import MadeOp

__all__ = ["is_random", "is_wanted", "rounded"]

# Where TensorFlow keeps what `scopes.frontend_attribute` says.
_FRONTEND_ATTRIBUTES = "_XlaFrontendAttributes"

# A float32 has this many more bits of fraction than a float16.
_SPARE_BITS = 13
_SMALLEST_NORMAL = 2.0**-14
_SMALLEST_STEP = 2.0**-24

# Functions whose results need rounding beside the arithmetic that may overflow. What
# only moves numbers gives numbers that are rounded already.
_FUNCTIONS = frozenset(
    {
        "AvgPool",
        "AvgPoolGrad",
        "Cos",
        "Elu",
        "EluGrad",
        "Erf",
        "FusedBatchNormGradV3",
        "FusedBatchNormV3",
        "Log",
        "Log1p",
        "LogSoftmax",
        "Reciprocal",
        "Rsqrt",
        "RsqrtGrad",
        "Selu",
        "SeluGrad",
        "Sigmoid",
        "SigmoidGrad",
        "Sin",
        "Softmax",
        "SoftmaxCrossEntropyWithLogits",
        "Softplus",
        "SoftplusGrad",
        "SparseSoftmaxCrossEntropyWithLogits",
        "Sqrt",
        "SqrtGrad",
        "Tan",
        "Tanh",
        "TanhGrad",
    }
)
_ROUNDED = OVERFLOWING | MEANT | _FUNCTIONS


def is_wanted(made: MadeOp, arithmetic: Arithmetic) -> bool:
    """Whether an operation's results are rounded at random, where it was made."""
    if not made.has_half_outputs or made.type not in _ROUNDED:
        return False
    if made.type == CONVERSION and not made.float_inputs:
        return False
    return is_random(made.graph, arithmetic)


def is_random(graph: tf.Graph, arithmetic: Arithmetic) -> bool:
    """Whether results of operations made now are rounded at random."""
    said = _said_by_scope(graph)
    return arithmetic.rounds_at_random if said is None else said


def _said_by_scope(graph: tf.Graph) -> bool | None:
    """What `scopes.stochastic_rounding` around the operation says, if anything."""
    found = graph._attr_scope_map.get(_FRONTEND_ATTRIBUTES)
    if found is None:
        return None
    marks = xla_data_pb2.FrontendAttributes.FromString(found.s).map
    name = backend_config_pb2.FrontendAttributeId.Name(
        backend_config_pb2.STOCHASTIC_ROUNDING
    )
    states = {
        threestate_pb2.ThreeState.Name(threestate_pb2.THREESTATE_ON): True,
        threestate_pb2.ThreeState.Name(threestate_pb2.THREESTATE_OFF): False,
    }
    return states.get(marks.get(name, ""))


def rounded(made: MadeOp) -> list[tf.Tensor]:
    """The results, computed in single precision and rounded at random."""
    op = made.outputs[0].op
    with region(NOTHING):
        wide = in_single_precision(op, [widened(tensor) for tensor in op.inputs])
    return [
        _in_place_of(own, other) if own.dtype == tf.float16 else own
        for own, other in zip(made.outputs, wide, strict=True)
    ]


def _in_place_of(own: tf.Tensor, wide: tf.Tensor) -> tf.Tensor:
    graph = own.graph
    with region(SAME), graph.gradient_override_map({"SelectV2": CHOICE_GRADIENT}):
        # Read first, so that the cost model takes the region for this tensor.
        given = tf.identity(own)
        half = tf.cast(_to_steps(wide), tf.float16)
        # A choice that is none: the gradient of it goes to what was computed in half
        # precision, as there is no gradient of bits.
        return tf.where(True, half, given)


def _to_steps(x: tf.Tensor) -> tf.Tensor:
    """The half precision number below or above each number, in single precision.

    The bits that half precision lacks are the chance of the larger magnitude: added to
    random bits they carry into those that stay.
    """
    # TensorFlow's own generator, so that `tf.random.set_seed` makes runs repeatable.
    noise = tf.random.uniform(tf.shape(x), maxval=1 << _SPARE_BITS, dtype=tf.int32)
    bits = tf.bitcast(x, tf.int32) + noise
    kept = tf.constant(-(1 << _SPARE_BITS))
    normal = tf.bitcast(tf.bitwise.bitwise_and(bits, kept), tf.float32)
    share = tf.cast(noise, tf.float32) / (1 << _SPARE_BITS)
    tiny = tf.floor(x / _SMALLEST_STEP + share) * _SMALLEST_STEP
    steps = tf.where(tf.abs(x) < _SMALLEST_NORMAL, tiny, normal)
    return tf.where(tf.math.is_finite(x), steps, x)
