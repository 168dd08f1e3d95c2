"""Several processes that run one program together, over TensorFlow's own collectives.

Every process runs a gRPC server of TensorFlow; the servers form a cluster. `join`
brings this process into it, `gather` is what everything that processes exchange is made
of: each sends a tensor and receives those of all, in the order of their index.

The server belongs to TensorFlow's eager context. Sessions of TensorFlow 1 run in it too
(`session_target`, `session_config`): the collectives of a session without a server end
at its own process.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.core.protobuf import config_pb2, tensorflow_server_pb2
from tensorflow.python.eager import context

from popple.errors import UsageError

__all__ = [
    "ALONE",
    "Processes",
    "gather",
    "is_joined",
    "join",
    "run_options",
    "session_config",
    "session_target",
]

Tensor = Any

_JOB = "popdist"
_LEADER = f"/job:{_JOB}/replica:0/task:0"
# All processes are one group of TensorFlow's collectives.
_GROUP = 1
# Types that the collectives take as they are; others travel as integers.
_NATIVE = (tf.float16, tf.float32, tf.float64, tf.int32, tf.int64)
_FIRST_NAMED = 2**30
# Seconds a collective may take. A process that died is noticed at once; this ends a
# program in which one process waits for what the others never send.
_TIMEOUT_SECONDS = 1800.0
# The collectives send a tensor in one message of gRPC, whose size has 31 bits.
_MAX_MESSAGE_BYTES = 2**30


@dataclass(frozen=True)
class Processes:
    """Which of how many processes runs a program."""

    index: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise UsageError(
                f"process {self.index} of {self.count}: processes are numbered from 0."
            )


ALONE = Processes()


@dataclass
class _Cluster:
    """The cluster that this process is part of, once it has joined one."""

    processes: Processes = ALONE
    address: str = ""
    # The place of each process among what the collectives gather, known after the
    # first of them.
    places: tuple[int, ...] | None = None
    keys: Iterator[int] = field(default_factory=lambda: itertools.count(1))


_CLUSTER = _Cluster()


def is_joined() -> bool:
    """Whether this process is part of a cluster."""
    return _CLUSTER.processes.count > 1


def join(addresses: Sequence[str], index: int) -> None:
    """Make this process number `index` of those at `addresses` ("host:port").

    Called before TensorFlow has made its first tensor: variables that are there already
    are lost to the program afterwards.
    """
    if is_joined():
        return
    eager: Any = context.context()
    # The name under which the group is formed; `configure_collective_ops` refuses a
    # context that is in use, for which only TensorFlow's warning is wanted.
    eager._collective_leader = _LEADER
    eager._collective_device_filters = [_filter(index)]
    eager.enable_collective_ops(_server(addresses, index))
    _CLUSTER.processes = Processes(index, len(addresses))
    _CLUSTER.address = addresses[index]


def gather(tensor: Tensor, name: str = "") -> Tensor:
    """The tensors that all processes sent, along the first dimension, which they have.

    Part of the graph being built, or run at once. Gathers of several processes find
    each other by their name, or else by their number: then every process must build
    them in the same order.
    """
    tensor = tf.convert_to_tensor(tensor)
    if not is_joined():
        return tensor
    received = _gather(tensor, _key_of(tensor, name) if name else next(_CLUSTER.keys))
    places = _find_places()
    if places == tuple(range(len(places))):
        return received
    parts = tf.split(received, len(places))
    return tf.concat([parts[place] for place in places], axis=0)


def session_target() -> str:
    """The target of sessions whose programs are those of several processes."""
    _start()
    return f"grpc://{_CLUSTER.address}"


def session_config(config: Any) -> Any:
    """A copy of a session's configuration that keeps it to this process."""
    kept = config_pb2.ConfigProto()
    if config is not None:
        kept.CopyFrom(config)
    # Variables and queues of two sessions are as separate as without a server.
    kept.isolate_session_state = True
    kept.device_filters[:] = [_filter(_CLUSTER.processes.index)]
    kept.experimental.collective_group_leader = _LEADER
    return kept


