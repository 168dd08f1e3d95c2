"""Compiler: the benchmarks of the vendor's libraries, simulated for two chips.

In: the tool and the command line of a row. Out: cycles of what the tool runs, and the
fullest tile. `TOOLS` has the model of each tool; a tool without one is not expressed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks.calibration.params import Params
from benchmarks.calibration.price import Case, price
from benchmarks.calibration.products import conv_case, fc_case, gemm_case
from benchmarks.calibration.rows import NotExpressed, Row, Rows, read_csv

FILE = "poplibs_ipumodel_benchmarks.csv"
CYCLES, MAX_TILE = "cycles", "max tile bytes"
_CHIPS = {"ipu1": "gc2", "ipu2": "gc200"}
_COLUMNS = {CYCLES: "cycles", MAX_TILE: "max_tile_bytes_incl_gaps"}

TOOLS: Mapping[str, Callable[[Params], Case]] = {
    "conv": conv_case,
    "fc": fc_case,
    "gemm": gemm_case,
}


def compiler_rows(facts: Path) -> Iterator[Rows]:
    """Each benchmark on each chip that it has figures of."""
    for line in read_csv(facts / FILE):
        for column, chip in _CHIPS.items():
            rows = tuple(
                Row(line["name"], line["tool"], chip, quantity, float(published))
                for quantity, name in _COLUMNS.items()
                if (published := line[f"{column}_{name}"])
            )
            if rows:
                figures = partial(_figures, line["tool"], line["params"], chip)
                yield Rows(rows, figures)


def _figures(tool: str, text: str, chip: str) -> Mapping[str, float]:
    if tool not in TOOLS:
        raise NotExpressed(f"no model of {tool}")
    params = Params(text)
    case = TOOLS[tool](params)
    params.check_all_read()
    found = price(case, chip)
    return {CYCLES: found.cycles, MAX_TILE: found.max_tile_bytes}
