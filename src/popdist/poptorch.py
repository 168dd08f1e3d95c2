"""PopTorch options for a process that a launcher started."""

from __future__ import annotations

from typing import Any, NoReturn

import poptorch
from popple.distributed import get_instance

from . import (
    checkNumIpusPerReplica,
    getInstanceIndex,
    getNumInstances,
    getNumLocalReplicas,
)

__all__ = ["Options"]


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(
        f"Cannot call `{name}` with popdist.poptorch.Options: poprun decides it."
    )


class _Distributed(poptorch.options._DistributedOptions):
    """Which process this is: only the launcher may say."""

    def disable(self) -> NoReturn:
        """Refused."""
        _refuse("Distributed.disable")

    def setEnvVarNames(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused."""
        _refuse("Distributed.setEnvVarNames")

    def configureProcessId(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused."""
        _refuse("Distributed.configureProcessId")


class Options(poptorch.Options):
    """Options whose replicas and processes are those of the launcher."""

    def __init__(self, ipus_per_replica: int = 1) -> None:
        checkNumIpusPerReplica(ipus_per_replica)
        super().__init__()
        super().replicationFactor(getNumLocalReplicas())
        distributed = self.Distributed
        distributed.configureProcessId(getInstanceIndex(), getNumInstances())
        distributed.__class__ = _Distributed
        if get_instance().is_offline:
            self.useOfflineIpuTarget()

    def replicationFactor(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused."""
        _refuse("replicationFactor")

    def useIpuId(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused."""
        _refuse("useIpuId")
