"""Explain: find an operation or a layer by name and explain its cost.

In: operations and a name, which is an operation's own or a part of it, or the path of
a module (a layer) or a part of that. Out: an `Explanation`. A name that fits nothing,
or too much, is refused with names that are near.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from popple.errors import UsageError, suggest
from popple.report.parts.extras import Operation, add_times, bound_by
from popple.report.query.explanation import Explanation
from popple.report.query.operations import operations
from popple.report.query.plan_record import parse_plan
from popple.report.query.summary import summarize
from popple.report.read import Report

_MAX_NAMED = 5


@dataclass(frozen=True)
class ExplainedRun:
    """The operations of one run, and what else is known by a name.

    `free_names` are ops that take no time: views of memory that is there already.
    `time` is that of all IPUs by class, bubbles included, where it is known.
    """

    title: str
    cycles: int
    operations: Sequence[Operation]
    free_names: frozenset[str] = frozenset()
    time: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def names(self) -> list[str]:
        """Names of all operations that take time."""
        return [each.name for each in self.operations]


def explain_report(report: Report, name: str = "") -> Explanation:
    """Why an operation or a layer of a report costs what it costs.

    Without a name: the whole run with its costliest operations.
    """
    found = operations(report)
    names = {each.name for each in found}
    # Views have names but no operation: a name without cost is explained, not refused.
    free = frozenset(c.name for c in report.debug_contexts if c.name not in names)
    summary = summarize(report)
    cycles = summary.run.cycles if summary.run else 0
    time = add_times(report.chip_times)
    return explain_run(ExplainedRun(summary.title, cycles, found, free, time), name)


def explain_run(run: ExplainedRun, name: str = "") -> Explanation:
    """Why an operation or a layer of a run costs what it costs."""
    if not run.operations:
        raise UsageError(
            f"{run.title} has no operations to explain.",
            remedy="Nothing was run or modelled; write the report again with a run.",
        )
    if not name:
        return _explain_whole(run)
    for each in run.operations:
        # Exact names first, so that an op whose name is also a part of others can be
        # reached.
        if each.name == name:
            return _explain_one(run, each)
    # A layer before parts of names: its name is a part of the names of its ops.
    if path := find_module([each.module for each in run.operations], name):
        inside = [each for each in run.operations if is_within(each.module, path)]
        return _explain_several(run, path, inside)
    if name in run.free_names:
        raise UsageError(
            f"{name!r} costs nothing: it is a view of memory that is there already.",
            remedy="Explain the operation that uses it.",
        )
    return _explain_one(run, _find_by_part(run, name))


def _explain_whole(run: ExplainedRun) -> Explanation:
    """The run with its costliest operations, by the time of all its IPUs."""
    whole = _explain_several(run, run.title, run.operations)
    if not run.time:
        return whole
    # Bubbles are of the run, not of any operation.
    operation = replace(whole.operation, bound_by=bound_by(run.time))
    return replace(whole, operation=operation, time=run.time)


def find_module(modules: Sequence[str], name: str) -> str:
    """The one module path that `name` is or is a part of, from its dots on; or ""."""
    wanted = name.split(".")
    found: set[str] = set()
    for module in dict.fromkeys(modules):
        words = module.split(".")
        # Whole words only, so that `layer.1` does not find `layer.10`.
        for end in range(len(wanted), len(words) + 1):
            if words[end - len(wanted) : end] == wanted:
                found.add(".".join(words[:end]))
    # The same words may occur at several depths; the whole path wins.
    if name in found:
        return name
    return found.pop() if len(found) == 1 else ""


def is_within(module: str, path: str) -> bool:
    """Whether a module is the one at `path` or inside it."""
    return module == path or module.startswith(path + ".")


def _find_by_part(run: ExplainedRun, name: str) -> Operation:
    matches = [each for each in run.operations if name in each.name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        shown = ", ".join(each.name for each in matches[:_MAX_NAMED])
        raise UsageError(
            f"{name!r} is a part of {len(matches)} names, such as {shown}.",
            remedy="Give the whole name of one.",
        )
    raise UsageError(
        f"There is no operation or layer {name!r}.", remedy=_suggest(run, name)
    )


def _suggest(run: ExplainedRun, name: str) -> str:
    """The nearest names, or the costliest operations if none is near."""
    modules = {each.module for each in run.operations if each.module}
    near = suggest(name, {*run.names, *modules})
    # `suggest` lists known names if none is near, which for ops is any of thousands.
    if near.startswith("Did"):
        return near
    return f"The costliest operations are {', '.join(run.names[:_MAX_NAMED])}."


def _explain_one(run: ExplainedRun, operation: Operation) -> Explanation:
    share = operation.cycles / run.cycles if run.cycles else 0.0
    return Explanation(operation, share, parse_plan(operation.plan_json))


def _explain_several(
    run: ExplainedRun, name: str, members: Sequence[Operation]
) -> Explanation:
    # A layer of one operation is that operation, whose plan can be shown.
    if len(members) == 1:
        return _explain_one(run, members[0])
    ordered = sorted(members, key=lambda each: -each.cycles)
    parts = tuple(_explain_one(run, each) for each in ordered)
    whole = _add_up(name, members)
    # What runs on several chips is a part of the time of all of them.
    chips = {each.chip for each in members} - {None}
    available = run.cycles * max(1, len(chips))
    share = whole.cycles / available if available else 0.0
    return Explanation(whole, share, parts=parts)


def _add_up(name: str, members: Sequence[Operation]) -> Operation:
    """One row for several operations, bound by what takes most of their cycles."""
    total: dict[str, Any] = {
        key: sum(getattr(each, key) for each in members)
        for key in (
            "cycles",
            "compute_cycles",
            "exchange_cycles",
            "link_cycles",
            "host_cycles",
            "sync_cycles",
            "flops",
            "num_vertices",
            "memory_bytes",
            "temporary_bytes",
        )
    }
    # The id -1 is none of the report's own.
    whole = Operation(id=-1, name=name, kind=f"{len(members)} operations", **total)
    return replace(whole, bound_by=bound_by(whole.cycles_by_class))
