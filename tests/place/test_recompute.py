"""Recomputation: backward stages start from what entered their forward stage."""

from __future__ import annotations

import pytest

from popple.graph import Graph, Phase, Redone, parse_graph
from popple.place import Pipeline, Recompute, Shard, run_passes
from popple.place.checkpoints import decreasing_intervals, find_checkpoints
from tests.place.graphs import assert_staged, named, ops_of

# Two relus in stage 0, one in stage 1; the gradients read all three results.
TEXT = """
graph "deep" num_chips=2 {
  input %x : f32[4]
  relu %a : %a : f32[4] = (%x) forward chip=0 stage=0 in "first" at "m.py:1"
  relu %b : %b : f32[4] = (%a) forward chip=0 stage=0 in "first" at "m.py:2"
  relu %c : %c : f32[4] = (%b) forward chip=1 stage=1
  fill %g : %g : f32[4] = () backward chip=1 stage=1
  relu_grad %dc : %dc : f32[4] = (%g, %c) backward chip=1 stage=1
  relu_grad %db : %db : f32[4] = (%dc, %b) backward chip=0 stage=0
  relu_grad %da : %da : f32[4] = (%db, %a) backward chip=0 stage=0
  output %c
}
"""


def piped(text: str, recompute: bool = True) -> Graph:
    graph = run_passes(parse_graph(text), [Pipeline(recompute)])
    assert_staged(graph)
    return graph


def test_without_recomputation_everything_is_kept() -> None:
    graph = piped(TEXT, recompute=False)
    assert {op.inputs[1] for op in ops_of(graph, "stash")} == {"a", "b"}
    assert not graph.execution.recompute


def test_only_what_enters_a_stage_is_kept() -> None:
    graph = piped(TEXT)
    assert [op.inputs[1] for op in ops_of(graph, "stash")] == ["x"]
    assert graph.execution.recompute


def test_forward_work_is_redone_in_the_backward_stage() -> None:
    graph = piped(TEXT)
    again = named(graph, "a.again")
    assert (again.stage, again.chip, again.phase) == (2, 0, Phase.BACKWARD)
    assert (again.module, again.line) == ("first", "m.py:1")
    assert named(graph, "db").inputs == ("dc.on0for2", "b.again")
    assert named(graph, "da").inputs == ("db", "a.again")


def test_a_checkpoint_is_kept_and_not_redone() -> None:
    graph = piped(
        TEXT.replace("(%x) forward", '(%x) notes {"is_checkpoint": true} forward')
    )
    assert [op.inputs[1] for op in ops_of(graph, "stash")] == ["a"]
    assert {op.name for op in graph.ops if op.name.endswith(".again")} == {"b.again"}


def test_redone_ops_stand_right_before_their_first_use() -> None:
    # With a checkpoint between them, a is redone when b's gradient is done with.
    text = TEXT.replace("(%a) forward", '(%a) notes {"is_checkpoint": true} forward')
    text = text.replace(
        "  relu %c",
        "  relu %d : %d : f32[4] = (%b) forward chip=0 stage=0\n  relu %c",
    ).replace(
        "  relu_grad %db",
        "  relu_grad %dd : %dd : f32[4] = (%dc, %d) backward chip=0 stage=0\n"
        "  relu_grad %db",
    )
    order = [op.name for op in piped(text.replace("(%dc, %b)", "(%dd, %b)")).ops]
    again = [n for n in order if n in ("d.again", "dd", "db", "a.again", "da")]
    assert again == ["d.again", "dd", "db", "a.again", "da"]


def test_the_last_stage_redoes_nothing() -> None:
    graph = piped(TEXT)
    assert named(graph, "dc").inputs == ("g", "c")
    assert {op.name for op in graph.ops if op.name.endswith(".again")} == {
        "a.again",
        "b.again",
    }


def test_what_no_gradient_reads_is_not_redone() -> None:
    text = TEXT.replace("(%dc, %b)", "(%dc, %a)")
    assert "b.again" not in {op.name for op in piped(text).ops}


def test_inference_redoes_nothing() -> None:
    forward = "\n".join(line for line in TEXT.splitlines() if "backward" not in line)
    graph = piped(forward)
    assert not graph.execution.recompute
    assert len(ops_of(graph, "relu")) == 3


