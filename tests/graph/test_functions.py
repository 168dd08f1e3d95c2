"""Functions of a graph: text form, rules, who runs them."""

from __future__ import annotations

import pytest

from popple.errors import GraphError
from popple.graph import (
    Graph,
    all_ops,
    function_order,
    functions_of,
    num_sites,
    parse_graph,
    render_graph,
    verify,
)

TEXT = """\
graph "g" num_chips=2 {
  input %x : f32[4]
  weight %w : f32[4]
  input %n : i32[]
  call %first : %a : f32[4] = (%x, %w) {"function": "scale"} forward chip=1 stage=1
  repeat %again : %b : f32[4] = (%a, %w) {"count": 3, "function": "scale"} \
forward chip=1 stage=1
  while %until : %c : f32[4] = (%b) {"condition": "small", "count": 9, \
"function": "double"} forward chip=0 stage=0
  branch %one : %d : f32[4] = (%n, %c) {"functions": ["double", "outer"]} \
forward chip=0 stage=0
  output %d
}
function "scale" {
  argument %x : f32[4]
  argument %w : f32[4]
  mul %m : %y : f32[4] = (%x, %w) forward chip=0 stage=0
  output %y
}
function "double" {
  argument %x : f32[4]
  add %s : %y : f32[4] = (%x, %x) forward chip=0 stage=0
  output %y
}
function "small" {
  argument %x : f32[4]
  is_finite %f : %ok : bool[4] = (%x) forward chip=0 stage=0
  reduce_all %all : %yes : bool[] = (%ok) {"dims": [0]} forward chip=0 stage=0
  output %yes
}
function "outer" {
  argument %x : f32[4]
  call %inner : %y : f32[4] = (%x) {"function": "double"} forward chip=0 stage=0
  output %y
}
"""


@pytest.fixture
def graph() -> Graph:
    found = parse_graph(TEXT)
    verify(found)
    return found


def test_the_text_form_round_trips(graph: Graph) -> None:
    assert parse_graph(render_graph(graph)) == graph
    assert list(graph.functions) == ["scale", "double", "small", "outer"]


def test_what_ops_run(graph: Graph) -> None:
    by_name = {op.name: functions_of(op) for op in graph.ops}
    assert by_name == {
        "first": ("scale",),
        "again": ("scale",),
        "until": ("double", "small"),
        "one": ("double", "outer"),
    }
    # double: the while, the branch, and inside outer.
    assert num_sites(graph) == {"scale": 2, "double": 3, "small": 1, "outer": 1}


def test_what_is_run_comes_before_what_runs_it(graph: Graph) -> None:
    order = function_order(graph)
    assert order.index("double") < order.index("outer")


def test_ops_of_functions_stand_where_they_are_first_run(graph: Graph) -> None:
    places = {op.name: (op.chip, op.stage) for op, _ in all_ops(graph)}
    assert places["scale/m"] == (1, 1)
    assert places["double/s"] == (0, 0)
    assert places["outer/inner"] == (0, 0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"function": "scale"} f', '"function": "scales"} f', "unknown function"),
        ("= (%x, %w) {", "= (%w) {", r"gives \(f32\[4\]\) to 'scale', which takes"),
        ("%a : f32[4] = (", "%a : f32[5] = (", "which gives"),
        ("(%n, %c)", "(%x, %c)", "not by one bool or integer"),
        ("argument %w", "weight %w", "is a weight, which must be given"),
        ("%yes : bool[] =", "%yes : f32[] =", r"decided by \(f32\[\]\)"),
        (
            "mul %m : %y : f32[4] = (%x, %w) forward chip=0",
            "mul %m : %y : f32[4] = (%x, %w) forward chip=1",
            "inside a function|is on chip 1",
        ),
        (
            'call %inner : %y : f32[4] = (%x) {"function": "double"}',
            'call %inner : %y : f32[4] = (%x) {"function": "outer"}',
            "runs itself",
        ),
    ],
)
def test_broken_rules_are_named(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(GraphError, match=message):
        verify(parse_graph(TEXT.replace(old, new, 1)))


def test_loops_carry_what_they_are_given() -> None:
    text = TEXT.replace(
        '{"count": 3, "function": "scale"}', '{"count": 3, "function": "shrink"}'
    )
    text += """\
function "shrink" {
  argument %x : f32[4]
  argument %w : f32[4]
  reduce_sum %m : %y : f32[] = (%x) {"dims": [0]} forward chip=0 stage=0
  output %y
}
"""
    text = text.replace("%b : f32[4] = (%a, %w)", "%b : f32[] = (%a, %w)")
    with pytest.raises(GraphError, match="carries"):
        verify(parse_graph(text))


def test_the_main_graph_comes_first() -> None:
    with pytest.raises(GraphError, match="main graph comes first"):
        parse_graph('function "f" {\n}\n')


def test_names_of_functions_are_their_own(graph: Graph) -> None:
    with pytest.raises(GraphError, match="of a name of its own"):
        parse_graph(TEXT + 'function "scale" {\n}\n')
