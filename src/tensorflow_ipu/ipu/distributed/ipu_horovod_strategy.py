"""IPUHorovodStrategyV1: what `PopDistStrategy` took the place of.

It added up gradients on the hosts, between the processes of a program; the IPUs of one
process were no concern of it. One process is all that runs here.
"""

from __future__ import annotations

import popdist
from popple.errors import UsageError

from .popdist_strategy import PopDistExtendedV1, PopDistStrategy

__all__ = ["IPUHorovodExtendedV1", "IPUHorovodStrategyV1"]


class IPUHorovodExtendedV1(PopDistExtendedV1):
    """What TensorFlow asks of the strategy."""

    @property
    def _num_replicas_in_sync(self) -> int:
        return popdist.getNumInstances()


class IPUHorovodStrategyV1(PopDistStrategy):
    """Puts variables on the IPUs of this process.

    `variables_on_host` changes no value: here all variables are on the host.
    """

    def __init__(
        self, ipu_device: str = "/device:IPU:0", variables_on_host: bool = False
    ) -> None:
        if popdist.getNumInstances() > 1:
            raise UsageError(
                f"IPUHorovodStrategyV1 with {popdist.getNumInstances()} instances: "
                "gradients are not added up on the hosts.",
                remedy="Use distributed.popdist_strategy.PopDistStrategy, which adds"
                " them up on the IPUs.",
            )
        super().__init__(ipu_device, add_ipu_cross_replica_reductions=False)

    def _make_extended(self, ipu_device: str, reduces: bool) -> IPUHorovodExtendedV1:
        return IPUHorovodExtendedV1(self, None, ipu_device, reduces)
