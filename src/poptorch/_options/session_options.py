"""The options of a model by the names of the original's back end.

`check_session_options` looks at what `Options.toDict` gives: every name must be known
and its value of the right type, and each is written to the log. `_Popart.set` checks
nothing, so this is where a misspelt name is found.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any

from popple.errors import suggest

from .._errors import Error
from .._logging import logger

__all__ = ["check_session_options"]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BOOLS = _names("""
    auto_round_num_ipus use_model serial_phases_execution separate_backward_phase
    broadcast_buffers enableExplicitIR enableInplaceAmbiguityChecking
    enableLoadAndOffloadRNGState batchSerializationSettings.concatOnVirtualGraphChange
    batchSerializationSettings.concatOnExecutionPhaseChange
    batchSerializationSettings.concatOnPipelineStageChange strictOpVersions
    opxAliasChecking opxModifyChecking dotOpNames exportPoplarComputationGraph
    exportPoplarVertexGraph separateCallOpPdfs enableOutlining
    enableOutliningCopyCostPruning rearrangeAnchorsOnHost rearrangeStreamsOnHost
    enablePrefetchDatastreams enableNonStableSoftmax enableReplicatedGraphs
    enableGradientAccumulation instrumentWithHardwareCycleCounter enablePipelining
    disableGradAccumulationTensorStreams disableOptimizerStateTensorStreams
    compileEngine constantWeights enableEngineCaching enableMergeExchange
    enableFloatingPointChecks enableStochasticRounding ensureFp32LossScaleTensor
    explicitRecomputation enableExplicitMainLoops useHostCopyOps aliasZeroCopy
    delayVarUpdates enableFullyConnectedPass enableSerializedMatmuls enableStableNorm
    decomposeGradSum enableDistributedReplicatedGraphs groupHostSync
    automaticLossScalingSettings.enabled enableSupportedDataTypeCasting
    groupNormStridedChannelGrouping scheduleNonWeightUpdateGradientConsumersEarly
    replicatedCollectivesSettings.prepareScheduleForMergingCollectives
    replicatedCollectivesSettings.mergeAllReduceCollectives
""")
_INTEGERS = _names("""
    device_iterations num_distributed_processes distributed_process_id ipu_version
    ipu_id gradient_accumulation output_return_period replication_factor
    input_group_size input_cgt execution_mode tensors_liveness output_mode
    connection_type accumulateOuterFragmentSettings.schedule max_repeat_logs
    accumulation_and_replication_reduction_type sync_pattern random_seed
    autodiffSettings.stitchStrategy batchSerializationSettings.transformContext
    batchSerializationSettings.method batchSerializationSettings.batchSchedule
    autoRecomputation mergeVarUpdate virtualGraphMode syntheticDataMode
    subgraphCopyingStrategy accumulationAndReplicationReductionType
    meanAccumulationAndReplicationReductionStrategy
    automaticLossScalingSettings.gradientTensorTrackingMethod
    executionPhaseSettings.phases executionPhaseSettings.stages
    batchSerializationSettings.factor firstDotOp finalDotOp numIOTiles
    mergeVarUpdateMemThreshold looseThresholdAtPeak accumulationFactor
    swapLimitScheduler globalReplicationFactor globalReplicaOffset
    defaultBufferingDepth defaultPrefetchBufferingDepth compilationProgressTotal
    transitiveClosureOptimizationThreshold automaticLossScalingSettings.updatePeriod
    patterns_level
""")
_NUMBERS = _names("""
    outlineSequenceBreakCost outlineThreshold timeLimitScheduler
    automaticLossScalingSettings.thresholdUpperCountProportion
    automaticLossScalingSettings.binEdgeLocation
""")
_STRINGS = _names("""
    log_dir saveInitializersToFile logDir model_name cachePath partialsTypeMatMuls
    customCodeletCompileFlags serializedPoprithmsShiftGraphsDir kahnTieBreaker
""")
_SETS = _names("""
    accumulateOuterFragmentSettings.excludedVirtualGraphs dotChecks
    hardwareInstrumentations customCodelets updatableNamedBuffers
""")
_TABLES = _names("""
    engineOptions reportOptions convolutionOptions matmulOptions lstmOptions gclOptions
    available_memory_proportion patterns ipuof_configs location_activation
    location_weight location_optimizer location_accumulator
""")

_KNOWN: Mapping[type, frozenset[str]] = {
    bool: _BOOLS,
    int: _INTEGERS,
    float: _NUMBERS,
    str: _STRINGS,
    list: _SETS,
    dict: _TABLES,
}
_TYPE_NAMES = {
    bool: "bool",
    int: "uint64",
    float: "floating point",
    str: "string",
    list: "set / vector",
    dict: "map",
}
# These are used on this side and never sent.
_NOT_SENT = {"anchored_tensors", "compilation_progress_bar_fn"}


def check_session_options(values: Mapping[str, Any]) -> None:
    """Error for an option that does not exist; the others are logged."""
    for name, value in values.items():
        if name in _NOT_SENT:
            continue
        _check_known(name, _kind_of(name, value))
        for line in _describe(name, value):
            logger.debug("poptorch.Options %s", line)
    if (is_model := values.get("use_model")) is not None:
        state = "Enabled" if is_model else "Disabled"
        logger.info("From the user configuration: Ipu model: %s", state)


def _kind_of(name: str, value: Any) -> type:
    if isinstance(value, (list, tuple, set, frozenset)):
        return list
    for kind in (bool, int, float, str, dict):  # a bool is an int as well
        if isinstance(value, kind):
            return kind
    if isinstance(value, enum.Enum):
        return int
    raise Error(
        f"Unknown value type {type(value).__name__} for option {name}. Give it a "
        "bool, a number, a string, or a list or dict of these."
    )


def _check_known(name: str, kind: type) -> None:
    # A whole number will do where any number is wanted.
    if name in _KNOWN[kind] or (kind is int and name in _KNOWN[float]):
        return
    for other, names in _KNOWN.items():
        if name in names:
            raise Error(
                f"Unknown {_TYPE_NAMES[kind]} option {name}: it takes a "
                f"{_TYPE_NAMES[other]}."
            )
    known = frozenset[str]().union(*_KNOWN.values())
    raise Error(f"Unknown {_TYPE_NAMES[kind]} option {name}. {suggest(name, known)}")


def _describe(name: str, value: Any) -> Iterator[str]:
    """The lines that say what an option is set to."""
    if isinstance(value, dict):
        yield from (f"set {name}[{k}] to {_text(v)}" for k, v in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from (f"added {_text(item)} to {name}" for item in value)
    else:
        yield f"set {name} to value {_text(value)}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, enum.Enum):
        value = value.value
    return str(value)
