"""Context managers that say where and how the operations made inside them run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from tensorflow.compiler.plugin.poplar.driver import backend_config_pb2, threestate_pb2
from tensorflow.compiler.xla import xla_data_pb2
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import ops
from tensorflow.python.ops import variable_scope
from tensorflow.python.util import tf_contextlib

from . import sharding
from ._arithmetic import as_on_device
from ._programs import compilation, outside_compilation

FRONTEND_ATTRIBUTES_NAME = "_XlaFrontendAttributes"
OUTSIDE_COMPILATION_NAME = outside_compilation.ATTRIBUTE

_PARTIALS = {
    np.dtype("float16"): xla_data_pb2.F16,
    np.dtype("float32"): xla_data_pb2.F32,
}


@tf_contextlib.contextmanager
def ipu_jit_scope(ipu_scope: Any) -> Iterator[None]:
    """Mark operations as parts of one IPU program.

    The marks are ours: TensorFlow's own would have its CPU compiler take the program.
    """
    attributes = {
        "_ipu_program": attr_value_pb2.AttrValue(
            s=f"jit_scope_ipu_{ipu_scope}".encode()
        )
    }
    with ops.get_default_graph()._attr_scope(attributes):
        yield


@tf_contextlib.contextmanager
def ipu_scope(device: str) -> Iterator[None]:
    """Put operations on an IPU device and make variables resource variables."""
    with (
        variable_scope.variable_scope("", use_resource=True),
        ops.device(device),
        # A session runs them on the device also if nobody compiles them.
        as_on_device.computing(),
        ipu_jit_scope(0) as scope,
    ):
        yield scope


@tf_contextlib.contextmanager
def outside_compilation_scope(name: str = "outside") -> Iterator[None]:
    """Run operations of a compiled program on the host."""
    graph = ops.get_default_graph()
    if not compilation.compiling():
        raise ValueError(
            "outside_compilation_scope is only allowed in XLA context: call it inside"
            " the function given to ipu_compiler.compile() or strategy.run()."
        )
    if OUTSIDE_COMPILATION_NAME in graph._attr_scope_map:
        raise ValueError("Illegal nesting of outside_compilation_scope.")
    unique = graph.unique_name(name, mark_as_used=True)
    attributes = {OUTSIDE_COMPILATION_NAME: attr_value_pb2.AttrValue(s=unique.encode())}
    outside_compilation.refuse_enclosed(graph)
    with ops.name_scope(unique), graph._attr_scope(attributes):
        yield


@tf_contextlib.contextmanager
def ipu_shard(index: int | Iterable[int]) -> Iterator[None]:
    """Put operations, and their gradients, on one IPU (or several) of the replica."""
    ipus = list(index) if isinstance(index, Iterable) else [index]
    graph = ops.get_default_graph()
    num_before = len(graph.get_operations())
    with graph._attr_scope({"_XlaSharding": sharding.sharding_attribute(ipus)}):
        yield
    for op in graph.get_operations()[num_before:]:
        _put_gradient_with(op)


class _GradientWithForward:
    """A gradient function that works on the IPUs of the forward operation."""

    def __init__(self, gradient: Any) -> None:
        self._gradient = gradient

    def __call__(self, op: Any, *args: Any, **kwargs: Any) -> Any:
        with ipu_shard(sharding.get_sharding(op) or [0]):
            return self._gradient(op, *args, **kwargs)


def _put_gradient_with(op: Any) -> None:
    with contextlib.suppress(LookupError):
        gradient = ops.get_gradient_function(op)
        if gradient is not None and not isinstance(gradient, _GradientWithForward):
            op._gradient_function = _GradientWithForward(gradient)


@tf_contextlib.contextmanager
def frontend_attribute(
    attribute_name: str, attribute_value: str, restore_to: str | None = None
) -> Iterator[None]:
    """Set a named attribute of the original's compiler on operations.

    Where it was not set before, it reads `restore_to` afterwards, if that is given.
    """
    graph = ops.get_default_graph()
    before = _frontend_attributes(graph)
    inside = xla_data_pb2.FrontendAttributes()
    inside.CopyFrom(before)
    inside.map[attribute_name] = attribute_value
    with graph._attr_scope({FRONTEND_ATTRIBUTES_NAME: _packed(inside)}):
        yield
    if restore_to is not None and attribute_name not in before.map:
        before.map[attribute_name] = restore_to
        graph._attr_scope_map[FRONTEND_ATTRIBUTES_NAME] = _packed(before)


def _frontend_attributes(graph: Any) -> xla_data_pb2.FrontendAttributes:
    found = graph._attr_scope_map.get(FRONTEND_ATTRIBUTES_NAME)
    return xla_data_pb2.FrontendAttributes.FromString(found.s if found else b"")


def _packed(attributes: xla_data_pb2.FrontendAttributes) -> attr_value_pb2.AttrValue:
    return attr_value_pb2.AttrValue(s=attributes.SerializeToString())


def _attribute_name(attribute: int) -> str:
    return backend_config_pb2.FrontendAttributeId.Name(attribute)


@tf_contextlib.contextmanager
def stochastic_rounding(override: bool) -> Iterator[None]:
    """Ask for stochastic rounding, or for none, in these operations."""
    state = threestate_pb2.ThreeState.Name
    with frontend_attribute(
        _attribute_name(backend_config_pb2.STOCHASTIC_ROUNDING),
        state(
            threestate_pb2.THREESTATE_ON if override else threestate_pb2.THREESTATE_OFF
        ),
        state(threestate_pb2.THREESTATE_UNDEFINED),
    ):
        yield


@tf_contextlib.contextmanager
def partials_type(override_type: Any) -> Iterator[None]:
    """Ask for a type of partial sums, float16 or float32, in these operations."""
    partials = _PARTIALS.get(np.dtype(override_type))
    if partials is None:
        raise ValueError(
            "Only support float16, float32 as the type of partial sums, provided"
            f" {np.dtype(override_type)}."
        )
    name = xla_data_pb2.PrimitiveType.Name
    with frontend_attribute(
        _attribute_name(backend_config_pb2.PARTIALS_TYPE),
        name(partials),
        name(xla_data_pb2.PRIMITIVE_TYPE_INVALID),
    ):
        yield
