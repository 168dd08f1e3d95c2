"""Attributes are checked when an op is made: names, types, what must be there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from popple.errors import GraphError
from popple.graph import Attr, Op, parse_graph, render_graph

WINDOW: dict[str, Attr] = {
    "stride": (1, 1),
    "padding": (0, 0),
    "dilation": (1, 1),
    "groups": 1,
}


def conv(**changes: Any) -> Op:
    attrs = {**WINDOW, **changes}
    return Op("c", "conv", ("x", "k"), ("y",), attrs, line="net.py:7")


def refusal(**changes: Any) -> GraphError:
    with pytest.raises(GraphError) as caught:
        conv(**changes)
    return caught.value


def test_an_unknown_name_is_refused_with_the_users_line_and_near_names() -> None:
    error = refusal(strides=(1, 1))
    assert (error.where, error.what) == (
        "net.py:7",
        "conv %c has no attribute 'strides'.",
    )
    assert error.remedy == "Did you mean 'stride'?"


def test_an_op_without_attributes_says_so() -> None:
    with pytest.raises(GraphError, match="Ops of this kind have no attributes"):
        Op("a", "add", ("x",), ("y",), {"dim": 1})


@pytest.mark.parametrize(
    "value", [1, [1, 1], (1, 1.0), (True, 1), (np.int64(1), 1), "1", None]
)
def test_integers_are_a_tuple_of_them(value: Any) -> None:
    assert "'stride' must be a tuple of integers" in refusal(stride=value).what


@pytest.mark.parametrize("value", [1.0, True, (1,), "1", np.int64(1)])
def test_an_integer_is_just_that(value: Any) -> None:
    assert "'groups' must be an integer, not" in refusal(groups=value).what


def test_flags_and_texts_have_their_types_too() -> None:
    with pytest.raises(GraphError, match="'is_upper' must be True or False, not 1"):
        Op("c", "cholesky", ("x",), ("y",), {"is_upper": 1})
    with pytest.raises(GraphError, match="'framework_op' must be a text, not 1"):
        Op("c", "generic", ("x",), ("y",), {"framework_op": 1})
    with pytest.raises(GraphError, match="must be one of lstm, gru, gru_reset_before"):
        Op("r", "recurrent", ("x",), ("y",), {"cell": "rnn", "num_states": 1})


def test_what_is_mandatory_must_be_there() -> None:
    with pytest.raises(GraphError, match="conv %c lacks the attribute 'stride'"):
        Op("c", "conv", ("x", "k"), ("y",), {"padding": (0, 0)})


def test_defaults_are_filled_in_and_the_rest_stays_away() -> None:
    solve = Op("s", "triangular_solve", ("a", "b"), ("x",), {"is_upper": True})
    assert solve.attrs == {"is_upper": True, "is_left": True, "is_unit": False}
    assert Op("s", "slice", ("x",), ("y",)).attrs == {}
    assert conv().attrs == WINDOW


def test_a_changed_copy_is_checked_like_any_other_op() -> None:
    with pytest.raises(GraphError, match="add %c has no attribute 'stride'"):
        replace(conv(), kind="add")


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(GraphError, match=r"net\.py:7.*Did you mean 'conv'"):
        replace(conv(), kind="convv")


def test_the_text_form_has_the_types_and_leaves_defaults_out() -> None:
    ops = [
        'conv %c : %c : f32[1,1,2,2] = (%x, %x) {"dilation": [1, 1], "groups": 1, '
        '"padding": [0, 0], "stride": [2, 2]}',
        'generic %g : %g : f32[1] = (%x) {"framework_op": "aten.x"}',
        'cholesky %u : %u : f32[1,1,2,2] = (%x) {"is_upper": true}',
        "cholesky %l : %l : f32[1,1,2,2] = (%x)",
    ]
    lines = [f"  {op} forward chip=0 stage=0" for op in ops]
    given = "  input %x : f32[1,1,2,2]"
    text = "\n".join(['graph "g" {', given, *lines, "}"]) + "\n"
    graph = parse_graph(text)
    assert graph.ops[0].attrs["stride"] == (2, 2)
    assert [op.attrs["is_upper"] for op in graph.ops[2:]] == [True, False]
    assert render_graph(graph) == text


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ('relu %y : %y : f32[2] = (%x) {"dim": 1}', "line 3: relu %y has no attribute"),
        ('sort %y : %y : f32[2] = (%x) {"dim": [1]}', "line 3: .* must be an integer"),
        ("relux %y : %y : f32[2] = (%x)", "line 3: there is no op 'relux'"),
        ('relu %y : %y : f32[2] = (%x) notes {"a": 1}', "line 3: there is no note 'a'"),
    ],
)
def test_a_bad_line_of_a_text_is_named(op: str, message: str) -> None:
    text = f'graph "g" {{\n  input %x : f32[2]\n  {op} forward chip=0 stage=0\n}}'
    with pytest.raises(GraphError, match=message):
        parse_graph(text)
