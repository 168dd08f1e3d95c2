"""Phases of a product that all tiles at work take part in alike."""

from __future__ import annotations

from popple.plan.builder import PlanBuilder
from popple.plan.codelets.sizes import PARTIALS_CODE_BYTES
from popple.plan.conv.occupancy import Occupancy
from popple.program import Codelet, Thread, VertexGroup

_STATE_BYTES = 16
_SOURCE = "graphcore/poplibs lib/poplin/ConvModel.cpp"


def add_multi(
    builder: PlanBuilder,
    name: str,
    codelet: str,
    occupancy: Occupancy,
    cycles: int,
    reads: tuple[int, ...] = (),
) -> None:
    """Add a phase of one multi-worker vertex on every tile used."""
    # One vertex for all workers of a tile, as PopLibs has them around products.
    kind = Codelet(codelet, Thread.MULTI, PARTIALS_CODE_BYTES, _STATE_BYTES, _SOURCE)
    group = VertexGroup(kind, occupancy.ones, occupancy.vector(cycles))
    builder.compute(name, group, reads=reads)
