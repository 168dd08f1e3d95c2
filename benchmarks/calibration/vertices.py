"""Vertices: the multiply-accumulate vertex alone, timed on every tile of a Bow.

A row is [N, 16] x [16, 16] with half numbers and half partials: one weight load, N
field elements. It is modelled as a convolution over a line on a Bow of one tile, of
which only the cycles of the vertex count.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
import torch.nn.functional as F

from benchmarks.calibration.model_case import Case, Once, model_case, zeros
from benchmarks.calibration.rows import Row, Rows, read_csv
from popple.program import Execute

FILE = "bow_convpartial1x1_measured.csv"
_CHANNELS = 16


def vertex_rows(facts: Path) -> Iterator[Rows]:
    """Each measured point with the cycles of the vertex."""
    for line in read_csv(facts / FILE):
        size = int(line["N"])
        published = float(line["cycles_per_tile_derived"])
        name = f"[{size},16]x[16,16]"
        row = Row(name, "ConvPartial1x1", "bow", "vertex cycles", published)
        yield Rows((row,), lambda size=size: {"vertex cycles": vertex_cycles(size)})


def vertex_cycles(num_rows: int) -> int:
    """Cycles of the vertices of one product on one tile."""
    line, weights = zeros(1, _CHANNELS, num_rows), zeros(_CHANNELS, _CHANNELS, 1)
    module = Once(F.conv1d, {"line": line, "weights": weights})
    case = Case(module, partials=torch.float16, num_tiles=1)
    return sum(
        group.cycles_by_tile.maximum
        for step in model_case(case, "bow").modelled.simulation.steps
        if isinstance(step.step, Execute)
        for group in step.step.compute_set.vertices
        if "ConvPartial" in group.codelet.name
    )
