"""IPUMultiWorkerStrategy: one IPU device per worker of a TensorFlow cluster."""

from __future__ import annotations

from typing import Any

from tensorflow.python.distribute import distribute_lib

from popple.errors import UsageError

from ._former_run import FormerRun
from .distributed.popdist_strategy import (
    IPUDistributedVariable,
    IPUMirroredVariable,
    IPUOnReadPolicy,
    IPUOnWritePolicy,
    IPUSyncOnReadVariable,
)
from .ipu_strategy import IPUExtendedV1

__all__ = [
    "IPUDistributedVariable",
    "IPUMirroredVariable",
    "IPUMultiWorkerExtendedV1",
    "IPUMultiWorkerStrategy",
    "IPUMultiWorkerStrategyV1",
    "IPUOnReadPolicy",
    "IPUOnWritePolicy",
    "IPUSyncOnReadVariable",
]


class IPUMultiWorkerStrategyV1(
    distribute_lib.StrategyV1, distribute_lib.Strategy, FormerRun
):
    """Trains on the IPUs of all workers; a cluster of one is all there is so far."""

    def __init__(
        self,
        cluster_resolver: Any,
        ipu_device: str = "/device:IPU:0",
        variables_on_host: bool = False,
    ) -> None:
        super().__init__(
            IPUMultiWorkerExtendedV1(
                self, cluster_resolver, ipu_device, variables_on_host
            )
        )

    @property
    def _device_ordinal(self) -> int:
        return 0


class IPUMultiWorkerExtendedV1(IPUExtendedV1):
    """What TensorFlow asks of the strategy."""

    def __init__(
        self,
        container_strategy: Any,
        cluster_resolver: Any,
        ipu_device: str,
        variables_on_host: bool,
    ) -> None:
        _check_alone(cluster_resolver)
        host = "/device:CPU:0"
        place = host if variables_on_host else ipu_device
        super().__init__(container_strategy, ipu_device, host)
        self._variable_device = place

    def read_var(self, var: Any) -> Any:
        """The value of a variable."""
        return var.read_value()


IPUMultiWorkerStrategy = IPUMultiWorkerStrategyV1


def _check_alone(cluster_resolver: Any) -> None:
    cluster = cluster_resolver.cluster_spec().as_dict() if cluster_resolver else {}
    count = sum(len(tasks) for tasks in cluster.values())
    if count > 1:
        raise UsageError(
            f"The cluster has {count} tasks: TensorFlow programs run in one process.",
            where="cluster_resolver",
            remedy="Use a cluster of one worker; it may have as many replicas as the"
            " pod has IPUs.",
        )
