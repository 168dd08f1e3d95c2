"""From PopTorch's options to the core's: the one place where they are understood.

Every setter of `Options` is either in `TRANSLATED`, with what becomes of it, or in
`WITHOUT_EFFECT`, with the reason. A test fails for a setter in neither table.

The planner is imported where it is asked for: most programs only run.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import torch

from popple.engine.torch import (
    AutomaticScaling,
    Numerics,
    UpdateRule,
    choose_numerics,
)
from popple.engine.torch.session import Groupings, SessionOptions, Watched
from popple.errors import UsageError
from popple.graph import DType, Strategy
from popple.session import (
    BatchPlan,
    InputGroups,
    OutputPlan,
    Repetition,
    Returned,
    Settings,
)

from ._errors import Error, check
from ._optim.description import describe
from ._optim.rule import make_rule, names_of_groups
from ._tracing.strategies import (
    ParallelPhasedExecution,
    SerialPhasedExecution,
    ShardedExecution,
)
from .enums import (
    CommGroupType,
    ConnectionType,
    MeanReductionStrategy,
    OutputMode,
    OverlapMode,
    ReductionType,
)
from .options import Options

if TYPE_CHECKING:
    from popple.options import MemoryOptions, ModelOptions, UpdateOptions
    from popple.plan import PlanOptions

__all__ = [
    "TRANSLATED",
    "WITHOUT_EFFECT",
    "automatic_scaling",
    "batch_plan",
    "check_supported",
    "core_strategy",
    "model_options",
    "num_replicas",
    "numerics",
    "output_plan",
    "repetition",
    "session_options",
    "update_rule",
]

TRANSLATED = {
    "deviceIterations": "micro-batches per call; Repeat in the program",
    "anchorTensor": "the step returns the tensor too; getAnchoredTensor() reads it",
    "replicationFactor": "replicas run in turn; collectives in the program",
    "inputReplicaGrouping": "which share of a batch a replica reads",
    "broadcastBuffers": "one set of buffers, or one per replica",
    "outputMode": "which outputs a call returns",
    "randomSeed": "seed of the device's random numbers",
    "setExecutionStrategy": "chips and stages of blocks",
    "autoRoundNumIPUs": "IPUs held on the virtual pod",
    "connectionType": "when the virtual pod's IPUs are held",
    "useIpuId": "which of the virtual pod's devices is held",
    "useIpuModel": "no device is held",
    "useOfflineIpuTarget": "compile only",
    "setAvailableMemoryProportion": "memory bound of matmul and convolution plans",
    "enableExecutableCaching": "modelled cycles are kept and found again",
    "enableSyntheticData": "inputs are made once, not read from the call",
    "enableProfiling": "a report is written when compiling",
    "modelName": "directory of the report",
    "logCycleCount": "cycleCount() answers with the modelled cycles",
    "showCompilationProgressBar": "progress bar while compiling and modelling",
    "updatableNamedBuffers": "buffers that copyNamedBuffersToDevice() sends",
    "Training.gradientAccumulation": "micro-batches per update",
    "Training.accumulationAndReplicationReductionType": "mean or sum of gradients",
    "Training.setAutomaticLossScaling": "the loss scale adapts to float16 gradients",
    "Training.setMeanAccumulationAndReplicationReductionStrategy": "how to round means",
    "TensorLocations.numIOTiles": "tiles for host traffic beside compute",
    "TensorLocations.setAccumulatorLocation": "off chip: loads and stores around sums",
    "TensorLocations.setOptimizerLocation": "off chip, and shared out over replicas",
    "TensorLocations.setWeightLocation": "off chip: loaded where they are read",
    "relaxOptimizerAttributesChecks": "unknown optimiser attributes only in debug logs",
    "Precision.setPartialsType": "type of partial sums in plans",
    "Precision.enableFloatingPointExceptions": "operators are checked as they run",
    "Precision.enableStochasticRounding": "float16 results and weights round at random",
    "Distributed.disable": "this process alone",
    "Distributed.setEnvVarNames": "number of processes; their replicas in the model",
    "Distributed.configureProcessId": "number of processes; their replicas too",
    "_Popart.setEngineOptions": "autoReport.* asks for a report",
}

WITHOUT_EFFECT = {
    "appendToLocationExcludes": "the user's line is found without a list of excludes",
    "disableModuleNamescope": "names of ops are not shown to programs",
    "enableStableNorm": "norms are PyTorch's own, which are the stable ones",
    "logDir": "there are no log files",
    "maxRepeatLogs": "no log line is repeated",
    "sourceLocationExcludes": "the user's line is found without a list of excludes",
    "syncPattern": "the model has one pattern of synchronisation",
    "Jit.traceModel": "deprecated in PopTorch",
    "Precision.halfFloatCasting": "deprecated in PopTorch",
    "Precision.runningStatisticsAlwaysFloat": "deprecated in PopTorch",
    "TensorLocations.setActivationLocation": "activations are modelled on chip",
    "Training.setConvolutionDithering": "small tensors are always spread over tiles",
    "_Popart.set": "names of a back end that is not there",
    "_Popart.setPatterns": "rewrites of a back end that is not there",
}

_MERGE = "replicatedCollectivesSettings.mergeAllReduceCollectives"
_SCALING = "automaticLossScalingSettings."
_SCALING_NAMES = {
    "binEdgeLocation": "bin_edge",
    "thresholdUpperCountProportion": "threshold",
    "updatePeriod": "period",
}
_RETURNED = {
    OutputMode.All: Returned.ALL,
    OutputMode.Final: Returned.FINAL,
    OutputMode.EveryN: Returned.EVERY_N,
    OutputMode.Sum: Returned.SUM,
}
_OVERLAPS = {
    OverlapMode.NoOverlap: "NONE",
    OverlapMode.OverlapAccumulationLoop: "MICRO_BATCHES",
    OverlapMode.OverlapDeviceIterationLoop: "ITERATIONS",
}
# Tensors with fewer elements stay where they are: defaults of PopART's session options.
_MIN_OFF_CHIP = 2
_MIN_SHARED = 8192
_UPDATE_OPS = {
    "sgd": "sgd_update",
    "momentum": "momentum_update",
    "adam": "adam_update",
    "adamw": "adam_update",
    "lamb": "lamb_update",
    "rmsprop": "rmsprop_update",
}


def accumulation(options: Options, training: bool) -> int:
    """Micro-batches per update; inference has none."""
    return options.Training.gradient_accumulation if training else 1


def check_supported(options: Options, training: bool) -> None:
    """Refuse what would change results but cannot be done."""
    if not training and options.Training.gradient_accumulation > 1:
        raise Error(
            "An inference model cannot accumulate gradients: gradientAccumulation is "
            f"{options.Training.gradient_accumulation}. Use deviceIterations to run "
            "several batches per call."
        )
    is_offline = options.connection_type is ConnectionType.Never
    if options.Distributed.numProcesses > 1 and not is_offline:
        raise Error(
            "Training and inference over several processes are not available yet. Use "
            "replicationFactor in one process, or Options.Distributed.disable(). With "
            "useOfflineIpuTarget() the model can be compiled and its cost asked for."
        )


def num_replicas(options: Options) -> int:
    """Replicas of all processes."""
    return options.replication_factor * options.Distributed.numProcesses


def repetition(options: Options, training: bool) -> Repetition:
    """How often a step runs in one call."""
    reduction = options.Training.accumulation_and_replication_reduction_type
    strategy = options.Training.meanAccumulationAndReplicationReductionStrategy
    return Repetition(
        device_iterations=options.device_iterations,
        accumulation=accumulation(options, training),
        replicas=options.replication_factor,
        processes=options.Distributed.numProcesses,
        is_mean=reduction is ReductionType.Mean,
        is_running_mean=strategy is MeanReductionStrategy.Running,
    )


def batch_plan(options: Options, training: bool) -> BatchPlan:
    """Which part of a batch each micro-batch reads."""
    is_orthogonal = options.input_cgt is CommGroupType.Orthogonal
    return BatchPlan(
        device_iterations=options.device_iterations,
        accumulation=accumulation(options, training),
        replicas=options.replication_factor,
        input_group_size=options.input_group_size,
        input_groups=InputGroups.ORTHOGONAL
        if is_orthogonal
        else InputGroups.CONSECUTIVE,
    )


def output_plan(
    options: Options, training: bool, chosen: tuple[OutputMode, int] | None = None
) -> OutputPlan:
    """Which outputs a call returns; the default is Final for training, else All.

    `chosen` are the mode and return period of an output that has its own.
    """
    mode, period = chosen or (options.output_mode, options.output_return_period)
    if mode is OutputMode.Default:
        mode = OutputMode.Final if training else OutputMode.All
    try:
        return OutputPlan(
            mode=_RETURNED[mode],
            device_iterations=options.device_iterations,
            accumulation=accumulation(options, training),
            replicas=options.replication_factor,
            return_period=period,
            may_be_short=chosen is not None,
        )
    except UsageError as error:
        raise Error(
            f"OutputMode.EveryN returns every {period}-th iteration, but "
            f"deviceIterations ({options.device_iterations}) is not a multiple of "
            "that. Change one of the two."
        ) from error


def session_options(
    options: Options,
    training: bool,
    watched: tuple[Watched, ...] = (),
    groupings: Groupings | None = None,
) -> SessionOptions:
    """How a compiled step is repeated, fed and watched."""
    backend = options._Popart.options
    return SessionOptions(
        batches=batch_plan(options, training),
        outputs=output_plan(options, training),
        repetition=repetition(options, training),
        watched=watched,
        groupings=groupings or {},
        num_buffer_sets=1 if options.broadcast_buffers else options.replication_factor,
        seed=options._values.get("random_seed"),
        automatic=automatic_scaling(options),
        is_synthetic=bool(backend.get("syntheticDataMode")),
        is_checked=bool(backend.get("enableFloatingPointChecks")),
    )


def numerics(options: Options, settings: Settings) -> Numerics | None:
    """Which of the machine's float16 arithmetic a model computes with.

    Stochastic rounding is an option of the program. Partial sums in float16, which
    programs ask for to save memory, and NaN on overflow slow the host down and are for
    studies of precision: `popple run --numerics` asks for them.
    """
    names = set(settings.numerics)
    if options._Popart.options.get("enableStochasticRounding"):
        names.add("stochastic-rounding")
    if not names:
        return None
    try:
        return choose_numerics(names, options._values.get("random_seed") or 0)
    except UsageError as error:
        raise Error(str(error)) from error


def update_rule(optimizer: torch.optim.Optimizer, names: dict[int, str]) -> UpdateRule:
    """The optimiser as data; `names` maps ids of parameters to their names."""
    return make_rule(
        describe(optimizer, is_automatic=False), names_of_groups(optimizer, names)
    )


def automatic_scaling(options: Options) -> AutomaticScaling | None:
    """How the loss scale adapts itself; None if it does not."""
    settings = {
        name.removeprefix(_SCALING): value
        for name, value in options._Popart.options.items()
        if name.startswith(_SCALING)
    }
    if not settings.pop("enabled", False):
        return None
    given = {_SCALING_NAMES[n]: v for n, v in settings.items() if n in _SCALING_NAMES}
    try:
        return AutomaticScaling(**given)
    except UsageError as error:
        raise Error(str(error)) from error


def core_strategy(options: Options) -> Strategy:
    strategy = options._execution_strategy
    if isinstance(strategy, (ParallelPhasedExecution, SerialPhasedExecution)):
        return Strategy.PHASED
    if isinstance(strategy, ShardedExecution):
        return Strategy.SHARDED
    return Strategy.PIPELINED


def model_options(
    options: Options,
    micro_batch: int,
    optimizer: torch.optim.Optimizer | None,
    gradients: dict[str, str],
    overlap: OverlapMode = OverlapMode.NoOverlap,
) -> ModelOptions:
    """How the captured graph is repeated, placed and planned.

    Inference has no optimizer. `overlap` is when host traffic runs beside compute.
    """
    from popple.options import ModelOptions

    return ModelOptions(
        strategy=core_strategy(options),
        accumulation=accumulation(options, optimizer is not None),
        replicas=num_replicas(options),
        device_iterations=options.device_iterations,
        micro_batch=micro_batch,
        recompute=core_strategy(options) is Strategy.PIPELINED,
        merged_bytes=_merged_bytes(options),
        update=_update_options(optimizer, gradients) if optimizer else None,
        memory=_memory_options(options),
        plan=_plan_options(options, overlap),
    )


def _update_options(
    optimizer: torch.optim.Optimizer, gradients: dict[str, str]
) -> UpdateOptions:
    from popple.options import UpdateOptions

    description = describe(optimizer, is_automatic=False)
    rule = make_rule(description, tuple(() for _ in description.groups))
    slots = [slot for slot in rule.slots if slot != "step"]
    return UpdateOptions(
        kind=_UPDATE_OPS[rule.kind],
        num_states=len(slots),
        gradients=gradients,
        state_dtype=_core_dtype(description.first_type),
        accumulator_dtype=_core_dtype(description.accumulator_type),
    )


def _merged_bytes(options: Options) -> int:
    """Bytes of collectives that are merged: all of them, or none."""
    return sys.maxsize if options._Popart.options.get(_MERGE, False) else 0


def _memory_options(options: Options) -> MemoryOptions:
    """Where tensors are kept; only optimiser state can be shared out over replicas."""
    from popple.options import MemoryOptions

    locations = options.TensorLocations.toDict()
    kinds = {
        kind: dict(locations.get(f"location_{kind}", {}))
        for kind in ("weight", "optimizer", "accumulator")
    }
    off_chip = {
        kind: None
        if settings.get("onChip", 1)
        else settings.get("minElementsForOffChip", _MIN_OFF_CHIP)
        for kind, settings in kinds.items()
    }
    state = kinds["optimizer"]
    is_shared = state.get("useReplicatedTensorSharding", 0)
    least = state.get("minElementsForReplicatedTensorSharding", _MIN_SHARED)
    return MemoryOptions(
        weights_off_chip=off_chip["weight"],
        states_off_chip=off_chip["optimizer"],
        accumulators_off_chip=off_chip["accumulator"],
        shared_updates=least if is_shared else None,
    )


def _core_dtype(dtype: torch.dtype) -> DType:
    return DType.F16 if dtype is torch.float16 else DType.F32


def _plan_options(options: Options, overlap: OverlapMode) -> PlanOptions:
    from popple.plan import IoOptions, Overlap, PlanOptions

    proportions = options.available_memory_proportion
    default = PlanOptions()
    partials = options._Popart.options.get("partialsTypeMatMuls", "float")
    check(partials in ("float", "half"), f"Unknown partials type {partials!r}.")
    return PlanOptions(
        memory_proportion=min(proportions.values(), default=default.memory_proportion),
        partials="f16" if partials == "half" else "f32",
        outline=bool(options._Popart.options.get("enableOutlining", True)),
        io=IoOptions(
            num_tiles=options.TensorLocations.toDict().get("numIOTiles", 0),
            overlap=Overlap[_OVERLAPS[overlap]],
        ),
    )
