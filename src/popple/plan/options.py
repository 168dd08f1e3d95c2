"""Plan options: what programs may ask of all plans, and of traffic with the host."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from popple.errors import UsageError


class Overlap(Enum):
    """The loop in which traffic runs beside compute."""

    NONE = "none"
    MICRO_BATCHES = "micro-batches of an update"
    ITERATIONS = "micro-batches of a run"


@dataclass(frozen=True)
class IoOptions:
    """Tiles of each chip for traffic with the host, and when it takes place.

    Traffic that runs beside nothing goes straight to the tiles that compute.
    """

    num_tiles: int = 0
    overlap: Overlap = Overlap.NONE

    def __post_init__(self) -> None:
        if self.num_tiles < 0:
            raise UsageError(f"there cannot be {self.num_tiles} I/O tiles.")
        if not self.num_tiles and self.overlap is not Overlap.NONE:
            raise UsageError(
                "traffic beside compute needs I/O tiles.",
                remedy="Set some tiles of each chip aside for it.",
            )


@dataclass(frozen=True)
class PlanOptions:
    """What users may ask of all plans.

    `memory_proportion` bounds the temporary memory of matmul, conv and gather plans
    as a fraction of tile memory; `partials` is "f32" or "f16". `outline` lets ops
    that are planned alike share their code. `io` sets tiles aside for host traffic.
    `wide_loads` names the families of ops, "matmul" or "conv", whose units load weights
    at the chip's greatest rate. With `stable_statistics` norms take their mean away
    before they sum squares.
    """

    memory_proportion: float = 0.6
    partials: str = "f32"
    outline: bool = True
    io: IoOptions = field(default_factory=IoOptions)
    wide_loads: tuple[str, ...] = ()
    stable_statistics: bool = False
