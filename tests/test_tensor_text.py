"""Tensors as text: brackets, columns, line breaks, what is left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popple.errors import UsageError
from popple.tensor_text import TensorFormat, render_tensor


def text_of(values: Any, **settings: Any) -> str:
    return render_tensor(np.array(values), TensorFormat(**settings))


def test_rows_stand_under_each_other() -> None:
    assert text_of([[1.0, 2.5], [3.125, -4.0]]) == (
        "(\n ( 1.000, 2.500)\n ( 3.125,-4.000)\n)"
    )


def test_every_dimension_is_indented() -> None:
    assert text_of([[[1, 2]], [[3, 4]]]) == ("(\n (\n  (1,2)\n )\n (\n  (3,4)\n )\n)")


def test_brackets_and_separator_can_be_chosen() -> None:
    settings = {"separator": ";", "open_bracket": "{", "close_bracket": "}"}
    assert text_of([1, 2, 3], **settings) == "{1;2;3}"


def test_integers_and_truth_values_have_no_fraction() -> None:
    assert text_of([6, 9, 12]) == "( 6, 9,12)"
    assert text_of([True, False]) == "(1,0)"


def test_a_number_alone_has_no_brackets() -> None:
    assert text_of(2.5) == "2.500"


def test_digits_include_those_before_the_point() -> None:
    assert text_of([12.5, 0.25], digits=5) == "(12.500, 0.250)"


def test_scientific_numbers_have_one_digit_before_the_point() -> None:
    assert text_of([1250.0], float_format="scientific") == "(1.250e+03)"


@pytest.mark.parametrize("number", [12345.0, 1e-5])
def test_numbers_that_do_not_fit_their_digits_become_scientific(number: float) -> None:
    assert "e" in text_of([1.0, number], digits=4)
    assert "e" not in text_of([1.0, number], digits=4, float_format="fixed")


@pytest.mark.parametrize("settings", [{"digits": 0}, {"float_format": "none"}])
def test_numbers_can_each_be_as_short_as_possible(settings: dict[str, Any]) -> None:
    assert text_of([1.0, 0.125, 1e-9], **settings) == "(1,0.125,1e-09)"


def test_infinities_and_nan_do_not_disturb_the_others() -> None:
    assert text_of([np.nan, -np.inf, 1.5]) == "(  nan, -inf,1.500)"


def test_long_rows_go_on_in_the_next_line() -> None:
    # "(100,200," is 9 wide; "300" and what follows it would make 13.
    assert text_of([100, 200, 300], max_line_width=12) == "(100,200,\n  300)"
    assert text_of([100, 200, 300], max_line_width=0) == "(100,200,300)"


def test_large_tensors_are_shown_by_their_edges() -> None:
    settings = {"summarise_threshold": 5, "edge_items": 1}
    assert text_of(np.arange(6), **settings) == "(0,...,5)"
    assert text_of(np.arange(9).reshape(3, 3), **settings) == (
        "(\n (0,...,2)\n ...\n (6,...,8)\n)"
    )


def test_nothing_is_left_out_of_a_dimension_that_fits() -> None:
    settings = {"summarise_threshold": 5, "edge_items": 3}
    assert text_of(np.arange(6), **settings) == "(0,1,2,3,4,5)"


def test_digits_are_chosen_by_what_is_shown() -> None:
    values = [1.5, 1e9, 2.5]
    assert text_of(values, summarise_threshold=2, edge_items=1) == "(1.500,...,2.500)"


@given(st.lists(st.floats(allow_nan=False, width=32), min_size=1, max_size=30))
def test_all_numbers_of_a_tensor_have_one_width(values: list[float]) -> None:
    items = text_of(values, max_line_width=0)[1:-1].split(",")
    assert len(items) == len(values)
    assert len({len(item) for item in items}) == 1


def test_a_wrong_format_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match="fixed"):
        TensorFormat(float_format="fixd")
    with pytest.raises(UsageError, match="digits"):
        TensorFormat(digits=-1)
