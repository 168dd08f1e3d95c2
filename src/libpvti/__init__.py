"""Trace points of a host program, under the names IPU programs import.

PVTI_OPTIONS in the environment switches tracing on and names the directory; the
trace is a `.pvti` file that `pva.openTrace` reads. Without it nothing is written and
a trace point costs an attribute look-up.

    channel = createTraceChannel("Training")
    with Tracepoint(channel, "epoch"):
        ...
"""

from libpvti._channels import (
    TraceChannel,
    checkTraceChannel,
    createTraceChannel,
    disableTraceChannel,
    enableTraceChannel,
    listTraceChannel,
    traceDrivers,
    traceFramework,
    tracePoplar,
)
from libpvti._instrument import instrument, instrument_fn
from libpvti._plots import Graph, HeatmapDouble, Series, decodeHeatmapData
from libpvti._points import Tracepoint
from libpvti._tracing import closeTrace, getCurrentTraceFilename

__all__ = [
    "Graph",
    "HeatmapDouble",
    "Series",
    "TraceChannel",
    "Tracepoint",
    "checkTraceChannel",
    "closeTrace",
    "createTraceChannel",
    "decodeHeatmapData",
    "disableTraceChannel",
    "enableTraceChannel",
    "getCurrentTraceFilename",
    "instrument",
    "instrument_fn",
    "listTraceChannel",
    "traceDrivers",
    "traceFramework",
    "tracePoplar",
]
