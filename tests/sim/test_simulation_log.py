"""Poplar's log lines about a program."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from popple import logs
from popple.program import Repeat, Variable
from popple.sim import log_simulation, log_target, simulate
from tests.sim.machines import compute, make_target, one_chip, tiles

# Four tiles; the compute set takes 20 cycles and runs three times.
PROGRAM = one_chip(
    Repeat(3, compute("a", 10, 20, 0, 0)), Variable("x", tiles(4, 4, 4, 8))
)


@pytest.fixture(autouse=True)
def _silent_again() -> Iterator[None]:
    yield
    logs.configure({})


def lines_at(level: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    logs.configure({"POPLAR_LOG_LEVEL": level})
    target = make_target(1, 4)
    log_target("p", target)
    log_simulation(simulate(PROGRAM, target))
    return [line.split(": ", 1)[1] for line in capsys.readouterr().err.splitlines()]


def test_volume_grows_with_the_level(capsys: pytest.CaptureFixture[str]) -> None:
    levels = ("OFF", "ERR", "WARN", "INFO", "DEBUG", "TRACE")
    counts = [len(lines_at(level, capsys)) for level in levels]
    assert counts[:3] == [0, 0, 0]  # it fits, so there is nothing to warn of
    assert counts[2] < counts[3] < counts[4] < counts[5]


def test_debug_has_a_line_for_each_compute_set(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = lines_at("DEBUG", capsys)
    assert any(
        line.startswith("compute set a: ") and line.endswith("executed 3 times")
        for line in lines
    )


def test_trace_has_a_line_for_each_tile(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for line in lines_at("TRACE", capsys) if "IPU 0 tile " in line]
    assert len(lines) == 4
