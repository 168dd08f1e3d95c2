"""What a compiled program computes on the host: `scopes.outside_compilation_scope`.

The device waits for the host at such a place, also where nothing of the host's comes
back, and it cannot wait inside loops and branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.framework import func_graph, ops
from tensorflow.python.ops import control_flow_v2_func_graphs

from .. import _errors, sharding
from . import compilation

__all__ = ["ATTRIBUTE", "check", "refuse_enclosed", "without_results"]

ATTRIBUTE = "_xla_outside_compilation"

_ENCLOSED = "_popple_enclosed"


def without_results(operations: Iterable[Any]) -> list[Any]:
    """Those of some operations that act on the host and that nothing waits for."""
    return [op for op in operations if _acts(op) and ATTRIBUTE in op.node_def.attr]


def _acts(op: tf.Operation) -> bool:
    return op.op_def.is_stateful and not op.outputs and not _is_enclosed(op.graph, op)


def refuse_enclosed(graph: tf.Graph) -> None:
    """Refuse a scope inside control flow: when it runs, or now in a function."""
    if not _is_enclosed(graph, graph):
        return
    # A graph of TensorFlow 1 may be built and never run: it is refused when it is.
    if ops.executing_eagerly_outside_functions():
        raise _refusal()
    outer: Any = graph
    while isinstance(outer, func_graph.FuncGraph):
        outer = outer.outer_graph
    setattr(outer, _ENCLOSED, True)


def _is_enclosed(graph: tf.Graph, place: Any) -> bool:
    """Whether a place in a graph (the graph: where it is built) is in control flow."""
    is_body = isinstance(graph, control_flow_v2_func_graphs.ControlFlowFuncGraph)
    return is_body or place._get_control_flow_context() is not None


def check(graph: tf.Graph, fetched: Sequence[Any]) -> None:
    """Refuse a run that reaches a scope inside control flow."""
    if not getattr(graph, _ENCLOSED, False):
        return
    reached = compilation.with_called(sharding.dependencies(fetched))
    if any(
        ATTRIBUTE in op.node_def.attr and _is_enclosed(op.graph, op) for op in reached
    ):
        raise _refusal()


def _refusal() -> tf.errors.OpError:
    return _errors.error(
        tf.errors.UnimplementedError,
        "`outside_compilation_scope` enclosed in control flow (loop or cond) is not"
        " supported: move it in front of the loop, or behind it.",
    )
