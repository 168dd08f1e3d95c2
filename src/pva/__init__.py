"""Reports and traces as objects, under the names IPU programs import.

    report = openReport("profile.pop")
    print(report.compilation.graph.numComputeSets)

A view of `popple.report`, for reading: Popple's own reports and genuine ones alike.
What a file does not hold is an empty list, never a guess.
"""

from pva import pva_core
from pva._compilation import IPU, CompilationReport, Target
from pva._execution import ExecutionReport, ExecutionStep
from pva._operations import OperationAnalysis
from pva._programs import Program, ProgramVisitor
from pva._report import (
    InstrumentationSettings,
    PoplarVersion,
    ProfileReportVersion,
    Report,
    openReport,
)
from pva._trace import Event, Process, Thread, Trace, openTrace

__all__ = [
    "IPU",
    "CompilationReport",
    "Event",
    "ExecutionReport",
    "ExecutionStep",
    "InstrumentationSettings",
    "OperationAnalysis",
    "PoplarVersion",
    "Process",
    "ProfileReportVersion",
    "Program",
    "ProgramVisitor",
    "Report",
    "Target",
    "Thread",
    "Trace",
    "openReport",
    "openTrace",
    "pva_core",
]
