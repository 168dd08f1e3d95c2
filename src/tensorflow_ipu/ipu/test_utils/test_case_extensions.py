"""Assertions about reports, for TensorFlow's test cases."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pva import Report

# Compute sets that any program may have.
_COMMON = ("*__seed*", "*host-exchange-*", "*[cC]opy_*")


class TestCaseExtensions:
    """Methods that `attach_to` gives a test case. `report` is one of `pva`'s."""

    def assert_num_reports(self, report_helper: Any, n: int) -> None:
        """The test has written that many reports."""
        assert len(report_helper.find_reports()) == n

    def assert_number_of_executions(self, report: Report, n: int) -> None:
        """The program has run that many times."""
        assert len(report.execution.runs) == n

    def assert_all_compute_sets_and_list(
        self: Any, report: Report, ok: Sequence[str], ignore_common: bool = True
    ) -> None:
        """Each compute set matches a pattern, and each pattern a compute set."""
        names = _compute_sets(report)
        common = _COMMON if ignore_common else ()
        allowed = [*(f"*{entry}*" for entry in ok), *common]
        strange = [name for name in names if not _matches_any(name, allowed)]
        assert not strange, f"No pattern of {list(ok)} matches {strange}."
        self.assert_compute_sets_contain_list(report, ok)

    def assert_compute_sets_contain_list(
        self: Any, report: Report, ok: Sequence[str]
    ) -> None:
        """Each pattern matches a compute set."""
        names = _compute_sets(report)
        assert not _unmatched(names, ok), f"Nothing matches these in {names}."

    def assert_compute_sets_not_in_blacklist(
        self: Any, report: Report, blacklist: Sequence[str]
    ) -> None:
        """No pattern matches a compute set."""
        patterns = [f"*{entry}*" for entry in blacklist]
        bad = [n for n in _compute_sets(report) if _matches_any(n, patterns)]
        assert not bad, f"{bad} should not be there."

    def assert_compute_sets_matches(
        self: Any, report: Report, expr: str, num_matches: int, msg: str | None = None
    ) -> None:
        """That many compute sets match the pattern."""
        matching = fnmatch.filter(_compute_sets(report), expr)
        assert len(matching) == num_matches, msg

    def assert_vertices_contain_list(
        self: Any, report: Report, ok: Sequence[str]
    ) -> None:
        """Each pattern matches the kind of a vertex."""
        sets = report.compilation.computeSets
        names = {vertex.type.name for cs in sets for vertex in cs.vertices}
        assert not _unmatched(names, ok), f"Nothing matches these in {names}."

    def assert_each_tile_memory_is_less_than(
        self: Any, report: Report, max_expected: int, tolerance: float = 0.01
    ) -> None:
        """No tile uses more bytes, gaps not counted."""
        assert max(_tile_bytes(report)) <= int(max_expected * (1 + tolerance))

    def assert_total_tile_memory(
        self: Any, report: Report, expected: int, tolerance: float = 0.01
    ) -> None:
        """All tiles together use about that many bytes, gaps not counted."""
        self._assert_near(sum(_tile_bytes(report)), expected, tolerance)

    def assert_max_tile_memory(
        self: Any, report: Report, expected: int, tolerance: float = 0.01
    ) -> None:
        """The fullest tile uses about that many bytes, gaps not counted."""
        self._assert_near(max(_tile_bytes(report)), expected, tolerance)

    def assert_always_live_memory(
        self: Any, report: Report, expected: int, tolerance: float = 0.01
    ) -> None:
        """All tiles together use about that many bytes all the time."""
        tiles = report.compilation.tiles
        total = sum(tile.memory.alwaysLiveBytes for tile in tiles)
        self._assert_near(total, expected, tolerance)

    def assert_execution_report_cycles(
        self,
        report: Report,
        expected: int,
        tolerance: float = 0.01,
        expected_executions: int = 1,
    ) -> None:
        """The runs took about that many cycles together."""
        self.assert_number_of_executions(report, expected_executions)
        self._assert_near(report.execution.totalCycles.total, expected, tolerance)

    def assert_compute_io_overlap_percentage(
        self: Any, report: Report, p: float
    ) -> None:
        """Compute and host exchange overlap for more than that part of one of them."""
        compute = _intervals(report, "visitOnTileExecute")
        transfer = _intervals(report, "visitStreamCopyMid")
        shared = sum(_overlap(a, b) for a in compute for b in transfer)
        shortest = min(_length(compute), _length(transfer))
        assert shared / shortest > p

    def assert_global_exchange_percentage(self, report: Report, p: float) -> None:
        """Exchange between IPUs takes at most that part of the first run."""
        exchange = _intervals(report, "visitGlobalExchange")
        total = _length([_cycles_of(step) for step in report.execution.runs[0].steps])
        assert _length(exchange) / total <= p

    def _assert_near(self, actual: int, expected: int, tolerance: float) -> None:
        low, high = int(expected * (1 - tolerance)), int(expected * (1 + tolerance))
        assert low <= actual <= high, f"{actual} is not between {low} and {high}."


def attach_to(test_case: type) -> None:
    """Give a test case these assertions."""
    for name, method in vars(TestCaseExtensions).items():
        if not name.startswith("__"):
            setattr(test_case, name, method)


def _compute_sets(report: Report) -> list[str]:
    return [compute_set.name for compute_set in report.compilation.computeSets]


def _matches_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def _unmatched(names: Iterable[str], entries: Sequence[str]) -> list[str]:
    return [e for e in entries if not fnmatch.filter(list(names), f"*{e}*")]


def _tile_bytes(report: Report) -> list[int]:
    return [tile.memory.total.excludingGaps for tile in report.compilation.tiles]


def _cycles_of(step: Any) -> tuple[int, int]:
    cycles = step.ipus[0].activeCycles
    return cycles.cyclesFrom.max, cycles.cyclesTo.max


def _intervals(report: Report, method: str) -> list[tuple[int, int]]:
    """Cycles of the steps of the first run whose program calls that visitor method."""
    import pva

    found = list[tuple[int, int]]()
    for step in report.execution.runs[0].steps:
        note = {method: lambda self, program, step=step: found.append(_cycles_of(step))}
        step.program.accept(type("Visitor", (pva.ProgramVisitor,), note)())
    return found


def _length(intervals: Sequence[tuple[int, int]]) -> int:
    return sum(end - start for start, end in intervals)


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> int:
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))
