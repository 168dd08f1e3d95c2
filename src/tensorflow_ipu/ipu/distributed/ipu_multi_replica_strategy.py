"""The former name of `PopDistStrategy`."""

from __future__ import annotations

from .popdist_strategy import PopDistExtendedV1, PopDistStrategy

__all__ = ["IPUMultiReplicaExtendedV1", "IPUMultiReplicaStrategyV1"]

IPUMultiReplicaExtendedV1 = PopDistExtendedV1


class IPUMultiReplicaStrategyV1(PopDistStrategy):
    """Puts variables and Keras models on the IPUs of this instance."""
