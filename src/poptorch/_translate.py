"""From PopTorch's options to the core's: the one place where they are understood.

Every setter of `Options` is either in `TRANSLATED`, with what becomes of it, or in
`WITHOUT_EFFECT`, with the reason. A test fails for a setter in neither table.
"""

from __future__ import annotations

from typing import Any

import torch

from popple.engine.torch import STATE_SLOTS, ParameterGroup, Repetition, UpdateRule
from popple.graph import DType, Strategy
from popple.options import ModelOptions, UpdateOptions
from popple.plan import PlanOptions

from . import optim
from ._batching import BatchPlan, OutputPlan
from ._errors import Error, check
from ._logging import logger
from ._strategies import (
    ParallelPhasedExecution,
    SerialPhasedExecution,
    ShardedExecution,
)
from .enums import OutputMode, ReductionType
from .options import Options

__all__ = [
    "TRANSLATED",
    "WITHOUT_EFFECT",
    "batch_plan",
    "check_optimizer",
    "check_supported",
    "core_strategy",
    "is_same_kind",
    "model_options",
    "output_plan",
    "repetition",
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
    "enableSyntheticData": "inputs are made once, not read from the call",
    "enableProfiling": "a report is written when compiling",
    "modelName": "directory of the report",
    "logCycleCount": "cycleCount() answers with the modelled cycles",
    "showCompilationProgressBar": "progress bar while compiling and modelling",
    "updatableNamedBuffers": "buffers that copyNamedBuffersToDevice() sends",
    "Training.gradientAccumulation": "micro-batches per update",
    "Training.accumulationAndReplicationReductionType": "mean or sum of gradients",
    "Precision.setPartialsType": "type of partial sums in plans",
    "Precision.enableFloatingPointExceptions": "operators are checked as they run",
    "Distributed.disable": "this process alone",
    "Distributed.setEnvVarNames": "number of processes",
    "Distributed.configureProcessId": "number of processes",
    "_Popart.setEngineOptions": "autoReport.* asks for a report",
}

WITHOUT_EFFECT = {
    "appendToLocationExcludes": "the user's line is found without a list of excludes",
    "disableModuleNamescope": "names of ops are not shown to programs",
    "enableExecutableCaching": "compiling takes seconds; there is nothing to cache yet",
    "enableStableNorm": "norms are PyTorch's own, which are the stable ones",
    "logDir": "there are no log files",
    "maxRepeatLogs": "no log line is repeated",
    "relaxOptimizerAttributesChecks": "unknown optimiser attributes are not reported",
    "sourceLocationExcludes": "the user's line is found without a list of excludes",
    "syncPattern": "the model has one pattern of synchronisation",
    "Jit.traceModel": "deprecated in PopTorch",
    "Precision.enableStochasticRounding": "values round to nearest; a warning says so",
    "Precision.halfFloatCasting": "deprecated in PopTorch",
    "Precision.runningStatisticsAlwaysFloat": "deprecated in PopTorch",
    "TensorLocations.numIOTiles": "all tiles compute in the model",
    "TensorLocations.setAccumulatorLocation": "everything is modelled on chip",
    "TensorLocations.setActivationLocation": "everything is modelled on chip",
    "TensorLocations.setOptimizerLocation": "everything is modelled on chip",
    "TensorLocations.setWeightLocation": "everything is modelled on chip",
    "Training.setAutomaticLossScaling": "gradients do not underflow in float32",
    "Training.setConvolutionDithering": "small tensors are always spread over tiles",
    "Training.setMeanAccumulationAndReplicationReductionStrategy": "rounding only",
    "_Popart.set": "names of a back end that is not there",
    "_Popart.setPatterns": "rewrites of a back end that is not there",
}

_KINDS: tuple[tuple[type, str], ...] = (
    (optim.LAMB, "lamb"),
    (torch.optim.AdamW, "adamw"),  # before Adam, which it derives from
    (torch.optim.Adam, "adam"),
    (torch.optim.RMSprop, "rmsprop"),
    (torch.optim.SGD, "sgd"),
)
_KNOWN_OPTIMIZERS = frozenset(
    {
        optim.LAMB,
        *(
            getattr(package, name)
            for package in (torch.optim, optim)
            for name in ("SGD", "Adam", "AdamW", "RMSprop")
        ),
    }
)
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
    if options._Popart.options.get("enableStochasticRounding"):
        logger.warning(
            "Stochastic rounding is not simulated: float16 values round to nearest."
        )
    if options.Distributed.numProcesses > 1:
        raise Error(
            "Training and inference over several processes are not available yet. Use "
            "replicationFactor in one process, or Options.Distributed.disable()."
        )


def repetition(options: Options, training: bool) -> Repetition:
    """How often a step runs in one call."""
    reduction = options.Training.accumulation_and_replication_reduction_type
    return Repetition(
        device_iterations=options.device_iterations,
        accumulation=accumulation(options, training),
        replicas=options.replication_factor,
        processes=options.Distributed.numProcesses,
        is_mean=reduction is ReductionType.Mean,
    )


