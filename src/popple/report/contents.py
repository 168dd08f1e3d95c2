"""ReportContents: all records of a report as one frozen value, checked when made.

`popple.record` fills a `ReportContents` from a Program and a Simulation;
`write_report` turns it into files and `Report.contents` turns files back into it.
Nothing is derived here, only checked: ids must refer to something and vectors
over tiles must cover the tiles of the target.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from popple.errors import ReportError
from popple.report.parts.compute import ComputeSet, VertexType
from popple.report.parts.execution import Block, CycleTotals, Marker, RunInfo, Step
from popple.report.parts.extras import (
    ChipTime,
    DebugContext,
    Framework,
    InfoValue,
    Operation,
    RoleBytes,
    TimelineSlice,
)
from popple.report.parts.memory import (
    CATEGORIES,
    Category,
    LivenessDelta,
    MemoryByCategory,
    MemoryByTile,
)
from popple.report.parts.programs import (
    EntryProgram,
    ExchangeRegion,
    ExecutePayload,
    LivenessStep,
    ProgramNode,
)
from popple.report.parts.settings import (
    CompileEvent,
    FormatVersion,
    Instrumentation,
    Optimization,
    Parameter,
    ProducerVersion,
)
from popple.report.parts.target import GraphInfo, TargetInfo
from popple.report.parts.variables import (
    NO_CLASS_ID,
    AllocationOrder,
    Interference,
    LivenessClass,
    LoweredVariable,
    Variable,
)


@dataclass(frozen=True)
class ReportContents:
    """A whole report.

    `info` holds free facts by key. Queries know `title`, `target`, `generator`,
    `popple_version`, `modelled` (1 for a model, not a measurement),
    `samples_per_run`, `device_iterations`, `gradient_accumulation`, `replicas`,
    `execution_strategy`, `model_seconds`, `not_modelled`. `generic_ops` counts the
    framework ops
    that were modelled by the generic rule. `case_text` is the captured program with
    its options and target, from which it can be modelled again.
    """

    target: TargetInfo
    graph_info: GraphInfo
    memory_by_tile: MemoryByTile
    producer_version: ProducerVersion
    compilation_id: str
    created: str = ""
    format_version: FormatVersion = field(default_factory=FormatVersion)
    optimizations: Sequence[Optimization] = ()
    compile_events: Sequence[CompileEvent] = ()
    instrumentation: Instrumentation = field(default_factory=Instrumentation)
    compilation_parameters: Sequence[Parameter] = ()
    target_parameters: Sequence[Parameter] = ()
    execution_parameters: Sequence[Parameter] = ()

    vertex_types: Sequence[VertexType] = ()
    compute_sets: Sequence[ComputeSet] = ()
    programs: Sequence[ProgramNode] = ()
    control_programs: Sequence[EntryProgram] = ()
    function_programs: Sequence[EntryProgram] = ()
    exchange_regions: Sequence[ExchangeRegion] = ()

    categories: Sequence[Category] = CATEGORIES
    memory_by_category: Sequence[MemoryByCategory] = ()
    liveness_tiles: Sequence[int] = ()
    liveness_steps: Sequence[LivenessStep] = ()
    liveness_deltas: Sequence[LivenessDelta] = ()
    liveness_classes: Sequence[LivenessClass] = ()
    variables: Sequence[Variable] = ()
    lowered_variables: Sequence[LoweredVariable] = ()
    interferences: Sequence[Interference] = ()
    allocation_orders: Sequence[AllocationOrder] = ()

    steps: Sequence[Step] = ()
    runs: Sequence[RunInfo] = ()
    cycle_totals: Sequence[CycleTotals] = ()
    program_trace: Sequence[int] = ()
    markers: Sequence[Marker] = ()
    blocks: Sequence[Block] = ()

    operations: Sequence[Operation] = ()
    timeline: Sequence[TimelineSlice] = ()
    chip_times: Sequence[ChipTime] = ()
    memory_roles: Sequence[RoleBytes] = ()
    case_text: str = ""
    info: Mapping[str, InfoValue] = field(default_factory=dict[str, InfoValue])
    generic_ops: Mapping[str, int] = field(default_factory=dict[str, int])
    graph_text: str = ""
    debug_contexts: Sequence[DebugContext] = ()
    framework: Framework | None = None

    def __post_init__(self) -> None:
        self._check_tiles()
        self._check_programs()
        self._check_steps()
        self._check_variables()

    def with_names(self, rename: Callable[[str], str]) -> ReportContents:
        """The contents with other names of compute sets."""
        renamed = [replace(each, name=rename(each.name)) for each in self.compute_sets]
        return replace(self, compute_sets=renamed)

    def _check_tiles(self) -> None:
        described = self.memory_by_tile.num_tiles
        if described != self.target.num_tiles:
            raise ReportError(
                f"memory is given for {described} tiles, but the target has "
                f"{self.target.num_tiles}."
            )

    def _check_programs(self) -> None:
        known = {program.id for program in self.programs}
        compute_sets = {compute_set.id for compute_set in self.compute_sets}
        for program in self.programs:
            ids = _compute_sets_of(program)
            if known.issuperset(program.children) and compute_sets.issuperset(ids):
                continue
            where = f"program {program.id}"
            _require(where, "child", program.children, known)
            _require(where, "compute set", ids, compute_sets)
        for entry in (*self.control_programs, *self.function_programs):
            _require(f"entry {entry.id}", "program", [entry.program_id], known)

    def _check_steps(self) -> None:
        known = {program.id for program in self.programs}
        # Syncs have no program.
        used = {step.program_id for step in self.steps} - {None}
        used |= {step.program_id for step in self.liveness_steps}
        _require("steps", "program", used, known)
        chips = {on.chip for step in self.steps for on in step.chips}
        _require("steps", "chip", chips, range(self.target.num_chips))

    def _check_variables(self) -> None:
        # The class of variables without memory is used but never stored.
        known = {NO_CLASS_ID, *(each.id for each in self.liveness_classes)}
        used = {variable.class_id for variable in self.variables}
        _require("variables", "liveness class", used, known)


def _compute_sets_of(program: ProgramNode) -> tuple[int, ...]:
    payload = program.payload
    return (payload.compute_set_id,) if isinstance(payload, ExecutePayload) else ()


def _require(
    where: str, what: str, used: Collection[int | None], known: Collection[int]
) -> None:
    missing = [number for number in used if number not in known]
    if missing:
        raise ReportError(f"{what} {missing[0]} does not exist.", where=where)
