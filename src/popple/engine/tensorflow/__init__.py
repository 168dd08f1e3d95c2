"""TensorFlow engine: runs one traced program as several replicas."""

from popple.engine.tensorflow.collectives import (
    all_gather,
    all_reduce_sum,
    all_to_all,
    exchange,
    in_turn,
)
from popple.engine.tensorflow.replicas import (
    Program,
    num_replicas,
    per_replica,
    replica_index,
    tracing,
)

__all__ = [
    "Program",
    "all_gather",
    "all_reduce_sum",
    "all_to_all",
    "exchange",
    "in_turn",
    "num_replicas",
    "per_replica",
    "replica_index",
    "tracing",
]
