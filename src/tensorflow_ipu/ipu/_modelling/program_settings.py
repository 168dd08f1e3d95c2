"""ProgramSettings: what is known about an IPU program beyond its graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ProgramSettings"]


@dataclass(frozen=True)
class ProgramSettings:
    """What a facade knows about a program beyond its graph.

    `device_mapping` lists the IPUs of pipeline stages where the ops' own marks do not
    say; `accumulation` counts batches per weight update where neither the loops nor
    marks of the program say. `recompute` is None for what the configuration says.
    """

    num_replicas: int = 1
    device_mapping: tuple[int, ...] = ()
    accumulation: int = 1
    recompute: bool | None = None
    accumulator_dtype: Any = None
    ordinal: int = 0
