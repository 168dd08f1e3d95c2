"""Offload: what lies off the chip is loaded before use and stored after writes."""

from __future__ import annotations

import pytest

from popple.graph import Graph, Op, Phase, parse_graph
from popple.place import (
    AccumulateGradients,
    Offload,
    Pass,
    Pipeline,
    Replicate,
    Shard,
    UpdateWeights,
    run_passes,
)
from tests.place.graphs import ONE_CHIP, TWO_CHIPS, named, ops_of

ADAM = UpdateWeights("adam_update", 2, {"a": "da", "b": "db"})


def placed(offload: Offload, *before: Pass, text: str = ONE_CHIP) -> Graph:
    return run_passes(parse_graph(text), [ADAM, *before, offload])


def loads(graph: Graph) -> list[str]:
    return [op.outputs[0] for op in ops_of(graph, "remote_load")]


def test_state_is_loaded_for_its_update_and_stored_after_it() -> None:
    graph = placed(Offload(states=1))
    steps = [op.kind for op in graph.ops if op.phase is Phase.UPDATE]
    around = ["remote_load"] * 2 + ["adam_update"] + ["remote_store"] * 2
    assert steps == around * 2
    update = named(graph, "a.update")
    assert [graph.root(name) for name in update.outputs] == ["a", *update.inputs[2:]]


def test_loaded_state_lies_like_its_weight() -> None:
    load = ops_of(placed(Offload(states=1)), "remote_load")[0]
    assert load.inputs == ("a",)


@pytest.mark.parametrize(("least", "count"), [(64, 4), (65, 0)])
def test_small_tensors_stay(least: int, count: int) -> None:
    assert len(loads(placed(Offload(states=least)))) == count


def test_accumulators_travel_for_every_sum_and_for_the_update() -> None:
    graph = placed(Offload(accumulators=1), AccumulateGradients(4), Replicate(2))
    phases = [op.phase for op in ops_of(graph, "remote_load")]
    assert phases == [Phase.BACKWARD] * 2 + [Phase.UPDATE] * 2
    # The sum over replicas stays on the chip: only zeros are stored by the update.
    stored = [op.inputs[0] for op in ops_of(graph, "remote_store")]
    assert stored == ["da.accumulated", "db.accumulated", "da.cleared", "db.cleared"]


def test_weights_are_loaded_by_every_stage_that_reads_them() -> None:
    graph = placed(Offload(weights=1), Pipeline(recompute=False), text=TWO_CHIPS)
    readers = [(op.phase, op.stage, op.chip) for op in ops_of(graph, "remote_load")]
    assert readers == [
        (Phase.FORWARD, 0, 0),
        (Phase.FORWARD, 1, 1),
        (Phase.BACKWARD, 1, 1),
        (Phase.UPDATE, 0, 0),
        (Phase.UPDATE, 0, 1),
    ]


def test_stashes_leave_no_ring_on_the_chip() -> None:
    graph = placed(Offload(stashes=1), Pipeline(recompute=False), text=TWO_CHIPS)
    assert not ops_of(graph, "stash")
    assert len(loads(graph)) == len(ops_of(graph, "remote_store")) == 1


def test_nothing_changes_unless_asked_for() -> None:
    def ops(*passes: Pass) -> tuple[Op, ...]:
        return run_passes(parse_graph(TWO_CHIPS), [ADAM, Shard(), *passes]).ops

    assert ops(Offload()) == ops()
