"""What values a constant takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popple.target.schema import Spec

COUNT = Spec("tiles")
RATE = Spec("B/s", float, can_be_zero=True)
SHAPE = Spec("name", str, choices=("ladder", "torus"))


@pytest.mark.parametrize(
    ("spec", "value"), [(COUNT, 1), (RATE, 0), (RATE, 2.5), (RATE, 3), (SHAPE, "torus")]
)
def test_sensible_values_have_no_fault(spec: Spec, value: object) -> None:
    assert spec.find_fault(value) is None


@pytest.mark.parametrize(
    ("spec", "value", "fault"),
    [
        (COUNT, 0, "must be positive"),
        (COUNT, -3, "must be positive"),
        (COUNT, 1.0, "must be a whole number"),
        (COUNT, True, "must be a whole number"),
        (COUNT, "4", "must be a whole number"),
        (COUNT, 10**400, "below 1e+06 tiles"),
        (RATE, -0.5, "must be zero or more"),
        (RATE, float("inf"), "must be a number below"),
        (RATE, float("nan"), "must be a number below"),
        (RATE, [1], "must be a number"),
        (SHAPE, "ring", "must be one of ladder, torus"),
        (SHAPE, 4, "must be text"),
    ],
)
def test_nonsense_is_named(spec: Spec, value: object, fault: str) -> None:
    assert fault in (spec.find_fault(value) or "")


@given(st.integers(min_value=1, max_value=10**6 - 1))
def test_positive_counts_are_positive_numbers_too(value: int) -> None:
    assert COUNT.find_fault(value) is None
    assert RATE.find_fault(float(value)) is None
