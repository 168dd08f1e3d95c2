"""AccumulateGradients: sums over micro-batches, and where they are reset."""

from __future__ import annotations

import pytest

from popple.errors import UsageError
from popple.graph import DType, Graph, Phase, Role, parse_graph
from popple.place import (
    AccumulateGradients,
    Pipeline,
    Replicate,
    Shard,
    UpdateWeights,
    run_passes,
)
from tests.place.graphs import ONE_CHIP, SGD, TWO_CHIPS, assert_local, named, ops_of

SHARED = UpdateWeights("sgd_update", 0, {"a": "da", "b": "da"})


def accumulated(count: int, update: UpdateWeights = SGD) -> Graph:
    return run_passes(parse_graph(ONE_CHIP), [update, AccumulateGradients(count)])


def test_one_micro_batch_needs_no_accumulator() -> None:
    graph = accumulated(1)
    assert not ops_of(graph, "accumulate")
    assert graph.execution.accumulation == 1


def test_the_update_reads_the_sum() -> None:
    graph = accumulated(4)
    assert graph.execution.accumulation == 4
    assert named(graph, "da.accumulate").inputs == ("da.accumulator", "da")
    assert named(graph, "a.update").inputs == ("a", "da.accumulated")


def test_sums_are_made_with_the_gradient_and_reset_after_the_update() -> None:
    order = [op.name for op in accumulated(4).ops]
    expected = ["da", "da.accumulate", "a.update", "da.accumulator.clear"]
    assert [name for name in order if name in expected] == expected


def test_an_accumulator_is_one_piece_of_memory() -> None:
    graph = accumulated(4)
    owners = {graph.root(f"da.{part}") for part in ("accumulated", "cleared")}
    assert owners == {"da.accumulator"}
    assert graph.values["da.accumulator"].role is Role.STATE


def test_sum_and_reset_know_the_users_line() -> None:
    graph = accumulated(4)
    for name in ("da.accumulate", "da.accumulator.clear"):
        op = named(graph, name)
        assert (op.module, op.line) == ("first", "m.py:1")


def test_accumulators_have_a_type_of_their_own() -> None:
    passes = [SGD, AccumulateGradients(2, DType.F16)]
    graph = run_passes(parse_graph(ONE_CHIP), passes)
    assert graph.type_of("da.accumulator").dtype is DType.F16


def test_weights_that_share_a_gradient_share_its_sum() -> None:
    graph = accumulated(4, SHARED)
    assert len(ops_of(graph, "accumulate")) == len(ops_of(graph, "clear")) == 1
    readers = [named(graph, f"{w}.update").inputs[1] for w in "ab"]
    assert readers == ["da.accumulated", "da.accumulated"]


def test_a_gradient_no_op_makes_is_accumulated_beside_its_update() -> None:
    text = ONE_CHIP.replace("  output", "  constant %g : f32[8,8]\n  output")
    passes = [UpdateWeights("sgd_update", 0, {"a": "g"}), AccumulateGradients(2)]
    graph = run_passes(parse_graph(text), passes)
    assert named(graph, "g.accumulate").phase is Phase.BACKWARD


def test_a_reset_is_on_the_chip_of_its_accumulator() -> None:
    # b lives on chip 1, but its gradient is said to be made on chip 0.
    update = UpdateWeights("sgd_update", 0, {"b": "da"})
    passes = [update, AccumulateGradients(2), Shard()]
    graph = run_passes(parse_graph(TWO_CHIPS), passes)
    assert named(graph, "da.accumulator.clear").chip == 0
    assert named(graph, "b.update").chip == 1
    assert_local(graph)


def test_other_ops_of_the_update_phase_stay() -> None:
    passes = [SGD, AccumulateGradients(2), Replicate(2), AccumulateGradients(1)]
    graph = run_passes(parse_graph(ONE_CHIP), passes)
    assert len(ops_of(graph, "all_reduce")) == 2


def test_there_is_at_least_one_micro_batch() -> None:
    with pytest.raises(UsageError, match="needs a micro-batch"):
        AccumulateGradients(0)


# A table that stage 0 looks up and stage 1 multiplies with: its gradient
# is the sum of a part of either, on one chip.
TIED = """
graph "tied" num_chips=2 {
  input %x : f32[8,8]
  weight %a : f32[8,8]
  relu %h : %h : f32[8,8] = (%a) forward chip=0 stage=0
  matmul %y : %y : f32[8,8] = (%h, %a) forward chip=0 stage=1
  fill %d1 : %d1 : f32[8,8] = () backward chip=0 stage=1
  relu_grad %d0 : %d0 : f32[8,8] = (%d1, %h) backward chip=0 stage=0
  add %da : %da : f32[8,8] = (%d1, %d0) backward chip=0 stage=0
  output %y
}
"""
TABLE = UpdateWeights("sgd_update", 0, {"a": "da"})


def test_parts_of_a_gradient_are_added_where_they_are_made() -> None:
    passes = [TABLE, AccumulateGradients(4), Pipeline(recompute=False)]
    graph = run_passes(parse_graph(TIED), passes)
    sums = ops_of(graph, "accumulate")
    assert [(op.inputs[1], op.stage) for op in sums] == [("d1", 1), ("d0", 2)]
    assert {graph.root(op.outputs[0]) for op in sums} == {"da.accumulator"}
    assert not ops_of(graph, "add")
    # What stage 1 gives to stage 2 is d1, which d0 is made of; nothing travels for da.
    assert {op.inputs[1] for op in ops_of(graph, "stash")} == {"h", "d1"}


def test_the_sum_of_a_product_and_a_lookup_lies_as_the_table() -> None:
    ids = "  relu_grad %d0 : %d0 : f32[8,8] = (%d1, %h)"
    rows = "  scatter_add %d0 : %d0 : f32[8,8] = (%h, %i, %d1)"
    text = TIED.replace(ids, rows).replace("  weight", "  input %i : i32[8]\n  weight")
    graph = run_passes(parse_graph(text), [TABLE, AccumulateGradients(4)])
    sums = ops_of(graph, "accumulate")
    assert [op.inputs[1:] for op in sums] == [("d1", "a"), ("d0", "a")]


def test_a_sum_that_others_read_is_made() -> None:
    text = TIED.replace("output %y", "output %da")
    graph = run_passes(parse_graph(text), [TABLE, AccumulateGradients(4)])
    assert [op.inputs[1] for op in ops_of(graph, "accumulate")] == ["da"]


def test_a_part_on_another_chip_is_added_to_the_gradient_first() -> None:
    text = TIED.replace("chip=0 stage=1", "chip=1 stage=1")
    graph = run_passes(parse_graph(text), [TABLE, AccumulateGradients(4)])
    assert [op.inputs[1] for op in ops_of(graph, "accumulate")] == ["da"]
