"""Whether it runs, and what running leaves in the file.

The notebook is run by the command (`check --run`); here its failures become findings.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from popple.notebook.document import Document
from popple.notebook.rule import WRITTEN, Rule, Settings, Spot, automatic

RECOMMENDED_IPUS = 16
MINIMUM_IPUS = 4

_METADATA = frozenset({"kernelspec", "language_info", "jupytext"})
_CELL_METADATA = frozenset({"tags", "scrolled"})


def check_failures(
    num_ipus: int, document: Document, settings: Settings
) -> Iterator[Spot]:
    for count, spot in settings.failures:
        if count == num_ipus:
            yield spot


def check_clean(document: Document, settings: Settings) -> Iterator[Spot]:
    for cell in document.code_cells:
        if cell.execution_count is not None:
            yield Spot(cell.number, 1, f"it was number {cell.execution_count}")
    for cell in document.cells:
        for key in set(cell.metadata) - _CELL_METADATA:
            yield Spot(cell.number, 1, f"metadata {key!r}")
    for key in set(document.metadata) - _METADATA:
        yield Spot(1, 1, f"metadata {key!r} of the notebook")


RULES: tuple[Rule, ...] = (
    automatic(
        77,
        "running",
        "It does not run from top to bottom",
        "See the error with 'popple notebook run'.",
        partial(check_failures, RECOMMENDED_IPUS),
        WRITTEN,
    ),
    automatic(
        78,
        "running",
        "It does not run with 4 IPUs",
        "See the error with 'popple notebook run --ipus 4'; take the number of IPUs "
        "from NUM_AVAILABLE_IPU.",
        partial(check_failures, MINIMUM_IPUS),
        WRITTEN,
    ),
    automatic(
        79,
        "running",
        "Traces of a run are left",
        "Write the notebook with 'popple notebook build', or clear its outputs.",
        check_clean,
    ),
)
