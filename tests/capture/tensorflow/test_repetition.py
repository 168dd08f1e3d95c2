"""What a program does once is not repeated with its loops."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")

from popple.capture.tensorflow.repetition import as_repeated
from popple.graph import Phase, parse_graph, verify

GRAPH = parse_graph("""graph "g" {
  input %x : f32[4]
  neg %a : %a : f32[4] = (%x) forward chip=0 stage=0
  neg %b : %b : f32[4] = (%a) forward chip=0 stage=0
  neg %c : %c : f32[4] = (%b) forward chip=0 stage=0
  neg %d : %d : f32[4] = (%c) forward chip=0 stage=0
  output %b
  output %d
}
""")


def test_a_program_without_loops_stays() -> None:
    assert as_repeated(GRAPH, [0, 0, 0, 0]) is GRAPH


def test_what_the_loop_needs_stays_and_the_rest_goes() -> None:
    repeated = as_repeated(GRAPH, [0, 1, 0, 0])
    verify(repeated)
    assert [op.name for op in repeated.ops] == ["a", "b"]
    assert repeated.outputs == ("b",)


def test_what_an_outer_loop_does_belongs_to_the_update() -> None:
    repeated = as_repeated(GRAPH, [1, 2, 1, 0])
    verify(repeated)
    assert [(op.name, op.phase) for op in repeated.ops] == [
        ("a", Phase.FORWARD),
        ("b", Phase.FORWARD),
        ("c", Phase.UPDATE),
    ]


def test_what_is_done_to_gradients_behind_the_loops_belongs_to_the_update() -> None:
    repeated = as_repeated(GRAPH, [0, 1, 0, 0], gradients=["c"])
    verify(repeated)
    assert [(op.name, op.phase) for op in repeated.ops] == [
        ("a", Phase.FORWARD),
        ("b", Phase.FORWARD),
        ("c", Phase.UPDATE),
    ]
