"""How gradients of several batches become one."""

from __future__ import annotations

from enum import Enum
from typing import Any


class GradientAccumulationReductionMethod(Enum):
    """SUM adds the gradients; MEAN and RUNNING_MEAN average them.

    MEAN scales every gradient by one over their number before it is added;
    RUNNING_MEAN keeps the mean of what has been seen so far, whatever their number.
    """

    SUM = 0
    MEAN = 1
    RUNNING_MEAN = 2

    @classmethod
    def parse(cls, reduction_method: Any) -> GradientAccumulationReductionMethod:
        """The method that a member, or its name in any case, stands for."""
        if isinstance(reduction_method, cls):
            return reduction_method
        if isinstance(reduction_method, str):
            member = cls.__members__.get(reduction_method.upper())
            if member is not None:
                return member
        raise ValueError(
            f"Cannot parse {reduction_method} as one of "
            "GradientAccumulationReductionMethod. The methods are "
            f"{', '.join(cls.__members__)}."
        )
