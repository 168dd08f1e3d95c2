"""Reports: the vendor's `profile.pop` format, written, read, queried, printed.

    ReportContents --write_report--> directory --open_report--> Report
                                                                  |
                      summarize, operations, liveness, view_data <+> render_summary

The package imports nothing of Popple but errors and units, so a report opens
without any framework installed.
"""

from popple.report.codec import Run, Runs, array_of, runs_of
from popple.report.contents import ReportContents
from popple.report.parts.compute import (
    ComputeSet,
    VertexInstances,
    VertexMemory,
    VertexType,
)
from popple.report.parts.execution import (
    Block,
    CycleTotals,
    Marker,
    RunInfo,
    Spread,
    Step,
    StepOnChip,
    TileCycles,
    lockstep,
    total_steps,
)
from popple.report.parts.extras import (
    DebugContext,
    Framework,
    InfoValue,
    Operation,
    TimelineSlice,
)
from popple.report.parts.memory import (
    CATEGORIES,
    Category,
    LivenessDelta,
    MemoryByCategory,
    MemoryByTile,
    TileMemory,
)
from popple.report.parts.programs import (
    CallPayload,
    ChipExchangePayload,
    CodeCopyPayload,
    Endpoints,
    EntryProgram,
    ExchangePayload,
    ExchangeRegion,
    ExecutePayload,
    HostExchange,
    LivenessStep,
    Payload,
    Program,
    RepeatPayload,
    StreamCopyPayload,
    SyncPayload,
    TilesPayload,
    Traffic,
)
from popple.report.parts.settings import (
    CompileEvent,
    FormatVersion,
    Instrumentation,
    Optimization,
    Parameter,
    ProducerVersion,
)
from popple.report.parts.target import GraphInfo, TargetDetails, TargetInfo
from popple.report.parts.variables import (
    NO_CLASS_ID,
    AllocationOrder,
    Interference,
    LivenessClass,
    LoweredVariable,
    Variable,
    number_classes,
)
from popple.report.query import (
    Liveness,
    MemorySummary,
    Summary,
    bytes_by_category,
    costliest,
    liveness,
    memory_by_tile,
    operations,
    summarize,
    variables_on_tile,
    view_data,
)
from popple.report.read import Report, open_report
from popple.report.render import render_summary
from popple.report.schema import REPORT_FILE
from popple.report.write import write_report

__all__ = [
    "CATEGORIES",
    "NO_CLASS_ID",
    "REPORT_FILE",
    "AllocationOrder",
    "Block",
    "CallPayload",
    "Category",
    "ChipExchangePayload",
    "CodeCopyPayload",
    "CompileEvent",
    "ComputeSet",
    "CycleTotals",
    "DebugContext",
    "Endpoints",
    "EntryProgram",
    "ExchangePayload",
    "ExchangeRegion",
    "ExecutePayload",
    "FormatVersion",
    "Framework",
    "GraphInfo",
    "HostExchange",
    "InfoValue",
    "Instrumentation",
    "Interference",
    "Liveness",
    "LivenessClass",
    "LivenessDelta",
    "LivenessStep",
    "LoweredVariable",
    "Marker",
    "MemoryByCategory",
    "MemoryByTile",
    "MemorySummary",
    "Operation",
    "Optimization",
    "Parameter",
    "Payload",
    "ProducerVersion",
    "Program",
    "RepeatPayload",
    "Report",
    "ReportContents",
    "Run",
    "RunInfo",
    "Runs",
    "Spread",
    "Step",
    "StepOnChip",
    "StreamCopyPayload",
    "Summary",
    "SyncPayload",
    "TargetDetails",
    "TargetInfo",
    "TileCycles",
    "TileMemory",
    "TilesPayload",
    "TimelineSlice",
    "Traffic",
    "Variable",
    "VertexInstances",
    "VertexMemory",
    "VertexType",
    "array_of",
    "bytes_by_category",
    "costliest",
    "liveness",
    "lockstep",
    "memory_by_tile",
    "number_classes",
    "open_report",
    "operations",
    "render_summary",
    "runs_of",
    "summarize",
    "total_steps",
    "variables_on_tile",
    "view_data",
    "write_report",
]
