"""Rows: a published figure with the modelled one, and what many of them say."""

from __future__ import annotations

import csv
import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path

from popple.files import replace_file
from popple.text_table import LEFT, RIGHT, Column, align_rows

ALL = "all"
FITS = "fits"
"""Quantity of rows that say whether a program fits: 1 for yes, 0 for no."""


class NotExpressed(Exception):
    """A row that has no model here; the text is the reason."""


@dataclass(frozen=True)
class Row:
    """One published figure: of what program, on which chip, of what quantity.

    `group` names rows that are summed up together, a tool or a kind of model.
    """

    name: str
    group: str
    chip: str
    quantity: str
    published: float


@dataclass(frozen=True)
class Result:
    """A row with its modelled figure, or with the reason why there is none.

    `beside` are figures that nobody has published, to be read with it.
    """

    row: Row
    modelled: float | None = None
    reason: str = ""
    beside: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def error(self) -> float:
        """Modelled over published, less one; for fits 0 if right, else 1."""
        if self.modelled is None:
            return math.nan
        if self.row.quantity == FITS:
            return float(self.modelled != self.row.published)
        return self.modelled / self.row.published - 1


@dataclass(frozen=True)
class Rows:
    """Rows of one program on one chip; `model` gives the figure of each quantity."""

    rows: tuple[Row, ...]
    model: Callable[[], Mapping[str, float]]

    def results(self) -> list[Result]:
        """The rows with their modelled figures."""
        try:
            figures = self.model()
        except NotExpressed as error:
            return [Result(row, None, str(error)) for row in self.rows]
        published = {row.quantity for row in self.rows}
        beside = {name: x for name, x in figures.items() if name not in published}
        return [Result(row, figures[row.quantity], beside=beside) for row in self.rows]


@dataclass(frozen=True)
class Summary:
    """Sizes of the errors of some rows."""

    num_rows: int
    median: float
    percentile_90: float
    mean: float

    def __str__(self) -> str:
        return (
            f"median |error| {self.median:6.1%}, 90th percentile "
            f"{self.percentile_90:6.1%}, mean {self.mean:6.1%} of {self.num_rows} rows"
        )


_COLUMNS = (
    "name",
    "group",
    "chip",
    "quantity",
    "published",
    "modelled",
    "error",
    "reason",
)
Key = tuple[str, str, str]
"""Quantity, chip and group of a summary; chip and group may be ALL of them"""


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a table with a heading; a table that is not there has none."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def choose(found: Iterable[Rows], only: str) -> list[Rows]:
    """The rows whose name the regular expression finds."""
    pattern = re.compile(only)
    return [each for each in found if pattern.search(each.rows[0].name)]


def summarise(results: Iterable[Result]) -> dict[Key, Summary]:
    """Errors by quantity and chip: of each group, of all groups, of all chips."""
    sizes: dict[Key, list[float]] = {}
    for result in results:
        if result.modelled is None:
            continue
        row = result.row
        for chip, group in ((row.chip, row.group), (row.chip, ALL), (ALL, ALL)):
            sizes.setdefault((row.quantity, chip, group), []).append(abs(result.error))
    ordered = sorted(sizes, key=lambda key: [(word == ALL, word) for word in key])
    return {key: _summary(sizes[key]) for key in ordered}


def _summary(sizes: Sequence[float]) -> Summary:
    ordered = sorted(sizes)
    return Summary(
        len(ordered),
        statistics.median(ordered),
        ordered[math.ceil(0.9 * len(ordered)) - 1],
        statistics.fmean(ordered),
    )


def render_table(
    results: Iterable[Result], remarks: Mapping[Row, str] | None = None
) -> Iterator[str]:
    """A line for each figure: name, published, modelled, error, or why it has none.

    Remarks on rows end their lines.
    """
    heading = ("name", "chip", "quantity", "published", "modelled", "error", "")
    columns = (Column(most=54), LEFT, LEFT, RIGHT, RIGHT, RIGHT, LEFT)
    said = remarks or {}
    cells = (_cells(each, said.get(each.row, "")) for each in results)
    yield from align_rows([heading, *cells], columns)


def _cells(result: Result, remark: str) -> tuple[str, ...]:
    row = result.row
    head = (row.name, row.chip, row.quantity, _figure(row.published))
    if result.modelled is None:
        return (*head, "", "", f"not expressed: {result.reason}")
    beside = [f"{name} {_figure(x)}" for name, x in result.beside.items()]
    words = "; ".join([*beside, *([remark] if remark else [])])
    return (*head, _figure(result.modelled), _error_text(result), words)


def _figure(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _error_text(result: Result) -> str:
    if result.row.quantity == FITS:
        return "wrong" if result.error else "right"
    return f"{result.error:+.1%}"


def render_summaries(summaries: Mapping[Key, Summary]) -> Iterator[str]:
    """A line for each quantity, chip and group."""
    rows = ((*key, _summary_text(key[0], each)) for key, each in summaries.items())
    yield from align_rows(rows, (LEFT, LEFT, LEFT, LEFT))


def _summary_text(quantity: str, summary: Summary) -> str:
    if quantity != FITS:
        return str(summary)
    return f"{1 - summary.mean:6.1%} right of {summary.num_rows}"


def write_csv(results: Iterable[Result], path: Path) -> None:
    """All results as a table."""
    with (
        replace_file(path) as draft,
        draft.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(_COLUMNS)
        for each in results:
            row, modelled = each.row, each.modelled
            figures = ("", "") if modelled is None else (modelled, each.error)
            writer.writerow([*astuple(row), *figures, each.reason])
