"""TensorFlow engine: runs one traced program as several replicas and processes."""

from popple.engine.tensorflow.collectives import (
    all_gather,
    all_reduce_sum,
    all_to_all,
    exchange,
    in_turn,
)
from popple.engine.tensorflow.processes import ALONE, Processes
from popple.engine.tensorflow.regions import (
    outlined,
    planned,
    region,
    side_by_side,
    weight_update,
)
from popple.engine.tensorflow.replicas import (
    ReplicatedProgram,
    Trace,
    num_local_replicas,
    num_replicas,
    per_replica,
    replica_index,
    tracing,
)

__all__ = [
    "ALONE",
    "Processes",
    "ReplicatedProgram",
    "Trace",
    "all_gather",
    "all_reduce_sum",
    "all_to_all",
    "exchange",
    "in_turn",
    "num_local_replicas",
    "num_replicas",
    "outlined",
    "per_replica",
    "planned",
    "region",
    "replica_index",
    "side_by_side",
    "tracing",
    "weight_update",
]
