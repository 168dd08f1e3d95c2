"""Traces and lowers TensorFlow functions for the tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from popple.capture.tensorflow import LoweredProgram, LowerRequest, lower_program
from popple.graph import LOOPS, Graph, Op, Role, functions_of, verify
from popple.options import ModelOptions, UpdateOptions
from popple.pipeline import Modelled, model_graph
from popple.target import Target, load_system


def spec(*shape: int, dtype: Any = None) -> tf.TensorSpec:
    """A tensor of this shape, of floats unless told otherwise."""
    return tf.TensorSpec(shape, dtype or tf.float32)


def ints(*shape: int) -> tf.TensorSpec:
    """A tensor of integers of this shape."""
    return tf.TensorSpec(shape, tf.int32)


def trace(function: Callable[..., Any], *specs: tf.TensorSpec) -> Any:
    """The graph of a function of tensors like these."""
    concrete = tf.function(function).get_concrete_function(*specs)
    return concrete.graph


def lower_graph(graph: Any, **request: Any) -> LoweredProgram:
    """The lowered program; its graph is valid."""
    lowered = lower_program(LowerRequest("test", graph, **request))
    verify(lowered.graph)
    return lowered


def lower(function: Callable[..., Any], *specs: tf.TensorSpec) -> LoweredProgram:
    """The program of a function of tensors like these."""
    return lower_graph(trace(function, *specs))


def graph_of(function: Callable[..., Any], *specs: tf.TensorSpec) -> Graph:
    """The graph of a function of tensors like these."""
    return lower(function, *specs).graph


def kinds(graph: Graph) -> list[str]:
    """Kinds of all ops, in order."""
    return [op.kind for op in graph.ops]


def runs(graph: Graph) -> Counter[str]:
    """How often ops of each kind run, those of functions in every trip.

    Of a branch all sides count.
    """

    def count(ops: Sequence[Op], times: int, found: Counter[str]) -> Counter[str]:
        for op in ops:
            found[op.kind] += times
            trips = op.attrs["count"] if op.kind in LOOPS else 1
            assert isinstance(trips, int)
            for name in functions_of(op):
                count(graph.functions[name].ops, times * trips, found)
        return found

    return count(graph.ops, 1, Counter())


def of_kind(graph: Graph, kind: str) -> list[Op]:
    """All ops of one kind."""
    return [op for op in graph.ops if op.kind == kind]


def names_of(graph: Graph, role: Role) -> list[str]:
    """Names of all values of one role."""
    return [value.name for value in graph.with_role(role)]


def model_program(lowered: LoweredProgram, **options: Any) -> Modelled:
    """The lowered program, placed, planned and simulated."""
    update = None
    if lowered.update is not None:
        update = UpdateOptions(*lowered.update, lowered.gradients)
    settings = ModelOptions(
        accumulation=lowered.accumulation,
        device_iterations=lowered.num_trips // lowered.accumulation,
        update=update,
        **options,
    )
    num_chips = lowered.graph.execution.num_chips
    target = Target(load_system("bow-pod16"), num_chips, settings.replicas)
    return model_graph(lowered.graph, target, settings)


def op_cycles(lowered: LoweredProgram) -> int:
    """Cycles of all ops; what the host sends and fetches belongs to none."""
    costs = model_program(lowered).simulation.cost_by_op.items()
    return sum(cost.cycles for name, cost in costs if name)


def marked(name: str, value: dict[str, Any]) -> Any:
    """Ops made inside carry this attribute."""
    graph: Any = tf.compat.v1.get_default_graph()
    return graph._attr_scope({name: tf.compat.v1.AttrValue(**value)})


def array(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers that all differ."""
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
