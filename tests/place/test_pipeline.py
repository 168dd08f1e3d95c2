"""Pipeline: numbered stages, rings on one chip, copies between chips."""

from __future__ import annotations

import pytest

from popple.errors import PlacementError
from popple.graph import Graph, Op, Phase, Strategy, parse_graph
from popple.place import AccumulateGradients, Pipeline, Replicate, run_passes
from tests.place.graphs import (
    SGD,
    TWO_CHIPS,
    assert_staged,
    chain,
    named,
    ops_of,
    two_chips_updated,
)


def piped(graph: Graph, *, recompute: bool = False) -> Graph:
    result = run_passes(graph, [Pipeline(recompute)])
    assert_staged(result)
    return result


def depth_of(graph: Graph, stash: Op) -> int:
    """Entries of the ring that an op pushes to."""
    return graph.type_of(stash.outputs[0]).shape[0]


def symmetric(num_stages: int) -> Graph:
    """relu on chips 0..S-1, and its gradients back through all of them."""
    places = [(stage, stage) for stage in range(num_stages)]
    lines = [f"  fill %g{num_stages} : %g{num_stages} : f32[4] = () backward "]
    lines[0] += f"chip={num_stages - 1} stage={num_stages - 1}"
    lines += [
        f"  relu_grad %g{s} : %g{s} : f32[4] = (%g{s + 1}, %v{s + 1}) "
        f"backward chip={s} stage={s}"
        for s in reversed(range(num_stages))
    ]
    return chain(*places, extra="\n".join(lines))


def test_one_stage_is_no_pipeline() -> None:
    graph = piped(chain((0, 0), (0, 0)))
    assert graph.execution.strategy is Strategy.SINGLE
    assert graph.execution.num_stages == 1


def test_inference_has_as_many_stages_as_chips() -> None:
    execution = piped(chain((0, 0), (1, 1), (2, 2))).execution
    assert execution.strategy is Strategy.PIPELINED
    assert (execution.num_stages, execution.num_chips) == (3, 3)


@pytest.mark.parametrize("num_forward", [2, 3, 4])
def test_training_has_2s_minus_1_stages(num_forward: int) -> None:
    graph = piped(symmetric(num_forward))
    assert graph.execution.num_stages == 2 * num_forward - 1
    gradients = [named(graph, f"g{s}").stage for s in range(num_forward)]
    # The backward stage of forward stage s is 2S-2-s; the last one does both.
    assert gradients == [2 * num_forward - 2 - s for s in range(num_forward)]


def test_gaps_in_the_users_stage_numbers_are_closed() -> None:
    graph = piped(chain((0, 0), (2, 2), (5, 9)))
    assert [op.stage for op in ops_of(graph, "relu")] == [0, 1, 2]
    assert graph.execution.num_stages == 3


@pytest.mark.parametrize("num_forward", [2, 3, 4])
def test_rings_hold_every_micro_batch_on_the_way(num_forward: int) -> None:
    graph = piped(symmetric(num_forward))
    depths = {op.inputs[1]: depth_of(graph, op) for op in ops_of(graph, "stash")}
    # v(s+1) is made in stage s and read again in 2S-2-s: 2(S-1-s) later, and one.
    last = num_forward - 1
    expected = {f"v{s + 1}": 2 * (last - s) + 1 for s in range(last)}
    assert depths == expected


def test_a_ring_is_memory_for_depth_entries() -> None:
    graph = piped(symmetric(2))
    assert str(graph.type_of("v1.ring2")) == "f32[3,4]"
    restore = named(graph, "v1.restored2")
    assert (restore.stage, restore.inputs) == (2, ("v1.ring2.pushed",))


def test_stages_restore_first_and_stash_last() -> None:
    graph = piped(symmetric(3))
    for stage in range(5):
        kinds = [op.kind for op in graph.ops if op.stage == stage]
        order = ["restore", "relu", "fill", "relu_grad", "stash", "chip_copy"]
        assert [order.index(kind) for kind in kinds] == sorted(map(order.index, kinds))