def batch_plan(options: Options, training: bool) -> BatchPlan:
    """Which part of a batch each micro-batch reads."""
    return BatchPlan(
        device_iterations=options.device_iterations,
        gradient_accumulation=accumulation(options, training),
        replication_factor=options.replication_factor,
        input_group_size=options.input_group_size,
        input_group_type=options.input_cgt,
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
    return OutputPlan(
        mode=mode,
        device_iterations=options.device_iterations,
        gradient_accumulation=accumulation(options, training),
        replication_factor=options.replication_factor,
        return_period=period,
        may_be_short=chosen is not None,
    )


def update_rule(optimizer: torch.optim.Optimizer, names: dict[int, str]) -> UpdateRule:
    """The optimiser as data; `names` maps ids of parameters to their names."""
    kind = _kind_of(optimizer)
    groups = tuple(
        ParameterGroup(
            tuple(names[id(p)] for p in group["params"] if id(p) in names),
            _settings(group, optimizer),
        )
        for group in optimizer.param_groups
    )
    if kind == "sgd" and any(group.settings["momentum"] for group in groups):
        kind = "momentum"
    return UpdateRule(
        kind=kind,
        groups=groups,
        max_grad_norm=_max_grad_norm(optimizer),
        uses_tf_variant=bool(getattr(optimizer, "use_tf_variant", False)),
    )


def _max_grad_norm(optimizer: torch.optim.Optimizer) -> float:
    bound = float(getattr(optimizer, "max_grad_norm", float("inf")))
    if not bound > 0:
        raise Error(f"max_grad_norm must be a positive number, not {bound}.")
    return bound


def check_optimizer(optimizer: torch.optim.Optimizer) -> None:
    """Refuse an optimiser without a formula; warn of code that will not run."""
    _kind_of(optimizer)
    if any(group.get("amsgrad") for group in optimizer.param_groups):
        raise ValueError(
            "Only non-amsgrad Adam/AdamW optimizers are supported: pass amsgrad=False."
        )
    if type(optimizer) not in _KNOWN_OPTIMIZERS:
        logger.warning(
            "Poptorch does not run Python optimizer code directly: the step() of "
            "%s is replaced by that of the optimizer it derives from.",
            type(optimizer).__name__,
        )


def is_same_kind(
    optimizer: torch.optim.Optimizer, other: torch.optim.Optimizer | None
) -> bool:
    """Whether both update by the same formula."""
    return other is not None and _kind_of(optimizer) == _kind_of(other)


def _kind_of(optimizer: torch.optim.Optimizer) -> str:
    for cls, kind in _KINDS:
        if isinstance(optimizer, cls):
            return _adam_kind(optimizer) if kind == "adam" else kind
    supported = "SGD, Adam, AdamW, RMSprop of torch or poptorch, or poptorch.optim.LAMB"
    name = type(optimizer).__name__
    raise AssertionError(f"Unsupported optimizer type {name}: use {supported}.")


def _adam_kind(optimizer: torch.optim.Optimizer) -> str:
    """Recent versions of torch's Adam can decay weights as AdamW does."""
    groups = optimizer.param_groups
    is_decoupled = any(group.get("decoupled_weight_decay") for group in groups)
    return "adamw" if is_decoupled else "adam"


def _settings(
    group: dict[str, Any], optimizer: torch.optim.Optimizer
) -> dict[str, float | bool]:
    """The numbers of a parameter group, by the names the formulas use."""
    settings = {
        name: group[name]
        for name in (
            "lr",
            "momentum",
            "dampening",
            "weight_decay",
            "nesterov",
            "eps",
            "alpha",
            "centered",
            "max_weight_norm",
        )
        if name in group
    }
    if "betas" in group:
        settings["beta1"], settings["beta2"] = group["betas"]
    settings["bias_correction"] = bool(getattr(optimizer, "bias_correction", True))
    return {name: _number(value) for name, value in settings.items()}


def _number(value: Any) -> float | bool:
    return value if isinstance(value, bool) else float(value)


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
) -> ModelOptions:
    """How the captured graph is repeated, placed and planned.

    Inference has no optimizer.
    """
    return ModelOptions(
        strategy=core_strategy(options),
        accumulation=accumulation(options, optimizer is not None),
        replicas=options.replication_factor,
        device_iterations=options.device_iterations,
        micro_batch=micro_batch,
        update=_update_options(optimizer, gradients) if optimizer else None,
        plan=_plan_options(options),
    )


def _update_options(
    optimizer: torch.optim.Optimizer, gradients: dict[str, str]
) -> UpdateOptions:
    rule = update_rule(optimizer, {})
    slots = [slot for slot in STATE_SLOTS[rule.kind] if slot != "step"]
    if rule.kind == "rmsprop":
        slots = slots[: 1 + _rmsprop_extras(optimizer)]
    state_type = getattr(
        optimizer,
        "first_order_momentum_accum_type",
        getattr(optimizer, "velocity_accum_type", torch.float32),
    )
    accum_type = getattr(optimizer, "accum_type", torch.float32)
    return UpdateOptions(
        kind=_UPDATE_OPS[rule.kind],
        num_states=len(slots),
        gradients=gradients,
        state_dtype=_core_dtype(state_type),
        accumulator_dtype=_core_dtype(accum_type),
    )


def _rmsprop_extras(optimizer: torch.optim.Optimizer) -> int:
    """State beside the square average: a velocity and a mean, if asked for."""
    groups = optimizer.param_groups
    has_velocity = any(group["momentum"] for group in groups)
    return int(has_velocity) + int(any(group["centered"] for group in groups))


def _core_dtype(dtype: torch.dtype) -> DType:
    return DType.F16 if dtype is torch.float16 else DType.F32


def _plan_options(options: Options) -> PlanOptions:
    proportions = options.available_memory_proportion
    default = PlanOptions()
    partials = options._Popart.options.get("partialsTypeMatMuls", "float")
    check(partials in ("float", "half"), f"Unknown partials type {partials!r}.")
    return PlanOptions(
        memory_proportion=min(proportions.values(), default=default.memory_proportion),
        partials="f16" if partials == "half" else "f32",
    )
