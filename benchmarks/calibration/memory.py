"""Memory: what fits into a chip and what does not, and what layers take.

A throughput that was measured on a single chip says that the model fits; a row may also
say that it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.calibration.fits import fits_rows
from benchmarks.calibration.footprints import footprint_rows, model_bytes
from benchmarks.calibration.models import bert_fits
from benchmarks.calibration.published import MEMORY, Published, published_rows
from benchmarks.calibration.rows import FITS, Row, Rows

_NO = "no"


def memory_rows(facts: Path) -> Iterator[Rows]:
    """Models on a single chip, then the layers of some of them."""
    for each in published_rows(facts):
        if "single IPU" in f"{each.workload} {each.config}":
            fits = float(not each.value_text.startswith(_NO))
            row = Row(each.name, "BERT on one chip", each.chip, FITS, fits)
            yield Rows((row,), partial(_fits, each))
        elif each.kind == MEMORY:
            row = Row(each.name, "models", each.chip, "model bytes", each.value)
            yield Rows((row,), partial(_model_bytes, each))
    yield from fits_rows(facts)
    yield from footprint_rows(facts)


def _fits(row: Published) -> dict[str, float]:
    return {FITS: float(bert_fits(row))}


def _model_bytes(row: Published) -> dict[str, float]:
    row.check_value()
    return {"model bytes": model_bytes(row.workload, row.metric)}
