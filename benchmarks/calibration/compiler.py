"""Compiler: the benchmarks of the vendor's libraries, simulated for two chips.

In: the tool and the command line of a row. Out: cycles of what the tool runs, the
fullest tile and the memory of all tiles. `TOOLS` has the model of each tool. Some of
the benchmarks stand among the published figures too; those are not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks.calibration.layers import (
    embedding_case,
    pooling_case,
    reduction_case,
)
from benchmarks.calibration.model_case import Case, ModelledCase, model_case
from benchmarks.calibration.octave import octave_case
from benchmarks.calibration.params import Params
from benchmarks.calibration.products import conv_case, fc_case, gemm_case
from benchmarks.calibration.rows import NotExpressed, Row, Rows, read_csv
from benchmarks.calibration.sequences import ctc_case, gru_case, lstm_case
from benchmarks.calibration.solvers import cholesky_case, triangular_case

FILE = "poplibs_ipumodel_benchmarks.csv"
PUBLISHED_FILE = "published.csv"
CYCLES, MAX_TILE, TOTAL = "cycles", "max tile bytes", "total bytes"
_CHIPS = {"ipu1": "gc2", "ipu2": "gc200"}
_COLUMNS = {
    CYCLES: "cycles",
    MAX_TILE: "max_tile_bytes_incl_gaps",
    TOTAL: "total_mem_bytes",
}

TOOLS: Mapping[str, Callable[[Params], Case]] = {
    "cholesky": cholesky_case,
    "conv": conv_case,
    "ctc_loss": ctc_case,
    "embedding": embedding_case,
    "fc": fc_case,
    "gemm": gemm_case,
    "gru": gru_case,
    "lstm": lstm_case,
    "oct_conv": octave_case,
    "pooling": pooling_case,
    "reduction": reduction_case,
    "triangular_solve": triangular_case,
}

# Tools that build for the model of a chip with `compileIPUCode` left off (PopLibs
# tools/*.cpp at the release of the figures): their memory has no code and no stacks.
_WITHOUT_CODE = frozenset({"ctc_loss", "fc", "gru", "lstm", "pooling", "reduction"})

# Those of them that run backward and update as a program of its own after the forward
# pass (`engine.run` in the same sources); the others run one program.
_RUN_TWICE = frozenset({"fc", "pooling"})

SYNCS_BY_START = 1
"""Syncs with the host when a program without code begins"""


def compiler_rows(facts: Path) -> Iterator[Rows]:
    """Each benchmark on each chip that it has figures of."""
    lines = read_csv(facts / FILE)
    for line in lines:
        for column, chip in _CHIPS.items():
            rows = tuple(
                Row(line["name"], line["tool"], chip, quantity, float(published))
                for quantity, name in _COLUMNS.items()
                if (published := line[f"{column}_{name}"])
            )
            if rows:
                figures = partial(_figures, line["tool"], line["params"], chip)
                yield Rows(rows, figures)
    yield from _published_rows(facts, {line["name"] for line in lines})


def _published_rows(facts: Path, known: set[str]) -> Iterator[Rows]:
    """Benchmarks among the published figures that the other table does not have."""
    for line in read_csv(facts / PUBLISHED_FILE):
        tool, _, params = line["config"].partition(" ")
        generation = "ipu1" if "IPUModel1" in line["chip"] else "ipu2"
        is_benchmark = tool in TOOLS and "IPUModel" in line["chip"]
        if not is_benchmark or line["workload"] in known:
            continue
        quantity = CYCLES if "cycles" in line["metric"] else TOTAL
        chip = _CHIPS[generation]
        row = Row(line["workload"], tool, chip, quantity, float(line["value"]))
        yield Rows((row,), partial(_figures, tool, params, chip))


def _figures(tool: str, text: str, chip: str) -> Mapping[str, float]:
    if tool not in TOOLS:
        raise NotExpressed(f"no model of {tool}")
    params = Params(text)
    case = TOOLS[tool](params)
    params.check_all_read()
    found = model_case(case, chip, counts_code=tool not in _WITHOUT_CODE)
    return {
        CYCLES: found.cycles + start_cycles(tool, case, found),
        MAX_TILE: found.max_tile_bytes,
        TOTAL: found.total_bytes,
    }


def start_cycles(tool: str, case: Case, found: ModelledCase) -> int:
    """A sync with the host at the beginning of every program that a tool runs.

    Only in profiles of tools that compile no code: the history of the figures
    (tests/benchmark_results.csv of PopLibs, changes D23536 and D31168) has other syncs
    for the two kinds, and of products and decompositions nothing is left for this one.
    """
    if tool not in _WITHOUT_CODE:
        return 0
    has_gradients = any(True for _ in case.module.parameters())
    num_runs = 2 if tool in _RUN_TWICE and has_gradients else 1
    cycles = found.modelled.target.chip.global_sync_cycles
    return SYNCS_BY_START * num_runs * cycles
