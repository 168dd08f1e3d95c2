"""Versions, compile options and instrumentation settings of a report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FormatVersion:
    """Version of the file format; Popple writes 3.8."""

    major: int = 3
    minor: int = 8
    point: int = 0
    is_unstable: bool = False
    file_type: str = "graph_profile"


@dataclass(frozen=True)
class ProducerVersion:
    """Version of the software that compiled the program."""

    text: str
    package_hash: str
    major: int
    minor: int
    point: int


@dataclass(frozen=True)
class CompileEvent:
    """How long one part of the compilation took."""

    name: str
    start_us: int
    duration_us: int


@dataclass(frozen=True)
class Optimization:
    """A figure of the optimiser, such as how many constants it merged."""

    key: str
    value: float


@dataclass(frozen=True)
class Parameter:
    """An option by name; `run_id` is set for options of one run."""

    name: str
    value: str
    is_default: bool = False
    run_id: int | None = None


@dataclass(frozen=True)
class Instrumentation:
    """What was measured: `compute_level` is Device, IPU, Tile or Vertex."""

    has_compute: bool = True
    compute_level: str | None = "Tile"
    has_external_exchange: bool = True
    has_control_flow: bool = True
