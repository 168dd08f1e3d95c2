"""Values of session options, as PopTorch programs pass them to `Options._Popart.set`.

Numbers are those of PopART's public interface.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "AccumulateOuterFragmentSchedule",
    "AutodiffStitchStrategy",
    "BatchSerializationBatchSchedule",
    "BatchSerializationMethod",
    "BatchSerializationTransformContext",
    "ExecutionPhaseIOSchedule",
    "ExecutionPhaseSchedule",
    "GradientTensorTrackingMethod",
    "Instrumentation",
    "MeanReductionStrategy",
    "MergeVarUpdateType",
    "RecomputationType",
    "ReductionType",
    "SubgraphCopyingStrategy",
    "SyntheticDataMode",
    "VirtualGraphMode",
]


class AccumulateOuterFragmentSchedule(IntEnum):
    """When weights are updated after accumulation."""

    Scheduler = 0
    Serial = 1
    OverlapCycleOptimized = 2
    OverlapMemoryOptimized = 3


class AutodiffStitchStrategy(IntEnum):
    """How the backward pass gets at values of the forward pass."""

    RecomputeMinimal = 0
    RecomputeAllNonInputs = 1
    AddFwdOutputs = 2
    SafeAddFwdOutputs = 3


class BatchSerializationBatchSchedule(IntEnum):
    """The order of the parts of a serialised batch."""

    Scheduler = 0
    Isomorphic = 1
    OverlapOnIo = 2
    OverlapOnCompute = 3


class BatchSerializationTransformContext(IntEnum):
    """Which pass is serialised."""

    Fwd = 0
    Bwd = 1


class BatchSerializationMethod(IntEnum):
    """How a serialised batch is run through."""

    UnrollDynamic = 0
    UnrollStatic = 1
    Loop = 2


class ExecutionPhaseIOSchedule(IntEnum):
    """When the tensors of a phase are loaded."""

    Preload = 0
    OnDemand = 1


class ExecutionPhaseSchedule(IntEnum):
    """The order of loads, stores and computation in a phase."""

    Interleaving = 0
    Batch = 1
    BatchClusteredIO = 2


class GradientTensorTrackingMethod(IntEnum):
    """Which gradients automatic loss scaling looks at."""

    AllNonViewChangingGradientTensors = 0
    ConvAndMatmulGradients = 1
    GradientsOfUserSpecifiedTensors = 2


class Instrumentation(IntEnum):
    """Which loop cycles are counted for."""

    Outer = 0
    Inner = 1


class MeanReductionStrategy(IntEnum):
    """When accumulated gradients are divided."""

    Running = 0
    Post = 1


class MergeVarUpdateType(IntEnum):
    """Which weight updates are merged."""

    Off = 0
    All = 1
    AutoLoose = 2
    AutoTight = 3


class RecomputationType(IntEnum):
    """What is computed again in the backward pass."""

    NoRecompute = 0
    Standard = 1
    NormOnly = 2
    Pipeline = 3
    RecomputeAll = 4


class ReductionType(IntEnum):
    """How the elements of a loss become one."""

    Sum = 0
    Mean = 1
    NoReduction = 2


class SubgraphCopyingStrategy(IntEnum):
    """When inputs and outputs of a subgraph are copied."""

    OnEnterAndExit = 0
    JustInTime = 1


class SyntheticDataMode(IntEnum):
    """What stands for the host's data."""

    Off = 0
    Zeros = 1
    RandomNormal = 2
    RandomUniform = 3


class VirtualGraphMode(IntEnum):
    """Who places ops on chips."""

    Off = 0
    Manual = 1
    Auto = 2
    ExecutionPhases = 3
