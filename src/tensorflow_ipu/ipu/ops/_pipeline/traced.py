"""Python functions traced into graphs of their own and called like operations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.eager.polymorphic_function import atomic_function
from tensorflow.python.framework import func_graph, ops

from .._tensors import Tensor


class Traced:
    """A function of tensors, traced once.

    It takes tensors like `inputs`, after them what it captured from outside, and
    returns a flat list of tensors. Stateful operations in it run in the order in which
    they were traced.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], inputs: Sequence[Any]
    ) -> None:
        # Not unique within the graph only: functions live in one library.
        unique = f"{name}_{ops.uid()}"
        with _outermost_graph_known():
            self.graph = func_graph.func_graph_from_py_func(
                unique, function, args=tuple(inputs), kwargs={}
            )
        # Not a tf.function: that would trace again for every new shape or Python value.
        self._function = atomic_function.from_func_graph(unique, self.graph, {})

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors it returns, in its own graph."""
        return self.graph.outputs

    @property
    def captures(self) -> list[Tensor]:
        """The outer tensors it uses."""
        return self.graph.external_captures

    def outer_of(self, inside: Tensor) -> Tensor | None:
        """The outer tensor that a tensor of the graph stands for, if it does."""
        pairs = zip(
            self.graph.internal_captures, self.graph.external_captures, strict=True
        )
        return next((outer for inner, outer in pairs if inner is inside), None)

    def call(
        self, inputs: Sequence[Tensor], captures: Sequence[Tensor] | None = None
    ) -> list[Tensor]:
        """Run it; `captures` stand in for the captured tensors."""
        given = self.captures if captures is None else captures
        return list(self._function.call_flat(*inputs, *given))


def _outermost_graph_known() -> Any:
    """Let `tf.init_scope` inside the function find the graph around it.

    It looks for a graph that was entered, and else leaves for eager mode; the global
    default graph need not have been entered.
    """
    graph = ops.get_default_graph()
    if tf.executing_eagerly() or graph.building_function:
        return contextlib.nullcontext()
    return graph.as_default()
