"""ShareUpdates: each replica sums, updates and sends its share of a weight."""

from __future__ import annotations

from popple.graph import Graph, Phase, parse_graph
from popple.place import Replicate, ShareUpdates, UpdateWeights, run_passes
from tests.place.graphs import ONE_CHIP, named

ADAM = UpdateWeights("adam_update", 2, {"a": "da", "b": "db"})


def shared(replicas: int, min_elements: int = 1) -> Graph:
    passes = [ADAM, Replicate(replicas), ShareUpdates(min_elements)]
    return run_passes(parse_graph(ONE_CHIP), passes)


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops if op.phase is Phase.UPDATE]


def test_a_reduce_scatter_before_and_an_all_gather_after_the_update() -> None:
    steps = ["take_share", "reduce_scatter", "adam_update", "all_gather"]
    assert kinds(shared(4)) == steps * 2


def test_state_is_that_of_a_share() -> None:
    # 64 elements over 3 replicas: 22 each.
    graph = shared(3)
    assert graph.type_of("a.state0").shape == (22,)
    assert named(graph, "a.update").inputs[:2] == ("a.share", "da.reduced.share")


def test_a_gradient_is_scattered_to_where_the_weights_share_lies() -> None:
    scatter = named(shared(4), "da.reduce")
    assert scatter.inputs == ("da", "a.share")


def test_the_gathered_weight_takes_the_place_of_the_old_one() -> None:
    graph = shared(4)
    assert named(graph, "a.update.gather").outputs == ("a.updated",)
    assert graph.root("a.updated") == "a"


def test_small_weights_are_updated_by_every_replica() -> None:
    assert kinds(shared(4, 65)) == ["all_reduce", "adam_update"] * 2


def test_one_replica_has_nothing_to_share() -> None:
    assert kinds(shared(1)) == ["adam_update"] * 2
