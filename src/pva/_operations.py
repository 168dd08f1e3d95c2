"""Operations of the user's program: programs by the debug context they carry."""

from __future__ import annotations

import json
from functools import cached_property
from typing import NamedTuple

from popple import report as rp
from pva._programs import Program
from pva._report import Report
from pva._variables import LoweredVariable

__all__ = ["OperationAnalysis"]


class Location(NamedTuple):
    """A line of the user's program."""

    fileName: str
    lineNumber: int
    functionName: str


class DebugContext:
    """The name an operation has in the user's program, and where it stands."""

    def __init__(self, record: rp.DebugContext, kind: str, layer: str) -> None:
        self.id = record.id
        self.name = record.name
        self.parents: list[DebugContext] = []
        file, _, line = record.source_line.rpartition(":")
        self.location = Location(file, int(line or 0) if line.isdigit() else 0, "")
        self._facts = {
            "layer": layer,
            "op_name": record.name,
            "op_type": kind,
            "module": record.module,
        }

    @property
    def json(self) -> str:
        """What is known of the operation, as JSON."""
        return json.dumps(self._facts)

    @property
    def layer(self) -> str:
        """The software layer that made the operation, as JSON."""
        return json.dumps({"layer": self._facts["layer"]})


class Operation:
    """Programs that share a debug context."""

    def __init__(
        self, context: DebugContext, programs: list[Program], steps: list[int]
    ) -> None:
        self.name = context.name
        self.debugContext = context
        self.replacedDebugContext: list[DebugContext] = []
        self._programs = programs
        self.firstStepIndex = min(steps, default=0)
        self.lastStepIndex = max(steps, default=0)

    def programs(self) -> list[Program]:
        """The programs that compute the operation."""
        return list(self._programs)

    @property
    def vars(self) -> list[LoweredVariable]:
        """The pieces of memory its programs read and write, if they are listed."""
        found = {each.id: each for program in self._programs for each in program.vars}
        return list(found.values())

    def __repr__(self) -> str:
        return f"<pva.Operation {self.name!r}, {len(self._programs)} programs>"


class OperationAnalysis:
    """Groups the programs of a report by operation.

    >>> for operation in OperationAnalysis(report).operations:  # doctest: +SKIP
    ...     print(operation.name)
    """

    def __init__(self, report: Report) -> None:
        self._report = report

    @cached_property
    def operations(self) -> list[Operation]:
        """Every operation that has programs, in the order they first appear."""
        programs: dict[int, list[Program]] = {}
        for program in self._report.compilation.programs:
            number = program._record.debug_id
            if number is not None:
                programs.setdefault(number, []).append(program)
        return [
            Operation(self._context(number), group, self._step_indices(group))
            for number, group in programs.items()
        ]

    def _context(self, number: int) -> DebugContext:
        records = self._report.debug_contexts
        record = records.get(number) or rp.DebugContext(number, "")
        framework = self._report.records.framework
        layer = framework.name if framework else ""
        return DebugContext(record, self._kinds.get(record.name, ""), layer)

    @cached_property
    def _kinds(self) -> dict[str, str]:
        return {each.name: each.kind for each in self._report.records.operations}

    def _step_indices(self, group: list[Program]) -> list[int]:
        numbers = {program._id for program in group}
        return [index for number in numbers for index in self._steps.get(number, ())]

    @cached_property
    def _steps(self) -> dict[int, list[int]]:
        """Indices of the liveness steps at which each program runs."""
        found: dict[int, list[int]] = {}
        for index, step in enumerate(self._report.records.liveness_steps):
            found.setdefault(step.program_id, []).append(index)
        return found
