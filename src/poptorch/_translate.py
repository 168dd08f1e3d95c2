"""From PopTorch's options to the core's: the one place where they are understood.

Every setter of `Options` is in a table of `_options/tables.py`, with what becomes of it
here or with the reason why nothing does. A test fails for a setter in neither table.

The planner is imported where it is asked for: most programs only run.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from popple.engine.torch import (
    AutomaticScaling,
    Numerics,
    UpdateRule,
    choose_numerics,
)
from popple.engine.torch.session import Groupings, SessionOptions, Watched
from popple.errors import UsageError
from popple.graph import DType, Graph, Redone, Role, Strategy
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
    "with_synthetic_data",
]

_LAYERS_AS_ONE = "enableFullyConnectedPass"
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
_WIDE_LOADS = "use128BitConvUnitLoad"
_OVERLAPS = {
    OverlapMode.NoOverlap: "NONE",
    OverlapMode.OverlapAccumulationLoop: "MICRO_BATCHES",
    OverlapMode.OverlapDeviceIterationLoop: "ITERATIONS",
}
# Tensors with fewer elements stay where they are: defaults of PopART's session options.
_MIN_OFF_CHIP = 2
_MIN_SHARED = 8192
_RECOMPUTATION = "autoRecomputation"
# Numbers of PopART's RecomputationType.
_PIPELINE_STAGES = 3
_REDONE = {0: None, 1: Redone.STANDARD, 2: Redone.NORMS, 4: Redone.ALL}
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
    num_buffer_sets: int = 1,
) -> SessionOptions:
    """How a compiled step is repeated, fed and watched."""
    backend = options._Popart.options
    return SessionOptions(
        batches=batch_plan(options, training),
        outputs=output_plan(options, training),
        repetition=repetition(options, training),
        watched=watched,
        groupings=groupings or {},
        process=options.Distributed.processId,
        num_buffer_sets=num_buffer_sets,
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
        **_recomputation(options),
        merged_bytes=_merged_bytes(options),
        update=_update_options(options, optimizer, gradients) if optimizer else None,
        memory=_memory_options(options),
        memory_by_chip=options.available_memory_proportion,
        not_modelled=_not_modelled(options),
        layers_as_one=bool(options._Popart.options.get(_LAYERS_AS_ONE, True)),
        plan=_plan_options(options, overlap),
    )


def _not_modelled(options: Options) -> tuple[str, ...]:
    """What the program asks for and the model does not do, for the report."""
    found: list[str] = []
    activations = options.TensorLocations.toDict().get("location_activation", {})
    # Phased execution keeps activations off the chip unless told otherwise.
    if not dict(activations).get("onChip", not _is_phased(options)):
        found.append("activations off the chip: they are counted on it.")
    if isinstance(options._execution_strategy, ParallelPhasedExecution):
        found.append("phases side by side: they run one after the other.")
    return tuple(found)


def _is_phased(options: Options) -> bool:
    return core_strategy(options) is Strategy.PHASED


def _recomputation(options: Options) -> dict[str, Any]:
    """What is computed again: stages of a pipeline, unless the program says else."""
    said = options._Popart.options.get(_RECOMPUTATION, _PIPELINE_STAGES)
    if int(said) == _PIPELINE_STAGES:
        return {"recompute": core_strategy(options) is Strategy.PIPELINED}
    check(int(said) in _REDONE, f"Unknown {_RECOMPUTATION} {said!r}.")
    redone = _REDONE[int(said)]
    return {"recompute": redone is not None, "redone": redone}


def with_synthetic_data(
    model: ModelOptions, options: Options, graph: Graph
) -> ModelOptions:
    """The same, without host traffic if all data are synthetic."""
    if not options._Popart.options.get("syntheticDataMode"):
        return model
    inputs = {value.name for value in graph.with_role(Role.INPUT)}
    return replace(model, synthetic=tuple(sorted(inputs | set(graph.outputs))))


def _update_options(
    options: Options, optimizer: torch.optim.Optimizer, gradients: dict[str, str]
) -> UpdateOptions:
    from popple.options import UpdateOptions

    description = describe(optimizer, is_automatic=False)
    rule = make_rule(description, tuple(() for _ in description.groups))
    if rule.accumulator_type is None and accumulation(options, True) > 1:
        # One tensor is accumulator and velocity: it has the weight's type, and the
        # update scales it instead of clearing it.
        return UpdateOptions("sgd_update", 0, gradients, accumulator_dtype=None)
    slots = [dtype for slot, dtype in rule.slots.items() if slot != "step"]
    return UpdateOptions(
        kind=_UPDATE_OPS[rule.kind],
        num_states=len(slots),
        gradients=gradients,
        state_dtypes=tuple(_core_dtype(dtype) if dtype else None for dtype in slots),
        accumulator_dtype=_core_dtype(description.accumulator_type),
    )


def _merged_bytes(options: Options) -> int:
    """Bytes of collectives that are merged: all of them, or none."""
    return sys.maxsize if options._Popart.options.get(_MERGE, False) else 0


def _memory_options(options: Options) -> MemoryOptions:
    """Where tensors are kept; only optimiser state can be shared out over replicas.

    Phased execution keeps them off the chip unless the program says otherwise.
    """
    from popple.options import MemoryOptions

    locations = options.TensorLocations.toDict()
    kinds = {
        kind: dict(locations.get(f"location_{kind}", {}))
        for kind in ("weight", "optimizer", "accumulator")
    }
    off_chip = {
        kind: None
        if settings.get("onChip", not _is_phased(options))
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

    partials = options._Popart.options.get("partialsTypeMatMuls", "float")
    check(partials in ("float", "half"), f"Unknown partials type {partials!r}.")
    return PlanOptions(
        partials="f16" if partials == "half" else "f32",
        outline=bool(options._Popart.options.get("enableOutlining", True)),
        io=IoOptions(
            num_tiles=options.TensorLocations.toDict().get("numIOTiles", 0),
            overlap=Overlap[_OVERLAPS[overlap]],
        ),
        wide_loads=_wide_loads(options),
        stable_statistics=bool(options._Popart.options.get("enableStableNorm", False)),
    )


def _wide_loads(options: Options) -> tuple[str, ...]:
    """Families of ops whose units load weights 128 bits at a time."""
    tables = {"matmul": "matmulOptions", "conv": "convolutionOptions"}
    return tuple(
        family
        for family, name in tables.items()
        if str(options._Popart.options.get(name, {}).get(_WIDE_LOADS)).lower() == "true"
    )
