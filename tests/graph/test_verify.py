from __future__ import annotations

from dataclasses import replace

import pytest

from popple.errors import GraphError
from popple.graph import Graph, Value, parse_graph, verify

GOOD = """\
graph "g" num_chips=2 {
  input %x : f32[2,3]
  weight %w : f32[3,4]
  matmul %mm : %y : f32[2,4] = (%x, %w) forward chip=0 stage=0 at "net.py:7"
  reshape %view : %z : f32[8] shares %y = (%y) forward chip=1 stage=0
  output %z
}
"""


def test_a_good_graph_passes() -> None:
    verify(parse_graph(GOOD))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("(%x, %w)", "(%x, %u)", "matmul %mm uses %u before it is defined"),
        ("(%x, %w)", "(%x, %z)", "matmul %mm uses %z before it is defined"),
        ("chip=1", "chip=2", "reshape %view is on chip 2 of 2"),
        ("matmul %mm", "matmull %mm", "Did you mean 'matmul'"),
        ("(%x, %w)", "(%x)", "matmul %mm takes 2 inputs, got 1"),
        ("f32[2,4]", "f32[2,5]", "matmul %mm gives [...,2,4], not f32[2,5]"),
        ("f32[8] shares %y", "f32[9]", "keeps the number of elements"),
        ("output %z", "output %u", "output %u is never computed"),
        ("shares %y", "shares %u", "%z shares memory with an unknown value"),
        ("shares %y", "shares %z", "the storage of %z is a circle"),
    ],
)
def test_each_rule_is_checked(old: str, new: str, complaint: str) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(GraphError) as caught:
        verify(parse_graph(GOOD.replace(old, new)))
    assert complaint in str(caught.value)


def test_a_result_must_be_declared() -> None:
    graph = parse_graph(GOOD)
    values = {name: v for name, v in graph.values.items() if name != "z"}
    with pytest.raises(GraphError, match="result %z is not declared"):
        verify(replace(graph, values=values, outputs=()))


def test_a_value_is_defined_once() -> None:
    graph = parse_graph(GOOD)
    again = replace(graph.ops[1], outputs=("y",))
    with pytest.raises(GraphError, match="reshape %view defines %y a second time"):
        verify(replace(graph, ops=(graph.ops[0], again), outputs=()))


def test_a_value_is_filed_under_its_name() -> None:
    graph = parse_graph(GOOD)
    values: dict[str, Value] = {**graph.values, "u": graph.values["x"]}
    with pytest.raises(GraphError, match="%x is filed under %u"):
        verify(replace(graph, values=values))


def test_the_users_line_is_named_where_it_is_known() -> None:
    graph: Graph = parse_graph(GOOD.replace("(%x, %w)", "(%x)"))
    with pytest.raises(GraphError) as caught:
        verify(graph)
    assert caught.value.where == "net.py:7"