def test_stash_and_restore_belong_to_the_phase_of_their_stage() -> None:
    graph = piped(symmetric(2))
    assert named(graph, "v1.ring2.pushed").phase is Phase.FORWARD
    assert named(graph, "v1.restored2").phase is Phase.BACKWARD


def test_a_copy_stands_at_the_end_of_the_sending_stage() -> None:
    graph = piped(chain((0, 0), (1, 1)))
    (copy,) = ops_of(graph, "chip_copy")
    assert (copy.stage, copy.chip, copy.attrs["source"]) == (0, 1, 0)


def test_a_skip_over_two_stages_waits_on_the_chip_that_reads_it() -> None:
    skip = "  add %s : %s : f32[4] = (%v1, %v4) forward chip=3 stage=3"
    graph = piped(chain((0, 0), (1, 1), (2, 2), (3, 3), extra=skip))
    copies = [op for op in ops_of(graph, "chip_copy") if op.inputs == ("v1",)]
    assert [op.chip for op in copies] == [1, 3]
    (ring,) = ops_of(graph, "stash")
    # Copied at the end of stage 0, used in stage 3: it waits while 1 and 2 run.
    assert (ring.chip, ring.stage, depth_of(graph, ring)) == (3, 3, 3)


def test_a_value_goes_to_a_chip_once_and_waits_there() -> None:
    # v1 (chip 0) is read on chip 1 in stage 1 and, on the way back, in stage 3.
    extra = "\n".join(
        [
            "  fill %g : %g : f32[4] = () backward chip=2 stage=2",
            "  relu_grad %d : %d : f32[4] = (%g, %v1) backward chip=1 stage=1",
        ]
    )
    graph = piped(chain((0, 0), (1, 1), (2, 2), extra=extra))
    copies = [op for op in ops_of(graph, "chip_copy") if op.inputs == ("v1",)]
    assert [op.chip for op in copies] == [1]
    (ring,) = ops_of(graph, "stash")
    assert ring.inputs[1] == copies[0].outputs[0]
    assert (ring.stage, depth_of(graph, ring)) == (1, 3)


def test_stages_may_return_to_a_chip() -> None:
    graph = piped(chain((0, 0), (1, 1), (0, 2)))
    assert [op.chip for op in ops_of(graph, "relu")] == [0, 1, 0]
    assert graph.execution.num_chips == 2


def test_a_weight_used_in_two_stages_lives_in_the_first() -> None:
    text = TWO_CHIPS.replace("(%h, %b)", "(%h, %a)")
    graph = piped(parse_graph(text))
    copies = [op for op in ops_of(graph, "chip_copy") if op.inputs == ("a",)]
    assert [(op.stage, op.chip, op.attrs["source"]) for op in copies] == [(0, 1, 0)]


def test_a_tied_weight_first_read_by_a_later_stage_lives_in_the_earliest() -> None:
    text = """
    graph "early" num_chips=2 {
      input %x : f32[4]
      weight %w : f32[4]
      mul %b : %b : f32[4] = (%x, %w) forward chip=1 stage=1
      mul %a : %a : f32[4] = (%x, %w) forward chip=0 stage=0
      add %c : %c : f32[4] = (%a, %b) forward chip=1 stage=1
      output %c
    }
    """
    graph = piped(parse_graph(text))
    (copy,) = [op for op in ops_of(graph, "chip_copy") if op.inputs == ("w",)]
    assert (copy.attrs["source"], copy.chip) == (0, 1)


def test_updates_run_where_the_weights_live() -> None:
    graph = piped(two_chips_updated())
    assert [named(graph, f"{w}.update").chip for w in "ab"] == [0, 1]