def run_options(options: Any, names: Iterable[str]) -> Any:
    """Options for the run of a session that runs a program of several processes.

    `names`, of what is run, are the same in all of them. TensorFlow looks for
    collectives in the graph only and not in its functions, so it has to be told.
    """
    told = config_pb2.RunOptions()
    if options is not None:
        told.CopyFrom(options)
    key = zlib.crc32("\n".join(sorted(names)).encode())
    told.experimental.collective_graph_key = key or 1
    return told


def _key_of(tensor: Tensor, name: str) -> int:
    """The key of a gather with a name; above those that are counted.

    TensorFlow allows one type and shape for each key.
    """
    text = f"{name} {tensor.dtype.name} {tensor.shape.as_list()}"
    return _FIRST_NAMED + zlib.crc32(text.encode()) % _FIRST_NAMED


def _start() -> None:
    """Let the server run; the context starts it when it is first used."""
    eager: Any = context.context()
    eager.ensure_initialized()


def _find_places() -> tuple[int, ...]:
    """Where among the gathered parts each process is; asked for once.

    TensorFlow orders a group by the names of devices, in which task 10 is before 2.
    """
    if _CLUSTER.places is None:
        with tf.init_scope(), context.eager_mode(), tf.device("/device:CPU:0"):
            index = tf.constant([_CLUSTER.processes.index])
            order = _gather(index, 0).numpy().tolist()
        _CLUSTER.places = tuple(order.index(i) for i in range(len(order)))
    return _CLUSTER.places


def _gather(tensor: Tensor, key: int) -> Tensor:
    if tensor.dtype not in _NATIVE:
        wide = tf.int64 if tensor.dtype.size == 4 else tf.int32
        bits = _as_integer(tensor)
        gathered = _gather(tf.cast(bits, wide), key)
        return _of_integer(tf.cast(gathered, bits.dtype), tensor)
    _check_shape(tensor)
    first, *rest = tensor.shape.as_list()
    # On the host wherever the program is: it has the collectives.
    with tf.device("/device:CPU:0"):
        return tf.raw_ops.CollectiveGather(
            input=tensor,
            group_size=_CLUSTER.processes.count,
            group_key=_GROUP,
            instance_key=key,
            shape=[first * _CLUSTER.processes.count, *rest],
            timeout_seconds=_TIMEOUT_SECONDS,
        )


def _as_integer(tensor: Tensor) -> Tensor:
    if tensor.dtype == tf.bool or tensor.dtype.is_integer:
        return tf.cast(tensor, tf.int32) if tensor.dtype == tf.bool else tensor
    return tf.bitcast(tensor, {1: tf.uint8, 2: tf.uint16}[tensor.dtype.size])


def _of_integer(bits: Tensor, like: Tensor) -> Tensor:
    if like.dtype == tf.bool:
        return tf.cast(bits, tf.bool)
    return bits if bits.dtype == like.dtype else tf.bitcast(bits, like.dtype)


def _check_shape(tensor: Tensor) -> None:
    if not tensor.shape.is_fully_defined():
        raise UsageError(
            f"{tensor.name} has the shape {tensor.shape}: what processes send each"
            " other has a shape that is known when the program is built.",
            remedy="Give it one, with tf.ensure_shape.",
        )
    size = math.prod(tensor.shape.as_list()) * tensor.dtype.size
    if size > _MAX_MESSAGE_BYTES:
        raise UsageError(
            f"a process sends a tensor of {size} bytes to the others, in a message of"
            f" at most {_MAX_MESSAGE_BYTES} bytes.",
            remedy="Start more instances with fewer replicas each.",
        )


def _server(addresses: Sequence[str], index: int) -> Any:
    cluster = tf.train.ClusterSpec({_JOB: list(addresses)})
    server = tensorflow_server_pb2.ServerDef(
        cluster=cluster.as_cluster_def(),
        job_name=_JOB,
        task_index=index,
        protocol="grpc",
    )
    server.default_session_config.CopyFrom(config_pb2.ConfigProto())
    server.default_session_config.device_filters.append(_filter(index))
    server.default_session_config.experimental.collective_group_leader = _LEADER
    return server


def _filter(index: int) -> str:
    return f"/job:{_JOB}/task:{index}"
