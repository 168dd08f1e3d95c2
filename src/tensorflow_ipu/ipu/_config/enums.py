"""Enums of the configuration; their values are those of the protobuf message."""

from __future__ import annotations

from enum import Enum

from tensorflow.compiler.plugin.poplar.driver import config_pb2, threestate_pb2


class SelectionOrder(Enum):
    """Which IPU of a device takes which shard of a program.

    With the IPUs of a 16-IPU Pod drawn as a ladder, 0 and 1 on the lowest rung and 14
    and 15 on the highest:

    * `AUTO`: the order that suits how the shards talk to each other.
    * `ZIGZAG`: 0, 1, 2, 3, ..., rung by rung from left to right.
    * `SNAKE`: 0, 1, 3, 2, 4, 5, 7, 6, ...: every IPU is linked to the next one.
    * `HOOF`: 0, 2, 4, ..., 14, 15, 13, ..., 1: as `SNAKE`, and the last IPU is linked
      to the first.
    """

    AUTO = config_pb2.IpuSelectionOrder.Value("AUTO")
    ZIGZAG = config_pb2.IpuSelectionOrder.Value("ZIGZAG")
    SNAKE = config_pb2.IpuSelectionOrder.Value("SNAKE")
    HOOF = config_pb2.IpuSelectionOrder.Value("HOOF")


class ExecutionProfileType(Enum):
    """How fine the profile of an execution is.

    * `NO_PROFILE`: there is none.
    * `DEVICE_PROFILE`: events of the whole device.
    * `IPU_PROFILE`: events of each IPU.
    * `TILE_PROFILE`: events of each tile.
    """

    NO_PROFILE = config_pb2.IpuExecutionProfileType.Value("NO_PROFILE")
    DEVICE_PROFILE = config_pb2.IpuExecutionProfileType.Value("DEVICE_PROFILE")
    IPU_PROFILE = config_pb2.IpuExecutionProfileType.Value("IPU_PROFILE")
    TILE_PROFILE = config_pb2.IpuExecutionProfileType.Value("TILE_PROFILE")


class DeviceConnectionType(Enum):
    """When a program attaches to its IPUs.

    * `ALWAYS`: when the system is configured.
    * `ON_DEMAND`: when something is first run on them, waiting until they are free.
    * `PRE_COMPILE`: never; what would run on them returns zeros.
    * `NEVER`: never; running is an error, compiling is not.
    """

    ALWAYS = config_pb2.IpuDeviceConnectionType.Value("ALWAYS")
    ON_DEMAND = config_pb2.IpuDeviceConnectionType.Value("ON_DEMAND")
    PRE_COMPILE = config_pb2.IpuDeviceConnectionType.Value("PRE_COMPILE")
    NEVER = config_pb2.IpuDeviceConnectionType.Value("NEVER")


class MergeRemoteBuffersBehaviour(Enum):
    """Whether remote buffers of the same kind become one buffer.

    * `NO_MERGING`: they do not.
    * `MERGE`: all that can do.
    * `IF_BENEFICIAL`: those do that let code be used more than once.
    """

    NO_MERGING = threestate_pb2.ThreeState.Value("THREESTATE_OFF")
    MERGE = threestate_pb2.ThreeState.Value("THREESTATE_ON")
    IF_BENEFICIAL = threestate_pb2.ThreeState.Value("THREESTATE_UNDEFINED")


class SchedulingAlgorithm(Enum):
    """How the order of operators is found.

    * `CHOOSE_BEST`: all algorithms are tried; the lowest predicted memory wins.
    * `CLUSTERING`: groups of operators that belong together stay together.
    * `POST_ORDER`: operators come right after what they need.
    * `LOOK_AHEAD`: the next few operators are weighed, as far as
      `scheduling.maximum_scheduler_lookahead_depth` and
      `scheduling.maximum_scheduler_search_space_size` allow.
    * `SHORTEST_PATH`: the shortest way to the result comes first.
    """

    CHOOSE_BEST = config_pb2.IpuSchedulingAlgorithm.Value("CHOOSE_BEST")
    CLUSTERING = config_pb2.IpuSchedulingAlgorithm.Value("CLUSTERING")
    POST_ORDER = config_pb2.IpuSchedulingAlgorithm.Value("POST_ORDER")
    LOOK_AHEAD = config_pb2.IpuSchedulingAlgorithm.Value("LOOK_AHEAD")
    SHORTEST_PATH = config_pb2.IpuSchedulingAlgorithm.Value("SHORTEST_PATH")


class StochasticRoundingBehaviour(Enum):
    """Which operators round float16 results at random.

    * `OFF`: none.
    * `ON`: all.
    * `REPLICA_IDENTICAL_ONLY`: those whose operands are the same on all replicas, so
      that the replicas stay the same.
    """

    OFF = config_pb2.StochasticRoundingBehaviour.Value("StochasticRounding_Off")
    ON = config_pb2.StochasticRoundingBehaviour.Value("StochasticRounding_On")
    REPLICA_IDENTICAL_ONLY = config_pb2.StochasticRoundingBehaviour.Value(
        "StochasticRounding_ReplicaIdenticalOnly"
    )

    @staticmethod
    def from_bool(value: bool) -> StochasticRoundingBehaviour:
        """`ON` for True, `OFF` for False."""
        behaviour = StochasticRoundingBehaviour
        return behaviour.ON if value else behaviour.OFF
