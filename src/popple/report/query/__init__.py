"""Queries of a report: summary, operations, memory, liveness, explanations, view data.

In: an open `Report`. Out: frozen dataclasses, arrays, and for the browser the
JSON-able `view_data`. The terminal and the viewer show what these return.
"""

from popple.report.query.energy import EnergySummary
from popple.report.query.explain import (
    ExplainedRun,
    explain_report,
    explain_run,
)
from popple.report.query.explanation import Explanation
from popple.report.query.groups import Group, summary_groups
from popple.report.query.liveness import (
    ChipLiveness,
    Liveness,
    LivenessPeak,
    liveness,
)
from popple.report.query.memory import (
    MemorySummary,
    bytes_by_category,
    memory_by_tile,
    summarize_memory,
)
from popple.report.query.operations import costliest, operations, share_of_run
from popple.report.query.summary import RunSummary, Summary, TimeShare, summarize
from popple.report.query.variables import variables_on_tile
from popple.report.query.view import view_data

__all__ = [
    "ChipLiveness",
    "EnergySummary",
    "ExplainedRun",
    "Explanation",
    "Group",
    "Liveness",
    "LivenessPeak",
    "MemorySummary",
    "RunSummary",
    "Summary",
    "TimeShare",
    "bytes_by_category",
    "costliest",
    "explain_report",
    "explain_run",
    "liveness",
    "memory_by_tile",
    "operations",
    "share_of_run",
    "summarize",
    "summarize_memory",
    "summary_groups",
    "variables_on_tile",
    "view_data",
]
