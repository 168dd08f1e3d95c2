"""Constants that rest on rows: which are marked, and what they are without a family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from benchmarks.calibration import derived
from benchmarks.calibration.assumptions import SETTINGS, settings_of
from benchmarks.calibration.compiler import compiler_rows
from benchmarks.calibration.derived import Constant, independent, without_own
from benchmarks.calibration.kernels import kernel_rows
from benchmarks.calibration.rows import FITS, Result, Row, Rows
from benchmarks.fidelity import SETS, model_all

DATA = Path(__file__).parent / "data"
FACTOR = [1.0]


def rows_of(group: str, published: float) -> Rows:
    """A row whose modelled figure is ten times the factor."""
    row = Row(group, group, "bow", "cycles", published)
    return Rows((row,), lambda: {"cycles": 10 * FACTOR[0]})


def set_factor(value: float) -> None:
    FACTOR[0] = value


@pytest.fixture
def factor(monkeypatch: pytest.MonkeyPatch) -> None:
    constant = Constant(
        "factor",
        "set",
        "cycles",
        "^a$",
        tells="",
        candidates=(1.0, 2.0),
        change=set_factor,
    )
    told = derived.replace(constant, tells="^[ab]$")
    monkeypatch.setattr(derived, "CONSTANTS", (told,))


@pytest.mark.usefixtures("factor")
def test_a_family_is_modelled_with_constants_that_do_not_know_it() -> None:
    # `a` says the factor is 1, `b` that it is 2; nothing rests on `c`.
    rows = [rows_of("a", 10), rows_of("b", 20), rows_of("c", 10)]
    results = [each for some in rows for each in some.results()]

    def model(some: Sequence[Rows], change: Callable[[], None]) -> list[Result]:
        return model_all(some, 1, change)

    sentences, found = without_own("set", rows, results, model)
    assert sentences == ["a: factor is 2 without it"]
    assert [each.modelled for each in found] == [20, 10, 10]
    assert [each.row.name for each in independent("set", results)] == ["b", "c"]
    # What was changed was changed elsewhere.
    assert FACTOR == [1.0]


@pytest.mark.parametrize(
    ("name", "make"), [("compiler", compiler_rows), ("kernels", kernel_rows)]
)
def test_constants_have_the_rows_they_name(name: str, make: object) -> None:
    rows = [row for each in make(DATA) for row in each.rows]  # type: ignore[operator]
    for constant in derived.CONSTANTS:
        if constant.set_name == name:
            marked = [r for r in rows if constant.is_derived_from(name, r)]
            telling = [r for r in rows if constant.is_told_by(name, r)]
            assert marked
            # One family is left to tell when another is taken away.
            assert not constant.change or len({row.group for row in telling}) > 1


def test_every_row_says_where_its_settings_are_from() -> None:
    assert set(SETTINGS) == set(SETS)
    for name in ("compiler", "kernels"):
        rows = [row for each in SETS[name](DATA) for row in each.rows]
        assert all(len(settings_of(name, row)) > 20 for row in rows)


@pytest.mark.parametrize(
    "name", ["vit_b16_inf_oom", "poprt_rn50_fp16_overlapped_io_bs90"]
)
def test_rows_that_rules_of_memory_rest_on_are_marked(name: str) -> None:
    row = Row(name, "single chip", "c600", FITS, 1.0)
    assert derived.is_marked("memory", row)
    assert not derived.is_marked("memory", derived.replace(row, name=f"{name}_2"))
