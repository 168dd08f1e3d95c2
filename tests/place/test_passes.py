"""run_passes: order, verification between passes, and the observer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from popple.errors import GraphError
from popple.graph import Graph, verify
from popple.place import Pass, RepeatOnDevice, Replicate, run_passes
from tests.place.graphs import chain


@dataclass(frozen=True)
class LosesItsValues:
    """A pass that returns a broken graph."""

    def apply(self, graph: Graph) -> Graph:
        return replace(graph, ops=graph.ops[1:])


def test_the_observer_sees_every_pass_with_its_result() -> None:
    seen: list[tuple[Pass, int]] = []
    passes = [Replicate(2), RepeatOnDevice(3)]
    run_passes(
        chain((0, 0)), passes, lambda done, graph: seen.append((done, len(graph.ops)))
    )
    assert seen == [(passes[0], 1), (passes[1], 1)]


def test_a_broken_result_is_refused_at_once() -> None:
    with pytest.raises(GraphError, match="uses %v1 before it is defined"):
        run_passes(chain((0, 0), (0, 0)), [LosesItsValues()])


def test_a_broken_graph_is_refused_before_the_first_pass() -> None:
    broken = LosesItsValues().apply(chain((0, 0), (0, 0)))
    with pytest.raises(GraphError):
        run_passes(broken, [])


def test_results_can_be_left_to_the_caller_to_verify() -> None:
    broken = run_passes(chain((0, 0), (0, 0)), [LosesItsValues()], is_verified=False)
    with pytest.raises(GraphError):
        verify(broken)
