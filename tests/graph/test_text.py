from __future__ import annotations

import pytest
from hypothesis import given

from popple.errors import GraphError
from popple.graph import Graph, Notes, Op, parse_graph, render_graph, verify
from tests.graph.strategies import graphs

TEXT = """\
graph "train" strategy=pipelined num_chips=2 accumulation=4 recompute=1 {
  input %x : f32[16,64]
  weight %fc.weight : f32[64,10]
  state %step : i32[]
  constant %eps : f16[1] shares %step
  matmul %fc : %y : f32[16,10] = (%x, %fc.weight) forward chip=0 stage=0 in "net.fc" \
at "m.py:3"
  permute %view : %z : f32[10,16] shares %y = (%y) {"order": [1, 0]} forward chip=1 \
stage=1
  sort %s : %v : f32[10,16] ; %i : i32[10,16] = (%z) {"dim": 0} notes \
{"block_size": 8, "labels": {"a": "b"}} backward chip=1 stage=1
  stream_out %out = (%v) update chip=1 stage=1
  output %z
}
"""


def test_every_part_of_a_graph_prints_and_parses() -> None:
    assert render_graph(parse_graph(TEXT)) == TEXT


def test_parts_land_in_their_fields() -> None:
    graph = parse_graph(TEXT)
    op = graph.ops[0]
    assert (op.kind, op.inputs, op.outputs) == ("matmul", ("x", "fc.weight"), ("y",))
    assert (op.module, op.line) == ("net.fc", "m.py:3")
    assert graph.ops[1].attrs == {"order": (1, 0)}
    assert graph.ops[2].outputs == ("v", "i")
    assert graph.ops[2].notes == Notes(block_size=8, labels=(("a", "b"),))
    assert graph.values["z"].storage == "y"
    assert graph.execution.accumulation == 4
    assert graph.outputs == ("z",)


@given(graphs())
def test_parsing_is_the_inverse_of_printing(graph: Graph) -> None:
    assert parse_graph(render_graph(graph)) == graph


@given(graphs())
def test_random_graphs_obey_the_rules(graph: Graph) -> None:
    verify(graph)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "line 1: cannot read ''; expected the form `graph"),
        ('graph "g" {', "line 1: the graph has no closing brace"),
        ('graph "g" speed=3 {\n}', "line 1: unknown setting 'speed'"),
        ('graph "g" {\n  input x : f32[2]\n}', "line 2: cannot read 'input x"),
        ('graph "g" {\n  input %x : f33[2]\n}', "line 2: there is no element type"),
        (
            'graph "g" {\n  input %x : f32[2]\n  input %x : f32[3]\n}',
            "line 3: %x is declared a second time",
        ),
        ('graph "g" {\n  neg %n : %y = (%x) forward\n}', "line 2: cannot read"),
    ],
)
def test_bad_lines_are_named(text: str, complaint: str) -> None:
    with pytest.raises(GraphError) as caught:
        parse_graph(text)
    assert complaint in str(caught.value)


def test_an_op_without_attributes_has_none() -> None:
    graph = parse_graph(
        'graph "g" {\n neg %n : %y : f32[] = () forward chip=0 stage=0\n}'
    )
    assert graph.ops == (Op("n", "neg", (), ("y",)),)
