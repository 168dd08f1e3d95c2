"""Products, biases and pools of half precision, in single precision and rounded once.

The machine multiplies halves and adds in single precision. TensorFlow's kernels for the
CPU add halves in ways of their own, and gradients of convolutions and pools take three
to ten times as long as in single precision; a bias is added just as it is in half
precision, in half the time. In: an operation that a program has made. Out: the tensors
that the program goes on with. The operation itself stays in the graph, for gradients;
nobody reads it, so it is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.core.framework import attr_value_pb2, types_pb2
from tensorflow.python.framework import ops

from popple.marks import HALF, HALF_PRODUCT

from .made_op import MadeOp

__all__ = ["in_single_precision", "is_half_product", "multiplied", "widened"]

_PRODUCTS = frozenset(
    {
        "BatchMatMul",
        "BatchMatMulV2",
        "BatchMatMulV3",
        "BiasAdd",
        "Conv2D",
        "Conv2DBackpropFilter",
        "Conv2DBackpropInput",
        "Conv3D",
        "Conv3DBackpropFilterV2",
        "Conv3DBackpropInputV2",
        "DepthwiseConv2dNative",
        "DepthwiseConv2dNativeBackpropFilter",
        "DepthwiseConv2dNativeBackpropInput",
        "Einsum",
        "MatMul",
        "MaxPool",
    }
)
_GRADIENT = "PoppleHalfProduct"
_POOL_GRADIENT = "PoppleHalfPool"
_CAST_GRADIENT = "PoppleHalfProductCast"
_GRADIENTS = {
    **dict.fromkeys(_PRODUCTS, _GRADIENT),
    "Cast": _CAST_GRADIENT,
    "MaxPool": _POOL_GRADIENT,
}
_FREE = {HALF: attr_value_pb2.AttrValue(b=True)}


def multiplied(
    made: MadeOp, rounded: Callable[[tf.Tensor], tf.Tensor]
) -> list[tf.Tensor]:
    """The outputs of a product, `rounded` once."""
    own, graph = made.outputs[0].op, made.graph
    mark = {HALF_PRODUCT: attr_value_pb2.AttrValue(s=own.name.encode())}
    with graph._attr_scope(_FREE), graph.gradient_override_map(_GRADIENTS):
        inputs = [widened(tensor) for tensor in own.inputs]
        with graph._attr_scope(mark):
            wide = in_single_precision(own, inputs)
        return [rounded(tensor) for tensor in wide]


def is_half_product(made: MadeOp) -> bool:
    """Whether an operation multiplies halves, adds a bias to them or pools them."""
    if made.type not in _PRODUCTS:
        return False
    is_half = [tensor.dtype == tf.float16 for tensor in made.float_inputs]
    return made.has_half_outputs and all(is_half)


def in_single_precision(
    op: tf.Operation, inputs: Sequence[tf.Tensor]
) -> Sequence[tf.Tensor]:
    """What the same operation gives for operands in single precision."""
    attrs = {
        name: _single(value)
        for name, value in op.node_def.attr.items()
        if not name.startswith("_")  # marks, which come from the scopes around
    }
    types = [tf.float32 if y.dtype == tf.float16 else y.dtype for y in op.outputs]
    graph: Any = op.graph
    return graph._create_op_internal(
        op.type, inputs, types, attrs=attrs, op_def=op.op_def
    ).outputs


def widened(tensor: tf.Tensor) -> tf.Tensor:
    """A tensor in single precision, if it is in half."""
    return tf.cast(tensor, tf.float32) if tensor.dtype == tf.float16 else tensor


def _single(value: attr_value_pb2.AttrValue) -> attr_value_pb2.AttrValue:
    """An attribute of an operation, with single precision for half."""
    half, single = types_pb2.DT_HALF, types_pb2.DT_FLOAT
    changed = attr_value_pb2.AttrValue()
    changed.CopyFrom(value)
    if value.type == half:
        changed.type = single
    for index, kind in enumerate(value.list.type):
        changed.list.type[index] = single if kind == half else kind
    return changed


@tf.RegisterGradient(_CAST_GRADIENT)
def _gradient_of_cast(op: tf.Operation, gradient: tf.Tensor) -> tf.Tensor:
    return _converted(gradient, op.inputs[0].dtype)


@tf.RegisterGradient(_GRADIENT)
def _gradient_of(op: tf.Operation, *gradients: tf.Tensor) -> list[tf.Tensor | None]:
    """Those of the product in half precision, which are products of that again."""
    graph: Any = op.graph
    own = graph.get_operation_by_name(op.get_attr(HALF_PRODUCT).decode())
    halves = [_converted(gradient, tf.float16) for gradient in gradients]
    found = ops.get_gradient_function(own)(own, *halves)
    return [None if each is None else _converted(each, tf.float32) for each in found]


@tf.RegisterGradient(_POOL_GRADIENT)
def _gradient_of_pool(op: tf.Operation, gradient: tf.Tensor) -> tf.Tensor:
    """That of the pool in single precision: the CPU's pair of quick kernels."""
    graph: Any = op.graph
    name = f"{graph.get_name_scope()}/{op.type}Grad"
    mark = {**_FREE, HALF_PRODUCT: attr_value_pb2.AttrValue(s=name.encode())}
    with graph._attr_scope(mark):
        return ops.gradient_registry.lookup(op.type)(op, gradient)


def _converted(gradient: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """A gradient in another precision; what was widened only is what it was before."""
    graph, made_by = gradient.graph, gradient.op
    if gradient.dtype == dtype:
        return gradient
    if made_by.type == "Cast" and made_by.inputs[0].dtype == dtype == tf.float16:
        return made_by.inputs[0]
    with graph._attr_scope(_FREE):
        return tf.cast(gradient, dtype)