def test_a_state_is_not_overwritten_a_second_time() -> None:
    text = TEXT.replace(
        "  relu %a",
        "  state %n : f32[4]\n"
        "  add %n1 : %n1 : f32[4] shares %n = (%n) forward chip=0 stage=0\n"
        "  relu %a",
    ).replace("(%x) forward", "(%n1) forward")
    graph = piped(text)
    assert graph.root("n1") == "n"
    assert graph.values["n1.again"].storage == ""


def test_views_inside_a_stage_are_redone_with_their_owner() -> None:
    text = TEXT.replace("%b : f32[4] = (%a)", "%b : f32[4] shares %a = (%a)")
    graph = piped(text.replace("relu %b", "reshape %b"))
    assert graph.values["b.again"].storage == "a.again"


def test_stages_that_take_turns_redo_their_work_before_going_back() -> None:
    graph = run_passes(parse_graph(TEXT), [Recompute(), Shard()])
    order = [op.name for op in graph.ops if op.kind != "chip_copy"]
    assert order == ["a", "b", "c", "g", "dc", "a.again", "b.again", "db", "da"]
    assert named(graph, "da").inputs[1] == "a.again"


ONE_STAGE = TEXT.replace("stage=1", "stage=0").replace("chip=1", "chip=0")


def test_one_stage_has_nothing_to_redo() -> None:
    assert len(run_passes(parse_graph(ONE_STAGE), [Recompute()]).ops) == 7


def test_one_stage_redoes_what_its_checkpoints_are_made_of_if_asked_to() -> None:
    # b is kept, so that a is made again; c follows the last checkpoint.
    text = ONE_STAGE.replace("(%a) fo", '(%a) notes {"is_checkpoint": true} fo')
    graph = run_passes(parse_graph(text), [Recompute(Redone.ALL)])
    order = ["a", "b", "c", "g", "dc", "db", "a.again", "da"]
    assert [op.name for op in graph.ops] == order
    assert named(graph, "da").inputs == ("db", "a.again")


def test_the_last_stage_redoes_up_to_its_last_checkpoint() -> None:
    text = TEXT.replace(
        "  relu %c : %c : f32[4] = (%b)",
        "  relu %e : %e : f32[4] = (%b) forward chip=1 stage=1\n"
        '  relu %c : %c : f32[4] = (%e) notes {"is_checkpoint": true}',
    ).replace("(%g, %c)", "(%g, %e)")
    again = {op.name for op in piped(text).ops if op.name.endswith(".again")}
    assert again == {"a.again", "b.again", "e.again"}
    assert named(piped(text), "e.again").stage == 1


def test_norms_alone_are_redone() -> None:
    norm = 'layer_norm %b : %b : f32[4] = (%a) {"num_statistics": 1}'
    text = ONE_STAGE.replace("relu %b : %b : f32[4] = (%a)", norm)
    graph = parse_graph(text)
    # b is the norm.
    assert find_checkpoints(graph, Redone.NORMS, last=0) == {"a", "c"}


@pytest.mark.parametrize(
    ("count", "found"),
    [
        (1, [(0, 1)]),
        # isqrt(50) = 7, three quarters of 6 are 4: 4, 3, 2, 1 and single ops.
        (12, [(0, 2), (2, 3), *[(i, i + 1) for i in range(3, 12)]]),
        (25, [(0, 4), (4, 7), (7, 9), *[(i, i + 1) for i in range(9, 25)]]),
    ],
)
def test_intervals_become_shorter(count: int, found: list[tuple[int, int]]) -> None:
    assert decreasing_intervals(count) == found


def test_standard_keeps_what_is_smallest() -> None:
    # Of each interval the op after which least is in memory is kept: 25 relus, every
    # one alone in memory, so the first of each interval, 0, 4 and 7, then each.
    lines = ["  input %v0 : f32[4]"]
    for i in range(25):
        lines.append(
            f"  relu %v{i + 1} : %v{i + 1} : f32[4] = (%v{i}) forward chip=0 stage=0"
        )
    lines.append("  fill %g25 : %g25 : f32[4] = () backward chip=0 stage=0")
    for i in reversed(range(25)):
        made = f"  relu_grad %g{i} : %g{i} : f32[4]"
        lines.append(f"{made} = (%g{i + 1}, %v{i + 1}) backward chip=0 stage=0")
    text = "\n".join(['graph "chain" {', *lines, "  output %v25", "}"])
    graph = run_passes(parse_graph(text), [Recompute(Redone.STANDARD)])
    again = {op.name for op in graph.ops if op.name.endswith(".again")}
    assert again == {f"v{i + 1}.again" for i in (1, 2, 3, 5, 6, 8)}
