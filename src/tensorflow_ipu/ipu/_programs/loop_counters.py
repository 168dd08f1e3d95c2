"""Which iteration of the loop around it an operation runs in.

The loops of this package say it themselves, with `counting`. Loops of TensorFlow's own
kind count their iterations in the first input of their body.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ops import control_flow_v2_func_graphs

from ..ops._tensors import Tensor


@dataclass(frozen=True, eq=False)  # tensors do not compare to a bool
class Loop:
    """A loop whose body is being built.

    `counter` is the number of the iteration, from 0; `num_trips` how often the loop
    runs, where that is known; `graph` where the body is built.
    """

    counter: Tensor
    num_trips: int | None
    graph: Any


class _Counting(threading.local):
    """The loops being built on this thread, the innermost last."""

    def __init__(self) -> None:
        self.loops: list[Loop] = []


_COUNTING = _Counting()


@contextlib.contextmanager
def counting(counter: Tensor, num_trips: Any = None) -> Iterator[None]:
    """What is built inside belongs to iteration `counter` of a loop."""
    known = num_trips if isinstance(num_trips, int) else None
    loop = Loop(counter, known, tf.compat.v1.get_default_graph())
    _COUNTING.loops.append(loop)
    try:
        yield
    finally:
        _COUNTING.loops.remove(loop)


def current_loop() -> Loop | None:
    """The innermost loop whose body is being built, or None outside of loops."""
    for graph in _enclosing_graphs():
        told = [loop for loop in _COUNTING.loops if loop.graph is graph]
        if told:
            return told[-1]
        # TensorFlow 2 gives the body of a loop its counter as the first input.
        if isinstance(graph, control_flow_v2_func_graphs.WhileBodyFuncGraph):
            return Loop(graph.inputs[0], None, graph)
    return None


def _enclosing_graphs() -> Iterator[Any]:
    graph = tf.compat.v1.get_default_graph()
    while graph is not None:
        yield graph
        graph = getattr(graph, "outer_graph", None)
