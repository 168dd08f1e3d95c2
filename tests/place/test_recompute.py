"""Recomputation: backward stages start from what entered their forward stage."""

from __future__ import annotations

from popple.graph import Graph, Phase, parse_graph
from popple.place import Pipeline, Recompute, Shard, run_passes
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


def test_one_stage_has_nothing_to_redo() -> None:
    text = TEXT.replace("stage=1", "stage=0").replace("chip=1", "chip=0")
    assert len(run_passes(parse_graph(text), [Recompute()]).ops) == 7
