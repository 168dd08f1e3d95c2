"""Which IPU of a replica an operation is on, as the attribute TensorFlow has for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow.compiler.xla import xla_data_pb2
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import backprop, context, execute
from tensorflow.python.framework import ops

from popple.marks import SHARDING


def sharding_attribute(ipus: Sequence[int]) -> attr_value_pb2.AttrValue:
    """The attribute that says an operation is on these IPUs."""
    sharding = xla_data_pb2.OpSharding(
        type=xla_data_pb2.OpSharding.MAXIMAL, tile_assignment_devices=ipus
    )
    return attr_value_pb2.AttrValue(s=sharding.SerializeToString())


def has_attr(o: Any, attr_name: str) -> bool:
    """Whether an operation carries the attribute `attr_name`."""
    return attr_name in o.node_def.attr


def get_sharding(op: Any) -> list[int] | None:
    """The IPUs that an operation was put on, or None where nothing was said."""
    if not has_attr(op, SHARDING):
        return None
    sharding = xla_data_pb2.OpSharding.FromString(op.get_attr(SHARDING))
    return list(sharding.tile_assignment_devices)


def dependencies(roots: Sequence[Any]) -> set[Any]:
    """Every operation that the given tensors and operations need, themselves too."""
    found: set[Any] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        op = node if isinstance(node, ops.Operation) else node.op
        if op not in found:
            found.add(op)
            waiting += [tensor.op for tensor in op.inputs]
            waiting += op.control_inputs
    return found


def get_shard_from_colocation(op: Any) -> bytes | None:
    """The sharding of an operation that `op` is tied to, or else takes input from."""
    neighbours = [*_colocated(op), *(tensor.op for tensor in op.inputs)]
    sharded = (o for o in neighbours if has_attr(o, SHARDING))
    return next((o.get_attr(SHARDING) for o in sharded), None)


def _colocated(op: Any) -> list[Any]:
    names = [group.decode().removeprefix("loc:@") for group in op.colocation_groups()]
    known = {o.name: o for o in op.graph.get_operations()}
    return [known[name] for name in names if name in known]


def propagate_sharding(g: Any) -> None:
    """Give tied operations the sharding of what they are tied to."""
    changed = True
    # Until nothing changes: ties form chains, and operations come in any order.
    while changed:
        changed = False
        for op in g.get_operations():
            if not has_attr(op, "_class") or has_attr(op, SHARDING):
                continue
            shard = get_shard_from_colocation(op)
            if shard is not None:
                op._set_attr(SHARDING, attr_value_pb2.AttrValue(s=shard))
                changed = True


def enable_sharded_gradient_tape() -> None:
    """Make gradient tapes put each gradient on the IPU of its forward operation."""
    pywrap_tfe.TFE_Py_RegisterGradientFunction(_gradient_on_its_ipu)
    execute.record_gradient = _record_with_sharding


def _record_with_sharding(
    op_name: str, inputs: Any, attrs: Any, *rest: Any, **options: Any
) -> Any:
    shard = None
    if not context.executing_eagerly():
        shard = ops.get_default_graph()._attr_scope_map.get(SHARDING)
    if shard is not None:
        attrs = (*(attrs or ()), SHARDING, shard)
    return backprop.record_gradient(op_name, inputs, attrs, *rest, **options)


def _gradient_on_its_ipu(
    op_name: str, attr_tuple: Any, *rest: Any, **options: Any
) -> Any:
    scope: dict[str, Any] = {}
    # The last pair is what `_record_with_sharding` added.
    if attr_tuple and len(attr_tuple) >= 2 and attr_tuple[-2] == SHARDING:
        scope[SHARDING] = attr_tuple[-1]
        attr_tuple = attr_tuple[:-2]
    with ops.get_default_graph()._attr_scope(scope):
        return backprop._gradient_function(op_name, attr_tuple, *rest, **options)
