"""Which inputs and outputs of a program TF_POPLAR_FLAGS makes synthetic."""

from __future__ import annotations

from popple.capture.tensorflow import LoweredProgram
from popple.graph import Role

from .._device.poplar_flags import Category, uses_synthetic_data

__all__ = ["synthetic_names"]


def synthetic_names(lowered: LoweredProgram) -> tuple[str, ...]:
    """Inputs and outputs of the Graph that do not travel between host and device.

    What a program is called with and what it returns are its parameters.
    """
    graph = lowered.graph
    inputs = {value.name for value in graph.with_role(Role.INPUT)}
    others = (inputs - lowered.fed) | (set(graph.outputs) - lowered.enqueued)
    by_category = {
        Category.INFEED: lowered.fed,
        Category.OUTFEED: lowered.enqueued,
        Category.PARAMETERS: others,
    }
    wanted = [names for kind, names in by_category.items() if uses_synthetic_data(kind)]
    return tuple(sorted(set[str]().union(*wanted)))
