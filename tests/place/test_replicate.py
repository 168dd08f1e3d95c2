"""Replicate: gradients are reduced over replicas before the update."""

from __future__ import annotations

import pytest

from popple.errors import UsageError
from popple.graph import Graph, Phase, parse_graph
from popple.place import AccumulateGradients, Replicate, UpdateWeights, run_passes
from tests.place.graphs import ONE_CHIP, SGD, chain, named, ops_of

SHARED = UpdateWeights("sgd_update", 0, {"a": "da", "b": "da"})


def replicated(count: int, update: UpdateWeights = SGD) -> Graph:
    return run_passes(parse_graph(ONE_CHIP), [update, Replicate(count)])


def test_one_replica_needs_no_reduction() -> None:
    assert not ops_of(replicated(1), "all_reduce")


def test_every_gradient_is_reduced_before_its_update() -> None:
    graph = replicated(4)
    assert graph.execution.replicas == 4
    names = [op.name for op in graph.ops if op.phase is Phase.UPDATE]
    assert names == ["da.reduce", "a.update", "db.reduce", "b.update"]
    assert named(graph, "a.update").inputs == ("a", "da.reduced")
    assert named(graph, "da.reduce").attrs == {"replicas": 4}


def test_a_reduction_works_in_the_memory_of_the_gradient() -> None:
    graph = replicated(2)
    assert graph.values["da.reduced"].storage == "da"


def test_sums_over_micro_batches_are_reduced_once() -> None:
    passes = [SGD, AccumulateGradients(8), Replicate(2)]
    graph = run_passes(parse_graph(ONE_CHIP), passes)
    assert named(graph, "da.accumulated.reduce").inputs == ("da.accumulated",)


def test_a_shared_gradient_is_reduced_once() -> None:
    # Twice in the same memory would be the sum of sums.
    assert len(ops_of(replicated(2, SHARED), "all_reduce")) == 1


def test_inference_only_counts_its_replicas() -> None:
    graph = run_passes(chain((0, 0)), [Replicate(2)])
    assert graph.execution.replicas == 2
    assert len(graph.ops) == 1


def test_there_is_at_least_one_replica() -> None:
    with pytest.raises(UsageError, match="must be a replica"):
        Replicate(0)
