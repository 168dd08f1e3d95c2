"""Liveness of a report: transient bytes by chip and step, peaks, live variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from popple.report.codec import IntArray
from popple.report.parts.compute import ComputeSet
from popple.report.parts.programs import (
    ExecutePayload,
    ProgramNode,
    StreamCopyPayload,
)
from popple.report.parts.variables import Variable
from popple.report.read import Report

_NUM_PEAK_VARIABLES = 20
_NUM_ALWAYS_LIVE_VARIABLES = 50


@dataclass(frozen=True, eq=False)
class ChipLiveness:
    """Bytes of one chip: always live, and transient at every step."""

    chip: int
    always_live_bytes: int
    transient_bytes: IntArray


@dataclass(frozen=True)
class LivenessPeak:
    """The step at which a chip holds most transient bytes, and its variables."""

    chip: int
    step_index: int
    num_bytes: int
    variables: tuple[Variable, ...]


@dataclass(frozen=True)
class Liveness:
    """Liveness of all chips; variables are listed largest first."""

    step_names: tuple[str, ...]
    chips: tuple[ChipLiveness, ...]
    peaks: tuple[LivenessPeak, ...]
    always_live_variables: tuple[Variable, ...]


def liveness(report: Report) -> Liveness:
    """Add up the changes of every step and look who is live at the peaks."""
    chips = liveness_by_chip(report)
    return Liveness(
        step_names=step_names(report),
        chips=chips,
        peaks=tuple(_peak(report, chip) for chip in chips if chip.transient_bytes.size),
        always_live_variables=_always_live(report),
    )


def liveness_by_chip(report: Report) -> tuple[ChipLiveness, ...]:
    """Bytes of every chip at every step."""
    # Tiles are numbered chip by chip, so equal parts are chips.
    always = np.split(report.memory_by_tile.always_live_bytes, report.target.num_chips)
    transient = _transient_bytes(report)
    return tuple(
        ChipLiveness(chip, int(tiles.sum()), transient[chip])
        for chip, tiles in enumerate(always)
    )


def transient_peak_bytes(report: Report) -> int:
    """Most transient bytes of all chips together at one step."""
    return int(_transient_bytes(report).sum(axis=0).max(initial=0))


def _transient_bytes(report: Report) -> IntArray:
    """Rows are chips, columns are steps."""
    index_of = {step.id: index for index, step in enumerate(report.liveness_steps)}
    changes = np.zeros((report.target.num_chips, len(index_of)), np.int64)
    for delta in report.liveness_deltas:
        # Variables live to the end are let go of after the last step.
        if delta.step_id in index_of:
            changes[delta.chip, index_of[delta.step_id]] += delta.delta_bytes
    # The file has changes, not levels: the level of a step is the sum up to it.
    return changes.cumsum(axis=1)


def step_names(report: Report) -> tuple[str, ...]:
    """What people call every liveness step."""
    programs = {program.id: program for program in report.programs}
    sets = {compute_set.id: compute_set for compute_set in report.compute_sets}
    names = {number: program_name(each, sets) for number, each in programs.items()}
    return tuple(
        step.name or names.get(step.program_id, "") for step in report.liveness_steps
    )


def program_name(program: ProgramNode, compute_sets: Mapping[int, ComputeSet]) -> str:
    """The program's own name, or that of what it runs, or that of its type."""
    payload = program.payload
    # Compute sets have names in genuine files, where their programs have none.
    if isinstance(payload, ExecutePayload):
        return compute_sets[payload.compute_set_id].name
    if isinstance(payload, StreamCopyPayload):
        streams = [each.stream for each in (*payload.from_host, *payload.to_host)]
        return program.name or ", ".join(dict.fromkeys(streams)) or program.type_name
    return program.name or program.type_name


def _peak(report: Report, chip: ChipLiveness) -> LivenessPeak:
    index = int(chip.transient_bytes.argmax())
    step_id = report.liveness_steps[index].id
    live = {
        each.id
        for each in report.liveness_classes
        if not each.is_always_live and each.is_live_at(step_id)
    }
    # Where the file does not tell the chip, a variable may be on any.
    on_chip = (each for each in report.variables if each.chip in (chip.chip, None))
    held = (each for each in on_chip if each.class_id in live)
    variables = _largest(held, _NUM_PEAK_VARIABLES)
    return LivenessPeak(chip.chip, index, int(chip.transient_bytes[index]), variables)


def _always_live(report: Report) -> tuple[Variable, ...]:
    always = {each.id for each in report.liveness_classes if each.is_always_live}
    held = (each for each in report.variables if each.class_id in always)
    return _largest(held, _NUM_ALWAYS_LIVE_VARIABLES)


def _largest(variables: Iterable[Variable], count: int) -> tuple[Variable, ...]:
    return tuple(sorted(variables, key=lambda each: -each.num_bytes)[:count])
