"""The enumerations of the PopTorch interface.

Names and values are fixed by the programs that use them; every member says what
choosing it means. Nothing here has behaviour.
"""

from __future__ import annotations

import enum

__all__ = [
    "AutoStage",
    "CommGroupType",
    "ConnectionType",
    "DataLoaderMode",
    "HalfFloatCastingBehavior",
    "Liveness",
    "MatMulSerializationMode",
    "MeanReductionStrategy",
    "MultiConvPlanType",
    "OutputMode",
    "OverlapMode",
    "ReductionType",
    "SharingStrategy",
    "SyncPattern",
    "VariableRetrievalMode",
]


class MeanReductionStrategy(enum.IntEnum):
    """When a mean over accumulated gradients divides.

    Running: the accumulator is a mean at every moment.
    Post: divide once, after everything has been added.
    PostAndLoss: divide by the replicas before the backward pass (deprecated).
    """

    Running = 0
    Post = 1
    PostAndLoss = 2


class DataLoaderMode(enum.IntEnum):
    """Where batches are made.

    Sync: in the calling process.
    Async: in a process that runs ahead.
    AsyncRebatched: as Async, batches put together across workers.
    """

    Sync = 0
    Async = 1
    AsyncRebatched = 2


class SharingStrategy(enum.IntEnum):
    """How the dataset reaches the loading process.

    SharedMemory: pickled, shared memory for tensors.
    FileSystem: through a temporary file.
    Fork: inherited by a fork of this process.
    ForkServer: pickled to a clean server that forks.
    """

    SharedMemory = 0
    FileSystem = 1
    Fork = 2
    ForkServer = 3


class OutputMode(enum.IntEnum):
    """Which micro-batches' outputs a call returns.

    Final: the last one of each replica.
    EveryN: every N-th one.
    All: every one.
    Sum: their sum, per replica.
    Default: All for inference, Final for training.
    """

    Final = 0
    EveryN = 1
    All = 2
    Sum = 3
    Default = 4


class ConnectionType(enum.IntEnum):
    """When a model attaches to its device.

    Always: before compiling.
    OnDemand: when the compiled model is first run.
    Never: it is only compiled.
    """

    Always = 0
    OnDemand = 1
    Never = 2


class HalfFloatCastingBehavior(enum.IntEnum):
    """What half mixed with float becomes; kept for old programs, no effect."""

    FloatDowncastToHalf = 0
    HalfUpcastToFloat = 1
    Default = 2


class ReductionType(enum.IntEnum):
    """How a set of gradients or losses becomes one.

    Sum: added up.
    Mean: added up, divided by their number.
    NoReduction: left apart.
    """

    Sum = 0
    Mean = 1
    NoReduction = 2


class SyncPattern(enum.IntEnum):
    """Which IPUs wait for each other.

    Full: all of them, always.
    SinglePipeline: each one syncs with the host by itself.
    ReplicaAndLadder: groups alternate between host and compute.
    """

    Full = 0
    SinglePipeline = 1
    ReplicaAndLadder = 2


class MatMulSerializationMode(enum.Enum):
    """Which dimension of a matrix product is cut into serial steps."""

    InputChannels = "input_channels"
    ReducingDim = "reducing_dim"
    OutputChannels = "output_channels"
    Disabled = "none"


class Liveness(enum.IntEnum):
    """How long tensors stay on the chip in phased execution.

    AlwaysLive: from first to last use.
    OffChipAfterFwd: gone between forward and backward.
    OffChipAfterFwdNoOverlap: the same, loads and stores kept apart.
    OffChipAfterEachPhase: gone after every phase.
    """

    AlwaysLive = 0
    OffChipAfterFwd = 1
    OffChipAfterFwdNoOverlap = 2
    OffChipAfterEachPhase = 3


class OverlapMode(enum.Enum):
    """Which loop may hide a host transfer behind compute."""

    NoOverlap = "no_overlap"
    OverlapAccumulationLoop = "overlap_accumulation_loop"
    OverlapDeviceIterationLoop = "overlap_device_iteration_loop"


class AutoStage(enum.IntEnum):
    """How blocks that are in no list get their stage number.

    SameAsIpu: the number of their IPU.
    AutoIncrement: one more than the last new block.
    """

    SameAsIpu = 0
    AutoIncrement = 1


class MultiConvPlanType(enum.IntEnum):
    """Whether grouped convolutions run side by side or one after another."""

    Parallel = 0
    Serial = 1


class CommGroupType(enum.IntEnum):
    """How replicas are put into groups of k.

    All: one group.
    Consecutive: 0 to k-1, k to 2k-1, ...
    Orthogonal: every (R/k)-th replica.
    NoGrouping: each replica alone.
    """

    All = 0
    Consecutive = 1
    Orthogonal = 2
    NoGrouping = 3


class VariableRetrievalMode(enum.IntEnum):
    """Whose copy of a grouped variable is read back."""

    OnePerGroup = 0
    AllReplicas = 2
