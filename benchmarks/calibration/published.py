"""Published: rows of the table of published figures, sorted into sets.

A row says in words what ran (`workload`), how (`config`) and what was measured. In:
the table. Out: `Published` rows, each of which belongs to one set of rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.calibration.rows import NotExpressed, read_csv

FILE = "published.csv"
KERNELS, MODELS, MEMORY, OTHER = "kernels", "models", "memory", "other"
_CHIPS = (("GC200", "gc200"), ("GC2", "gc2"), ("Bow", "bow"), ("C600", "c600"))
_KERNELS = re.compile(r"matmul|blur|stencil|halo|matrix-vector", re.IGNORECASE)


@dataclass(frozen=True)
class Published:
    """One row of the table."""

    name: str
    chip_text: str
    num_chips: int
    workload: str
    config: str
    metric: str
    value_text: str
    unit: str

    @property
    def chip(self) -> str:
        """The chip, or "?" if the row does not say which."""
        found = (chip for word, chip in _CHIPS if self.chip_text.startswith(word))
        return next(found, "?")

    @property
    def value(self) -> float:
        """The figure; not a number if the row has several, or a word."""
        try:
            return float(self.value_text)
        except ValueError:
            return math.nan

    def check_value(self) -> None:
        """Refuse a row without one figure that an error can be relative to."""
        if math.isnan(self.value):
            raise NotExpressed(f"{self.value_text!r} is not one number")
        if self.value == 0:
            raise NotExpressed("0 has no relative error")

    @property
    def kind(self) -> str:
        """The set that the row belongs to."""
        if "memory" in self.metric or self.metric.startswith("fits"):
            return MEMORY
        if "throughput" in self.metric and "FLOP" not in self.unit:
            return MODELS
        if _KERNELS.search(self.workload):
            return KERNELS
        return OTHER

    def find(self, pattern: str, text: str | None = None) -> re.Match[str]:
        """What the configuration says in the form of the pattern."""
        found = re.search(pattern, self.config if text is None else text)
        if found is None:
            raise NotExpressed(f"the row does not say {pattern}")
        return found


def published_rows(facts: Path) -> Iterator[Published]:
    """All rows but those of the compiler's benchmarks and of single vertices."""
    for line in read_csv(facts / FILE):
        is_elsewhere = "IPUModel1" in line["chip"] or "IPUModel2" in line["chip"]
        if is_elsewhere or "ConvPartial" in line["workload"]:
            continue
        yield Published(
            line["id"],
            line["chip"],
            _first_number(line["n_ipus"]),
            line["workload"],
            line["config"],
            line["metric"],
            line["value"],
            line["unit"],
        )


def _first_number(text: str) -> int:
    found = re.search(r"\d+", text)
    return int(found[0]) if found else 1
