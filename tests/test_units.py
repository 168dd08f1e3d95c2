"""Numbers as people read them."""

from __future__ import annotations

import pytest

from popple.units import render_joules


@pytest.mark.parametrize(
    ("joules", "text"),
    [
        (0.0, "0 uJ"),
        (2.5e-6, "2.5 uJ"),
        (0.0042, "4.2 mJ"),
        (1.0, "1 J"),
        (9e4, "90 kJ"),
    ],
)
def test_joules_have_the_unit_that_reads_best(joules: float, text: str) -> None:
    assert render_joules(joules) == text
