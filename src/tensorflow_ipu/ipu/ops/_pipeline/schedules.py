"""In which order the stages of a pipeline run, and what that asks of its length."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, IntEnum


class PipelineSchedule(IntEnum):
    """How the stages of a pipeline take turns on their IPUs.

    Grouped runs forward stages together and backward stages together: fast, and many
    activations are kept. Interleaved runs forward and backward stages in turn: fewer
    activations, more waiting. Sequential runs one stage after the other. The numbers
    computed are the same.
    """

    Grouped = 0
    Interleaved = 1
    Sequential = 2


class RecomputationMode(Enum):
    """When activations that are not kept are computed again in a training pipeline.

    Auto chooses by the schedule; RecomputeThenBackpropagate does all of a stage first;
    RecomputeAndBackpropagateInterleaved goes through the stage piece by piece.
    """

    Auto = 0
    RecomputeThenBackpropagate = 1
    RecomputeAndBackpropagateInterleaved = 2


def overlap_length(
    schedule: PipelineSchedule, devices: Sequence[object], training: bool
) -> int:
    """How many batches are in a pipeline at the same time.

    The number of batches in a run must be a multiple of it. `devices` has the IPU of
    each forward stage; backward stages run on the same ones, in reverse order.
    """
    stages = [*devices, *reversed(devices)] if training else list(devices)
    if schedule is PipelineSchedule.Grouped:
        return len(stages)
    if schedule is PipelineSchedule.Interleaved:
        return _num_disjoint_rotations(stages)
    return 1


def _num_disjoint_rotations(stages: Sequence[object]) -> int:
    """How many rotations of the stages never use an IPU at the same time."""
    # Batches enter one after the other, each a rotation of the first one's way.
    chosen = [list(stages)]
    for offset in range(1, len(stages)):
        rotated = [*stages[offset:], *stages[:offset]]
        if all(_disjoint(rotated, other) for other in chosen):
            chosen.append(rotated)
    return len(chosen)


def _disjoint(first: Sequence[object], second: Sequence[object]) -> bool:
    return all(a != b for a, b in zip(first, second, strict=True))
