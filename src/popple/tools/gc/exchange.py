"""What the two exchange tests share: patterns run on every IPU of a device.

In: the patterns and the command line. Out: lines or JSON, and an exit status.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING

from popple.tools.gc.devices import Bench, report_event
from popple.tools.gc.tool import FAILED, PASSED, Json, print_json

if TYPE_CHECKING:
    from popple.tools.gc.patterns import Outcome, Pattern


def run_patterns(
    bench: Bench, patterns: Iterable[Pattern], arguments: Namespace
) -> int:
    """Run each pattern on each IPU, and print what came of it."""
    from popple.tools.gc.patterns import run_pattern

    outcomes: list[tuple[int, Outcome]] = []
    for pattern in patterns:
        for ipu, chip_id in enumerate(bench.chip_ids):
            faults = bench.injector.strike("exchange", ipu)
            outcomes.append((chip_id, run_pattern(pattern, bench.target, faults)))
    is_bad = any(outcome.bad_tiles for _, outcome in outcomes)
    if is_bad:
        report_event(bench, "Exchange test failed.")
    if arguments.json_output:
        result = "failed" if is_bad else "passed"
        tests = [_describe(chip_id, outcome) for chip_id, outcome in outcomes]
        print_json({"tests": tests, "overall_result": result})
    else:
        _print_lines(outcomes, is_bad)
    return FAILED if is_bad else PASSED


def _describe(chip_id: int, outcome: Outcome) -> Json:
    return {
        "ipu": chip_id,
        "pattern": outcome.name,
        "bytes": outcome.num_bytes,
        "cycles": outcome.cycles,
        "terabytes_per_second": outcome.bytes_per_second / 1e12,
        "bad_tiles": list(outcome.bad_tiles),
        "result": "failed" if outcome.bad_tiles else "passed",
    }


def _print_lines(outcomes: Iterable[tuple[int, Outcome]], is_bad: bool) -> None:
    for chip_id, outcome in outcomes:
        rate = f"{outcome.bytes_per_second / 1e12:.2f} TB/s"
        cost = f"{outcome.num_bytes} bytes, {outcome.cycles} cycles, {rate}"
        result = "passed"
        if outcome.bad_tiles:
            result = f"FAILED on tiles {', '.join(map(str, outcome.bad_tiles))}"
        print(f"IPU {chip_id}: {outcome.name}: {cost}: {result}")
    print(f"Exchange test {'failed' if is_bad else 'passed'}")
