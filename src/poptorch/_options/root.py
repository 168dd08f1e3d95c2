"""The options that are one value each: the table behind `poptorch.Options`.

A row is all there is to such an option; `poptorch.options` adds the setters that
take several values or reach into a group.
"""

from __future__ import annotations

from typing import Any

from ..enums import ConnectionType, SyncPattern
from .base import OptionsDict, OptionSpec, Store, positive, setter

__all__ = ["_SimpleOptions"]

_NO_LIMIT = (1 << 64) - 1


def _backend(key: str, doc: str, argument: str, stored: Any = None) -> Any:
    """Setter of a value only the backend reads."""
    row = OptionSpec(
        key,
        doc,
        store=Store.BACKEND,
        argument=argument,
        stored=stored or (lambda value: value),
    )
    return setter(row)


def _flag(key: str, doc: str, default: bool, argument: str, store: Store) -> Any:
    """Setter of a switch; calling it without argument switches on."""
    row = OptionSpec(
        key, doc, default=default, store=store, argument=argument, argument_default=True
    )
    return setter(row)


class _SimpleOptions(OptionsDict):
    """Options of the root that are one row each."""

    deviceIterations = setter(
        OptionSpec(
            "device_iterations",
            "Times the device runs over new data before it returns to the program.",
            default=1,
            complain=positive,
        )
    )
    replicationFactor = setter(
        OptionSpec(
            "replication_factor",
            "Copies of the model that share each batch, per process.",
            default=1,
            complain=positive,
        )
    )
    broadcastBuffers = _flag(
        "broadcast_buffers",
        "Keep buffers equal on all replicas; False: one copy for each replica.",
        True,
        "broadcast_buffers",
        Store.GROUP,
    )
    autoRoundNumIPUs = _flag(
        "auto_round_num_ipus",
        "Round the number of IPUs up to a power of two instead of refusing it.",
        False,
        "auto_round_num_ipus",
        Store.GROUP,
    )
    relaxOptimizerAttributesChecks = _flag(
        "_relax_optimizer_checks",
        "Report attributes an optimiser gains later as debug text, not as warnings.",
        False,
        "relax",
        Store.PRIVATE,
    )
    showCompilationProgressBar = _flag(
        "_show_compilation_progress_bar",
        "Draw a progress bar while compiling; needed by compilationTime().",
        True,
        "show",
        Store.PRIVATE,
    )
    logDir = setter(OptionSpec("log_dir", "Directory for log files.", default="."))
    modelName = setter(
        OptionSpec(
            "model_name",
            "Name of the report's directory.",
            accepts=str,
            argument="name",
        )
    )
    maxRepeatLogs = setter(
        OptionSpec(
            "max_repeat_logs",
            "How often a repeated log line is shown; None: always.",
            default=4,
            accepts=(int, type(None)),
            stored=lambda lines: _NO_LIMIT if lines is None else lines,
            argument="max_lines",
        )
    )
    connectionType = setter(
        OptionSpec(
            "connection_type",
            "When the model attaches to its device.",
            default=ConnectionType.Always,
        )
    )
    syncPattern = setter(
        OptionSpec(
            "sync_pattern",
            "Which IPUs wait for each other; cost only.",
            default=SyncPattern.Full,
        )
    )
    useIpuModel = setter(
        OptionSpec(
            "use_model",
            "Run on the simulator (True) or on a device (False), "
            "whatever POPTORCH_IPU_MODEL says.",
            accepts=bool,
        )
    )
    useIpuId = setter(
        OptionSpec("ipu_id", "Number of the device to attach to.", accepts=int)
    )
    sourceLocationExcludes = setter(
        OptionSpec(
            "_source_location_excludes",
            "Stack frames whose file name holds one of these are not user code.",
            default=["site-packages/torch", "site-packages/poptorch"],
            store=Store.PRIVATE,
            argument="excludes",
        )
    )
    enableStableNorm = _backend(
        "enableStableNorm", "Slower norms with less rounding error.", "enabled"
    )
    enableSyntheticData = _backend(
        "syntheticDataMode",
        "Make normal random data on the device and move nothing to or from the host.",
        "enabled",
        lambda enabled: 2 if enabled else 0,
    )
    logCycleCount = _backend(
        "instrumentWithHardwareCycleCounter",
        "Count the cycles of every call, for cycleCount().",
        "log_cycle_count",
    )
    updatableNamedBuffers = _backend(
        "updatableNamedBuffers",
        "Buffers that copyNamedBuffersToDevice() sends.",
        "buffers",
    )
