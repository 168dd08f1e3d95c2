"""How many processes run the program together; so far Popple runs one."""

from __future__ import annotations

import popdist
from popple.errors import UsageError


def check_alone(what: str) -> None:
    """Refuse a program of several processes: they could not reach each other."""
    count = popdist.getNumInstances()
    if count > 1:
        raise UsageError(
            f"{what} with {count} instances: TensorFlow programs run as one instance.",
            where="POPDIST_NUM_TOTAL_REPLICAS / POPDIST_NUM_LOCAL_REPLICAS",
            remedy="Start it with one instance; it may have as many replicas as the"
            " pod has IPUs.",
        )
