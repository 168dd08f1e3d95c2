"""Shard: copies where a value is read on another chip, and nowhere else."""

from __future__ import annotations

from popple.graph import Phase, Strategy, parse_graph
from popple.place import Replicate, Shard, run_passes
from tests.place.graphs import (
    SGD,
    TWO_CHIPS,
    assert_local,
    chain,
    named,
    ops_of,
    sharded,
    two_chips_updated,
)


def test_one_chip_stays_as_it_is() -> None:
    before = chain((0, 0), (0, 0))
    after = run_passes(before, [Shard()])
    assert after.ops == before.ops
    assert after.execution.strategy is Strategy.SINGLE


def test_a_value_is_copied_to_the_chip_that_reads_it() -> None:
    graph = run_passes(chain((0, 0), (1, 0)), [Shard()])
    (copy,) = ops_of(graph, "chip_copy")
    assert (copy.inputs, copy.chip, copy.attrs) == (("v1",), 1, {"source": 0})
    assert named(graph, "v2").inputs == copy.outputs
    assert graph.execution.strategy is Strategy.SHARDED


def test_a_copy_carries_the_readers_line() -> None:
    (copy,) = ops_of(run_passes(chain((0, 0), (1, 0)), [Shard()]), "chip_copy")
    assert copy.line == "m.py:2"


def test_inputs_are_streamed_straight_to_their_chip() -> None:
    assert not ops_of(run_passes(chain((1, 0)), [Shard()]), "chip_copy")


def test_a_value_is_copied_once_per_chip_and_phase() -> None:
    graph = sharded(TWO_CHIPS)
    copies = [(op.inputs[0], op.phase) for op in ops_of(graph, "chip_copy")]
    # h forward, and again for its gradient; dh on the way back.
    expected = [("h", Phase.FORWARD), ("h", Phase.BACKWARD), ("dh", Phase.BACKWARD)]
    assert copies == expected
    assert_local(graph)


def test_views_of_a_copy_share_the_copys_memory() -> None:
    graph = sharded(TWO_CHIPS)
    assert graph.root("ht") == named(graph, "ht").inputs[0] != "h"


def test_updates_stay_with_their_weights() -> None:
    graph = run_passes(two_chips_updated(), [Replicate(2), Shard()])
    assert [named(graph, f"{w}.update").chip for w in "ab"] == [0, 1]
    assert_local(graph)


def test_a_tied_weight_lives_on_one_chip() -> None:
    tied = TWO_CHIPS.replace("%b)", "%a)").replace("shares %b", "shares %a")
    graph = sharded(tied)
    copies = [op for op in ops_of(graph, "chip_copy") if op.inputs == ("a",)]
    assert [(op.phase, op.chip) for op in copies] == [
        (Phase.FORWARD, 1),
        (Phase.BACKWARD, 1),
    ]
    assert_local(graph)


def test_a_phased_graph_keeps_its_strategy() -> None:
    graph = run_passes(chain((0, 0), (1, 1)), [Shard(Strategy.PHASED)])
    assert graph.execution.strategy is Strategy.PHASED


def test_gradients_made_elsewhere_travel_to_the_weight() -> None:
    text = TWO_CHIPS.replace(
        "(%xt, %dh) backward chip=0 stage=0", "(%xt, %dh) backward chip=1 stage=1"
    )
    graph = run_passes(parse_graph(text), [SGD, Shard()])
    update = named(graph, "a.update")
    assert (update.chip, update.inputs[1]) == (0, "da.to0.update0")
    assert_local(graph)
