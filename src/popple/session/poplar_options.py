"""Options of Poplar that programs and environment variables set, and what they do here.

POPLAR_ENGINE_OPTIONS, POPLAR_RUNTIME_OPTIONS, POPLAR_TARGET_OPTIONS and
POPLAR_SIMULATOR_OPTIONS hold JSON objects. Every key that Poplar documents or that
published programs set is in one of these tables: it is followed, or has no effect for
the reason that is given. A key in none of them is reported, once.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from popple.errors import suggest
from popple.logs import get_logger

_LOG = logging.getLogger(__name__)
_ENGINE_LOG = get_logger("poplar", "ENGINE")


@dataclass(frozen=True)
class PoplarOption:
    """What an option means; `without_effect` is why it changes nothing, if so."""

    meaning: str
    without_effect: str = ""


_ALL_PARTS = "a report is always written whole"
_NO_INSTRUMENTS = "cycles are modelled: nothing is instrumented and nothing slows down"
_NO_CODE = "there is no machine code, whose symbols or layout could be chosen"
_ONE_COMPILER = "the planner has one way to do it"
_OTHER_WAY = "the framework's own option for it is followed"
_NO_HOST_SYNC = "the host runs the program itself and waits for no machine"
_NO_STREAMS = "data are handed over within one process"
_ALWAYS_SAME = "values are computed by the framework, the same in every run"
_ONE_TOPOLOGY = "links are those of the target that is modelled"
_NO_SIMULATOR = "there is no simulator of instructions"


def _ignored(
    group: str, reason: str, meanings: Mapping[str, str]
) -> dict[str, PoplarOption]:
    """Options of one group that have no effect, all for one reason."""
    prefix = f"{group}." if group else ""
    return {f"{prefix}{n}": PoplarOption(text, reason) for n, text in meanings.items()}


ENGINE: Mapping[str, PoplarOption] = {
    "autoReport.all": PoplarOption("write a report of every program"),
    "autoReport.directory": PoplarOption("the directory of reports"),
    "autoReport.outputGraphProfile": PoplarOption("write the memory part of a report"),
    "autoReport.outputExecutionProfile": PoplarOption("write runs into a report"),
    "autoReport.executionProfileProgramRunCount": PoplarOption(
        "runs that a report shows (2)"
    ),
    "debug.allowOutOfMemory": PoplarOption(
        "true (default): a program that does not fit is modelled and runs; "
        "false: it is refused"
    ),
    **_ignored(
        "autoReport",
        _ALL_PARTS,
        {
            "outputArchive": "write archive.a",
            "outputDebugInfo": "write debug.cbor",
            "outputLoweredVars": "write the places of variables",
            "outputSerializedGraph": "write the graph",
            "streamAtEachRun": "write runs as they end",
        },
    ),
    **_ignored(
        "debug",
        _NO_INSTRUMENTS,
        {
            "branchRecordTile": "the tile that records branches",
            "cpuMultiThreadExecution": "threads of the CPU target",
            "computeInstrumentationLevel": "device, ipu, tile or vertex",
            "executionProfileProgramRunCount": "runs that are measured",
            "externalExchangeInstrumentationLevel": "device, ipu or tile",
            "instrument": "measure cycles",
            "instrumentCompute": "measure compute sets",
            "instrumentControlFlow": "measure branches",
            "instrumentExternalExchange": "measure exchanges between IPUs",
            "loweredVarDumpFile": "write the places of variables to this file",
            "profilingTile": "the tile that measures",
            "runtimeVerify": "check the control program while it runs",
        },
    ),
    **_ignored(
        "debug",
        _NO_CODE,
        {
            "checkForStackOverflow": "stop when a stack is full",
            "enableGDBServer": "wait for a debugger",
            "exceptOnSOCError": "stop at errors of the chip",
            "outputAllSymbols": "keep all symbols",
            "retainDebugInformation": "keep debug information",
            "supervisorStackSizeInBytes": "stack of the supervisor",
            "trace": "record instructions",
            "traceFile": "the file of that record",
            "verify": "check the graph again",
        },
    ),
    **_ignored(
        "debug",
        _OTHER_WAY,
        {
            "floatPointOpException": "stop at invalid numbers",
            "graphReportDestination": "where a text report goes",
            "nanOverflowException": "stop at overflow",
            "nanOverflowMode": "NaN instead of infinity",
        },
    ),
    **_ignored(
        "profiler",
        _ALL_PARTS,
        {
            "blocks.bufferSize": "bytes of a buffer of cycles",
            "blocks.filter": "blocks that are measured",
            "blocks.implicitFlush": "empty buffers by itself",
            "blocks.tile": "the tile that measures blocks",
            "format": "version of the file",
            "includeCycleEstimates": "estimate cycles of vertices",
            "includeFlopEstimates": "estimate operations of vertices",
            "perExecutionStreamCopyCycles": "cycles of every stream copy",
            "programs.filter": "programs that are measured",
            "replicaToProfile": "the replica that is shown",
            "useNewProfiler": "choose the profiler",
        },
    ),
    **_ignored(
        "device",
        _NO_CODE,
        {"clearAtomicFlagAfterExchange": "clear a flag of the exchange each time"},
    ),
    **_ignored(
        "target",
        _NO_HOST_SYNC,
        {
            "exceptionPollPeriodUs": "microseconds between looks for errors",
            "gatewayMode": "reach the host through gateways",
            "hostSyncTimeout": "seconds that the host waits",
            "syncMethod": "how the host is waited for",
            "syncPollPeriodUs": "microseconds between polls",
            "syncReplicasIndependently": "replicas meet the host on their own",
            "useBufferedCompletions": "collect completions",
        },
    ),
    **_ignored(
        "target",
        _NO_CODE,
        {
            "deterministicWorkers": "order of workers",
            "extendedMemory": "memory beyond the first region",
            "maxStreamCallbackThreadsPerNumaNode": "threads of the host",
            "saveArchive": "write the archive to this file",
            "saveOutputVertexGraph": "write the vertices to this file",
            "supervisorStackSizeInBytes": "stack of the supervisor",
            "workerStackSizeInBytes": "stack of a worker",
        },
    ),
    **_ignored(
        "opt",
        _ONE_COMPILER,
        {
            "enableAutoloader": "load code by the fast loader",
            "enableGraphCompilation": "compile at all",
            "enableInlining": "write functions into their callers",
            "enableMultiAccessCopies": "copies with several accesses at a time",
            "enableSkipSyncs": "leave out syncs",
            "enableSwSyncs": "syncs by software",
            "internalExchangeOptimisationTarget": "cycles, memory or balanced",
            "maxCompilationThreads": "threads that compile",
            "maxComputeSetsPerLoweredCopy": "compute sets of a copy",
            "maxCopyMergeSize": "bytes of copies that are merged",
            "maxLinkerThreads": "threads that link",
            "useAutoloader": "load code by the fast loader",
        },
    ),
    **_ignored(
        "exchange",
        _ONE_COMPILER,
        {
            "enablePrefetch": "fetch streams in advance",
            "enableExchangeVariablesReuse": "share memory of exchanges",
            "multicastPolicy": "how one tile sends to many",
            "optimiserTarget": "cycles or memory",
            "streamBufferOverlap": "any, hostRearrangeOnly or none",
            "undirectedRemoteBuffers": "one buffer for both ways",
        },
    ),
    **_ignored(
        "memory",
        _ONE_COMPILER,
        {
            "alignmentStrategy": "where variables begin",
            "elementConstraints": "operands in different elements",
        },
    ),
    **_ignored(
        "prng",
        _OTHER_WAY,
        {
            "enable": "start the generators",
            "enableStochasticRounding": "round at random",
            "seed": "the first number",
        },
    ),
    **_ignored(
        "streamCallbacks",
        _NO_STREAMS,
        {
            "maxLookahead": "elements that are fetched in advance",
            "multiThreadMode": "collaborative, dedicated or singleThread",
            "numaAware": "stay on the memory's processor",
            "numWorkerThreads": "threads that fill streams",
        },
    ),
}

_RUNTIME_GROUPS = ("autoReport.", "debug.", "profiler.", "streamCallbacks.", "target.")
RUNTIME: Mapping[str, PoplarOption] = {
    name: PoplarOption(option.meaning, option.without_effect or _OTHER_WAY)
    for name, option in ENGINE.items()
    if name.startswith(_RUNTIME_GROUPS)
}

TARGET: Mapping[str, PoplarOption] = _ignored(
    "",
    _ONE_TOPOLOGY,
    {
        "gatewayMode": "reach the host through gateways",
        "instanceSize": "IPUs of one process",
        "ipuLinkConfiguration": "slidingWindow or the like",
        "ipuLinkDomainSize": "IPUs that links connect",
        "ipuLinkTopology": "mesh, torus or line",
        "syncConfiguration": "which IPUs meet in a sync",
    },
)

SIMULATOR: Mapping[str, PoplarOption] = _ignored(
    "",
    _NO_SIMULATOR,
    {"debug.trace": "record instructions", "debug.traceFile": "the file of that"},
)

TABLES: Mapping[str, Mapping[str, PoplarOption]] = {
    "POPLAR_ENGINE_OPTIONS": ENGINE,
    "POPLAR_RUNTIME_OPTIONS": RUNTIME,
    "POPLAR_TARGET_OPTIONS": TARGET,
    "POPLAR_SIMULATOR_OPTIONS": SIMULATOR,
}
"""The options that each variable may hold."""


def note_options(variable: str, names: Iterable[str], where: str = "") -> None:
    """Report names that are unknown, and log those without effect; each once.

    `where` says who set them: the variable itself, unless it is given.
    """
    for name in names:
        _note_option(variable, name, where or variable)


@functools.cache
def _note_option(variable: str, name: str, where: str) -> None:
    table = TABLES[variable]
    option = table.get(name)
    if option is None:
        _LOG.warning("%s: unknown option %r. %s", where, name, _nearest(name, table))
    elif option.without_effect:
        reason = option.without_effect
        _ENGINE_LOG.info("%s: %s has no effect: %s", where, name, reason)


def _nearest(name: str, table: Mapping[str, PoplarOption]) -> str:
    text = suggest(name, table)
    # All of a hundred names say less than where they are listed.
    return text if text.startswith("Did") else "docs/environment.md lists all."
