"""Numbers from logs, and numbers from numbers."""

from __future__ import annotations

import pytest

from ipu_examples_utils.benchmarks.metrics import (
    compute,
    count_processes,
    derive,
    extract,
)
from popple.errors import UsageError


def test_the_worst_results_are_skipped() -> None:
    text = "x: 1\nx: 4\nx: 2\n"
    data = {"latency": {"regexp": r"x: (\d)", "skip": 1}}
    assert extract(data, text) == {"latency": {"mean": 1.5}}  # the 4 is left out


@pytest.mark.parametrize(
    ("kind", "expected"), [("min", 1.0), ("final", 2.0), ("value", 3.0), ("mean", 2.0)]
)
def test_reductions(kind: str, expected: float) -> None:
    data = {"m": {"regexp": r"(\d)", "reduction_type": kind}}
    assert extract(data, "3 1 2") == {"m": {kind: expected}}


def test_what_is_missing_or_nan_is_none() -> None:
    data = {"a": {"regexp": r"a=(\S+)"}, "b": {"regexp": r"b=(\S+)"}}
    assert extract(data, "a=nan") == {"a": {"mean": None}, "b": {"mean": None}}


def test_every_process_of_an_mpirun_has_its_throughput() -> None:
    processes = count_processes("mpirun --tag-output --np 4 python t.py")
    data = {"throughput": {"regexp": r"(\d)"}}
    assert extract(data, "2", processes) == {"throughput": {"mean": 8.0}}
    assert count_processes("python t.py --np 4") == 1


def test_an_unknown_reduction_is_refused() -> None:
    with pytest.raises(UsageError, match="no reduction_type 'most'"):
        extract({"m": {"regexp": "(1)", "reduction_type": "most"}}, "1")


def test_numbers_are_derived_from_results_and_parameters() -> None:
    derived = {"total": {"expr": "{a} * {size} - 1"}}
    found = derive(derived, {"size": "4"}, {"a": {"mean": 2.5}})
    assert found["total"] == {"mean": 9.0}


@pytest.mark.parametrize("text", ["__import__('os')", "1 +", "1 / 0", "None * 2", "a"])
def test_only_arithmetic_is_evaluated(text: str) -> None:
    assert compute(text) is None