def test_a_gradient_made_on_another_chip_is_copied_to_the_update() -> None:
    tied = TWO_CHIPS.replace("(%h, %b)", "(%h, %a)").replace("(%b)", "(%a)")
    tied = tied.replace("shares %b", "shares %a")
    graph = piped(run_passes(parse_graph(tied), [SGD]))
    # No stage reads b any more, so it is nowhere in particular; db is made on chip 1.
    assert named(graph, "b.update").chip == 0
    assert named(graph, "b.update").inputs == ("b", "db.to0.update0")


def test_accumulation_and_replicas_go_through_the_pipeline() -> None:
    passes = [SGD, AccumulateGradients(4), Replicate(2), Pipeline()]
    graph = run_passes(parse_graph(TWO_CHIPS), passes)
    assert_staged(graph)
    assert named(graph, "db.accumulate").stage == 1
    assert named(graph, "da.accumulate").stage == 2
    assert named(graph, "da.accumulated.reduce").chip == 0
    assert named(graph, "da.accumulator.clear").chip == 0


def test_views_are_taken_anew_in_the_stage_that_reads_them() -> None:
    text = """
    graph "view" num_chips=2 {
      input %x : f32[4,8]
      relu %h : %h : f32[4,8] = (%x) forward chip=0 stage=0
      permute %t : %t : f32[8,4] shares %h = (%h) forward chip=0 stage=0
      relu %y : %y : f32[8,4] = (%t) forward chip=1 stage=1
      output %y
    }
    """
    graph = piped(parse_graph(text))
    (copy,) = ops_of(graph, "chip_copy")
    assert copy.inputs == ("h",)
    assert graph.root(named(graph, "y").inputs[0]) == copy.outputs[0]


def test_a_part_of_an_activation_travels_without_the_rest() -> None:
    text = """
    graph "part" num_chips=2 {
      input %x : f32[4,8]
      relu %h : %h : f32[4,8] = (%x) forward chip=0 stage=0
      slice %s : %s : f32[4,1] shares %h = (%h) forward chip=0 stage=0
      reshape %r : %r : f32[4] shares %s = (%s) forward chip=0 stage=0
      relu %y : %y : f32[4] = (%r) forward chip=1 stage=1
      output %y
    }
    """
    graph = piped(parse_graph(text))
    (copy,) = ops_of(graph, "chip_copy")
    assert copy.inputs == ("s",)


def test_data_that_flows_backwards_names_the_users_line() -> None:
    with pytest.raises(PlacementError, match=r"m\.py:2: .*stage 0 .*stage 1") as error:
        piped(chain((1, 1), (0, 0)))
    assert "order the blocks" in error.value.remedy


def test_a_stage_on_two_chips_names_the_users_line() -> None:
    with pytest.raises(PlacementError, match=r"m\.py:2: relu v2 is on chip 1") as error:
        piped(chain((0, 0), (1, 0), (1, 1)))
    assert "runs on one chip" in error.value.remedy


def test_a_backward_op_moves_to_the_stage_of_what_it_reads() -> None:
    # Both gradients of a tied weight: the sum can only be made in the later stage.
    extra = "\n".join(
        [
            "  fill %g1 : %g1 : f32[4] = () backward chip=1 stage=1",
            "  fill %g0 : %g0 : f32[4] = () backward chip=0 stage=0",
            "  add %sum : %sum : f32[4] = (%g1, %g0) backward chip=1 stage=1",
        ]
    )
    graph = piped(chain((0, 0), (1, 1), extra=extra))
    assert (named(graph, "sum").chip, named(graph, "sum").stage) == (0, 2)


def test_interleaved_stages_stash_half_as_much() -> None:
    def depths(interleaved: bool) -> list[int]:
        passes = [Pipeline(recompute=False, interleaved=interleaved)]
        graph = run_passes(parse_graph(TWO_CHIPS), passes)
        return [depth_of(graph, op) for op in ops_of(graph, "stash")]

    # Stage 0 goes back in stage 2: after 2 cycles, or after 3 of which 2 bring more.
    assert depths(interleaved=False) == [3]
    assert depths(interleaved=True) == [2]
