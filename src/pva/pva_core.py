"""The classes behind `pva`, under the name annotations of programs use for them."""

from pva._compilation import IPU, CompilationReport, Target
from pva._execution import ExecutionReport, ExecutionStep
from pva._operations import OperationAnalysis
from pva._programs import Program, ProgramVisitor
from pva._report import Report
from pva._trace import Event, Trace

__all__ = [
    "IPU",
    "CompilationReport",
    "Event",
    "ExecutionReport",
    "ExecutionStep",
    "OperationAnalysis",
    "Program",
    "ProgramVisitor",
    "Report",
    "Target",
    "Trace",
]
