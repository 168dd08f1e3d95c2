"""Remote buffers must fit into the streaming memory of the machines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from popple.errors import PlanError
from popple.graph import Graph, parse_graph
from popple.place import Offload, UpdateWeights, run_passes
from popple.plan import plan_graph
from popple.plan.lowering.streaming import find_least_bytes
from popple.target import Target, load_system
from tests.place.graphs import ONE_CHIP

ADAM = UpdateWeights("adam_update", 2, {"a": "da", "b": "db"})


def offloaded() -> Graph:
    """Two weights, each with two states off the chip."""
    return run_passes(parse_graph(ONE_CHIP), [ADAM, Offload(states=1)])


def target_with(streaming_bytes: int) -> Target:
    system = load_system("bow-pod4")
    return Target(replace(system, streaming_memory_bytes_per_machine=streaming_bytes))


def bytes_of_states(graph: Graph) -> int:
    types = [graph.type_of(name) for name in ("a", "b")]
    return sum(2 * each.num_elements * 4 for each in types)


def test_states_take_their_size_once() -> None:
    graph = offloaded()
    assert find_least_bytes(graph) == bytes_of_states(graph)
    assert find_least_bytes(parse_graph(ONE_CHIP)) == 0


def test_what_fits_is_planned() -> None:
    graph = offloaded()
    plan_graph(graph, target_with(bytes_of_states(graph)))
    # Off-chip data of a machine without streaming memory lie with the host.
    plan_graph(graph, target_with(0))


def test_what_does_not_fit_is_refused() -> None:
    graph = offloaded()
    with pytest.raises(PlanError, match="streaming memory of 1 x bow-pod4"):
        plan_graph(graph, target_with(bytes_of_states(graph) - 1))


def test_the_limit_of_a_bow_2000() -> None:
    assert load_system("bow-2000").streaming_memory_bytes_per_machine == 256e9
