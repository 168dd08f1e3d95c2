"""Tables of the model's errors, from what `benchmarks/fidelity.py` wrote."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from popple.text_table import render_markdown_table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RESULTS = Path(__file__).with_name("fidelity.toml")
_FITS = "fits"
# Behind the name of a set, as `benchmarks/calibration/record.py` has them.
_INDEPENDENT = ", rows not derived from"
_OUT_OF_SAMPLE = ", without own"
_HEADING = ("set", "quantity", "chip", "group", "rows", "median", "90th percentile")


def render_in_sample() -> str:
    """Errors with the constants as they are, of all rows and by chip."""
    rows = [row for row in _rows("") if row[3] == "all"]
    return render_markdown_table(_HEADING, rows)


def render_independent() -> str:
    """The same without the rows that a constant was derived from."""
    rows = [row for row in _rows(_INDEPENDENT) if row[3] == "all"]
    return render_markdown_table(_HEADING, rows)


def render_out_of_sample() -> str:
    """Errors of each family by constants that were derived without it."""
    return render_markdown_table(_HEADING, _rows(_OUT_OF_SAMPLE))


def _rows(suffix: str) -> list[tuple[str, ...]]:
    results = tomllib.loads(RESULTS.read_text(encoding="utf-8"))
    return [
        (name.removesuffix(suffix), *row)
        for name, found in results.items()
        if (name.endswith(suffix) if suffix else ", " not in name)
        for row in _sizes(found)
    ]


def _sizes(found: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for quantity, chips in found.items():
        for chip, groups in chips.items():
            for group, sizes in groups.items():
                yield quantity, chip, group, *_texts(quantity, sizes)


def _texts(quantity: str, sizes: dict[str, float]) -> tuple[str, str, str]:
    count = str(int(sizes["num_rows"]))
    if quantity == _FITS:
        return count, f"{1 - sizes['mean']:.0%} right", ""
    return count, f"{sizes['median']:.1%}", f"{sizes['percentile_90']:.1%}"
