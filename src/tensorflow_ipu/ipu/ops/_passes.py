"""Marks that say which pass of training an operation belongs to.

In: operations, or a scope around the forward pass. Out: the same operations with an
`ML_TYPE` attribute. The gradients of convolutions and of matrix products are marked as
they are made: TensorFlow asks the graph for another gradient function for these types,
and those registered here call its own and mark what comes back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.compiler.plugin.poplar.driver import backend_config_pb2
from tensorflow.python.framework import ops

from .. import scopes

Gradients = Sequence[Any]

_MARKED = "Custom"

# Which of the gradients belongs to the activations and which to the weights; the
# gradient of a gradient has the sizes of one operand as an input besides.
_CONVOLUTIONS = {
    "Conv2D": (0, 1),
    "Conv2DBackpropInput": (1, 2),
    "Conv2DBackpropFilter": (0, 2),
    "Conv3D": (0, 1),
    "Conv3DBackpropInputV2": (1, 2),
    "Conv3DBackpropFilterV2": (0, 2),
    "DepthwiseConv2dNative": (0, 1),
    "DepthwiseConv2dNativeBackpropInput": (1, 2),
    "DepthwiseConv2dNativeBackpropFilter": (0, 2),
}
_PRODUCTS = ("MatMul", "BatchMatMul", "BatchMatMulV2")


def SetMlType(
    op: tf.Operation | tf.Tensor, ml_type: int | None
) -> tf.Operation | tf.Tensor:
    """Mark an operation as part of inference, or of a pass of training."""
    if tf.executing_eagerly() or not ml_type:
        return op
    operation = op if isinstance(op, tf.Operation) else op.op
    name = backend_config_pb2.FrontendAttributeId.Name(backend_config_pb2.ML_TYPE)
    marks = scopes._frontend_attributes(operation.graph)
    marks.map[name] = backend_config_pb2.MLType.Name(ml_type)
    # On the operation itself: it was made before its pass was known.
    operation._set_attr(scopes.FRONTEND_ATTRIBUTES_NAME, scopes._packed(marks))
    return op


def SetOpAsFwd(op: tf.Operation | tf.Tensor) -> tf.Operation | tf.Tensor:
    """Mark an operation as forward pass."""
    return SetMlType(op, backend_config_pb2.TRAINING_FWD)


def SetOpAsBwd(op: tf.Operation | tf.Tensor) -> tf.Operation | tf.Tensor:
    """Mark an operation as gradient with respect to activations."""
    return SetMlType(op, backend_config_pb2.TRAINING_BWD)


def SetOpAsWU(op: tf.Operation | tf.Tensor) -> tf.Operation | tf.Tensor:
    """Mark an operation as gradient with respect to weights."""
    return SetMlType(op, backend_config_pb2.TRAINING_WU)


def HandleMatMulGrads(grads: Gradients) -> Gradients:
    """Mark the gradients of a matrix product: of activations, then of weights."""
    activations, weights = grads
    SetOpAsBwd(_product(activations))
    SetOpAsWU(_product(weights))
    return grads


def _product(gradient: tf.Tensor) -> tf.Tensor:
    """The product behind a gradient that may be summed over broadcast dimensions."""
    for kind in ("Reshape", "Sum"):
        if not tf.executing_eagerly() and gradient.op.type == kind:
            gradient = gradient.op.inputs[0]
    return gradient


def _handle_convolution(activations: int, weights: int) -> Callable[[Gradients], Any]:
    """A function that marks these two of the gradients of a convolution."""

    def handle(grads: Gradients) -> Gradients:
        SetOpAsBwd(grads[activations])
        SetOpAsWU(grads[weights])
        return grads

    return handle


def _register(op_type: str, handle: Callable[[Gradients], Gradients]) -> None:
    """Register a gradient that is TensorFlow's own for `op_type`, with marks."""
    stock: Any = ops.gradient_registry.lookup(op_type)

    def marked_gradient(op: tf.Operation | tf.Tensor, *grads: Any) -> Gradients:
        SetOpAsFwd(op)
        return handle(stock(op, *grads))

    tf.RegisterGradient(_MARKED + op_type)(marked_gradient)


for _type, _positions in _CONVOLUTIONS.items():
    _register(_type, _handle_convolution(*_positions))
for _type in _PRODUCTS:
    _register(_type, HandleMatMulGrads)


def conv_gradients_override_map() -> dict[str, str]:
    """Types of convolutions to the names of gradients that mark."""
    return {op_type: _MARKED + op_type for op_type in _CONVOLUTIONS}


def matmul_gradients_override_map() -> dict[str, str]:
    """Types of matrix products to the names of gradients that mark."""
    return {op_type: _MARKED + op_type for op_type in _PRODUCTS}


def gradients_override_map() -> dict[str, str]:
    """Both maps, for `tf.Graph.gradient_override_map`."""
    return {**conv_gradients_override_map(), **matmul_gradients_override_map()}


@contextlib.contextmanager
def gradient_override_scope(training: bool) -> Iterator[None]:
    """Mark what is built inside as forward pass of training, or as inference.

    The gradients of what is built inside are marked too.
    """
    kinds = backend_config_pb2
    kind = kinds.TRAINING_FWD if training else kinds.INFERENCE_FWD
    name = kinds.FrontendAttributeId.Name(kinds.ML_TYPE)
    marked: Any = scopes.frontend_attribute(name, kinds.MLType.Name(kind))
    with marked, _marking():
        yield


def _marking() -> contextlib.AbstractContextManager[Any]:
    """Give operations of the graph being built gradients that mark."""
    if tf.executing_eagerly():
        return contextlib.nullcontext()
    graph: Any = tf.compat.v1.get_default_graph()
    return graph.gradient_override_map(gradients_override_map())
