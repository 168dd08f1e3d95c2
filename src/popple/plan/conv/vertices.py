"""Cycles of the vertices that convolutions and their sums are made of.

Pure functions of numbers: what a tile computes (`TileWork`, one entry for each
candidate split) in, tile cycles out. The constants are those of the estimators of
graphcore/poplibs 3.4, lib/poplin/PerformanceEstimation.hpp, unless a function says
otherwise. Where a source gives a range, the middle is taken. Only `amp_1x1_cycles` has
been compared with hardware (Bow, 91 points from 32 elements on: within 2 %).

Worker cycles (`_w`) count for one worker slot: the tile takes `num_workers` times as
long. `e` in the comments are the field elements of one worker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
# Numbers of one split, or of all candidates at once.
Count = TypeVar("Count", int, Ints)


@dataclass(frozen=True)
class TileWork:
    """What a tile computes, one entry for each candidate.

    Channels come in groups that the method's vertex takes at once: `in_groups` and
    `out_groups` count them, `conv_groups` counts the (sets of) conv groups. The output
    has `rows` rows of `columns` elements, the kernel `kernel_rows` of
    `kernel_columns`.
    """

    conv_groups: Ints
    rows: Ints
    columns: Ints
    kernel_rows: Ints
    kernel_columns: Ints
    in_groups: Ints
    out_groups: Ints

    @property
    def elements(self) -> Ints:
        """Output positions of the tile."""
        return self.rows * self.columns

    @property
    def kernel(self) -> Ints:
        """Kernel positions of the tile."""
        return self.kernel_rows * self.kernel_columns


@dataclass(frozen=True)
class AmpUnit:
    """The multiply-accumulate unit as one vertex uses it.

    `kind` is "f16", "f16-mk1" (8 units with half partials), "f32" or "f8"; a weight
    load fills all units and takes `load_cycles`; `num_passes` loads cover one group of
    output channels.
    """

    kind: str
    load_cycles: int
    num_units: int
    partial_bytes: int = 2
    num_passes: int = 1
    num_workers: int = 6


@overload
def ceil_of(numerator: int, denominator: int) -> int: ...


@overload
def ceil_of(numerator: Ints, denominator: Ints | int) -> Ints: ...


@overload
def ceil_of(numerator: int, denominator: Ints) -> Ints: ...


def ceil_of(numerator: Ints | int, denominator: Ints | int) -> Ints | int:
    """Smallest integers not below the quotients."""
    return -(-numerator // denominator)


def amp_1x1_cycles(work: TileWork, unit: AmpUnit) -> Ints:
    """ConvPartial1x1: kernel 1, rows and columns one range dealt to the workers."""
    later = _amp_1x1_pass(work, unit, is_first=False)
    first = _amp_1x1_pass(work, unit, is_first=True)
    passes, load = unit.num_passes, unit.load_cycles
    again = 15 + work.out_groups * (19 + passes * (6 + load + later))
    start = 11 + work.out_groups * (18 + passes * (7 + load + first))
    zeroing = 6 * (7 + 3 * (work.in_groups * work.conv_groups - 1))
    per_group = 13 + (work.in_groups - 1) * again + start
    return 50 + zeroing + work.conv_groups * per_group


def _amp_1x1_pass(work: TileWork, unit: AmpUnit, is_first: bool) -> Ints:
    most = ceil_of(work.elements, unit.num_workers)
    least = work.elements // unit.num_workers
    # The supervisor needs 14 cycles after the first worker is done: seen only when all
    # workers are equally busy, and measured as 19 cycles on Bow.
    busiest = unit.num_workers * _amp_1x1_worker(most, unit, is_first)
    earliest = unit.num_workers * _amp_1x1_worker(least, unit, is_first) + 14
    return np.maximum(busiest, earliest)


def _amp_1x1_worker(e: Ints, unit: AmpUnit, is_first: bool) -> Ints:
    if unit.kind == "f16":
        head = np.select([e == 0, e == 1, e == 2], [21, 32, 41], 37 + 4 * (e - 3))
        # 7 of them are saved by state the workers keep between weight loads.
        return head + (0 if is_first else 1) - 7
    if unit.kind == "f8":
        return 17 + 27 - 5 + 4 * np.maximum(e - 3, 0)
    return _amp_1x1_worker_zeroing(e, unit, is_first)


def _amp_1x1_worker_zeroing(e: Ints, unit: AmpUnit, is_first: bool) -> Ints:
    """Vertices that clear the partials themselves before the first pass."""
    if unit.kind == "f32":
        run, clear = 46 + 8 * np.maximum(e - 3, 0), 2 + unit.num_units // 2 * e
    else:
        run, clear = 41 + 4 * np.maximum(e - 3, 0), 2 + 2 * e
    return run + clear if is_first else run


# Supervisor cycles on top of a weight load, by rows of the kernel loaded at once.
_NX1_LOAD_EXTRA = {1: 15, 2: 46, 4: 60}


def amp_nx1_cycles(work: TileWork, unit: AmpUnit, kernel_height: int = 1) -> Ints:
    """ConvPartialnx1: any kernel, `kernel_height` of its rows in one weight load."""
    slope, start = (8, 45) if unit.kind == "f32" else (4, 34)
    row_w = _row_cost(work, unit, 3 + start - 9, slope, shortest=3)
    worker_w = 18 + row_w
    kernel_rows = ceil_of(work.kernel_rows, kernel_height)
    load = unit.load_cycles + _NX1_LOAD_EXTRA[kernel_height] + 3
    passes = unit.num_passes
    loads = kernel_rows * (14 + work.kernel_columns * (12 + passes * load))
    runs = kernel_rows * work.kernel_columns * passes * unit.num_workers * worker_w
    inner = loads + runs
    partial_bytes = work.elements * unit.num_units * passes * unit.partial_bytes
    # A worker clears 8 bytes a cycle.
    clear_w = 5 + ceil_of(partial_bytes, 8 * unit.num_workers)
    clear = work.conv_groups * work.out_groups * (10 + unit.num_workers * clear_w)
    channels = 14 + work.out_groups * (14 + inner)
    loops = work.conv_groups * (16 + work.in_groups * channels)
    return 109 + 6 * 9 + 6 * 10 + clear + loops


def _row_cost(
    work: TileWork, unit: AmpUnit, fixed_w: int, slope_w: int, shortest: int
) -> Ints:
    """Worker cycles of the busiest worker: rows dealt out, cut along x if few."""
    costs: list[Ints] = []
    # Divisors of six workers: parts of a row are dealt out evenly.
    for cuts in (1, 2, 3, 6):
        rows = ceil_of(work.rows * cuts, unit.num_workers)
        columns = ceil_of(work.columns, cuts)
        costs.append(rows * (fixed_w + slope_w * np.maximum(columns - shortest, 0)))
    return reduce(np.minimum, costs)


def slic_cycles(
    work: TileWork, unit: AmpUnit, stride: int, is_quad_channel: bool
) -> Ints:
    """SLIC: kernel columns by fours, few channels for each conv group."""
    if stride == 1:
        row_w = _row_cost(work, unit, 10 + 15, 1, shortest=5)
    else:
        row_w = _row_cost(work, unit, 10 + 15, 2, shortest=3)
    load = 34 if is_quad_channel else 9 + 6 + 10 * 6 + 6 + 16
    # The unit takes four columns of the kernel at once; fewer are padded with zeros.
    sub_kernels = work.kernel_rows * ceil_of(work.kernel_columns, 4)
    run = unit.num_workers * (19 + row_w * unit.num_passes)
    loops = work.conv_groups * work.in_groups * work.out_groups
    return 28 + loops * (15 + sub_kernels * (load + 17 + run))


@dataclass(frozen=True)
class Hmac:
    """HMAC: dot products over a group of input channels, some outputs at a time.

    Partial sums in half come in pairs. There is a quicker vertex for kernels of one
    position, but only from halves to floats.
    """

    in_group: int
    is_float: bool
    has_float_partials: bool
    num_workers: int = 6

    @property
    def out_group(self) -> int:
        """Output channels that one pass over the inputs makes."""
        return 1 if self.has_float_partials else 2

    @property
    def dot_cycles(self) -> int:
        """Worker cycles of the dot products of one pass."""
        whole = 2 if self.is_float else 4  # elements of 64 bit
        width = math.gcd(self.in_group, whole)
        inner = 3 * self.out_group + (self.out_group == 2) + 3 + 1
        if width == whole:
            loop = self.in_group // whole
        else:
            # Activations and weights are loaded in turn, and once more at first.
            loop = 2 * self.in_group // width + self.out_group
        return inner + loop - (not self.is_float)

    def is_quick(self, work: TileWork) -> NDArray[np.bool_]:
        """Whether the vertex for single positions does."""
        has_vertex = self.has_float_partials and not self.is_float
        return (work.kernel == 1) & has_vertex


def hmac_cycles(work: TileWork, vertex: Hmac) -> Ints:
    """All dot products; rows are dealt to the workers, the last ones in parts."""
    workers, is_quick = vertex.num_workers, vertex.is_quick(work)
    kept_w = np.where(is_quick, 15, 0 if vertex.is_float else 6)
    row_w = np.where(is_quick, 13 + 1, 19)
    element_w = np.where(is_quick, 2, 7) + vertex.dot_cycles
    # Rows left over are cut into as many parts as let all workers end together.
    parts = workers // np.gcd(workers, work.rows)
    whole, rest = np.divmod(ceil_of(work.rows * parts, workers), parts)
    piece = rest * (work.columns + parts - 1) // parts
    rows_w = whole * (row_w + work.columns * element_w)
    rows_w += np.where(rest > 0, row_w + piece * element_w, 0)
    worker_w = 16 + work.kernel * (16 - kept_w + rows_w)
    loops = 23 + work.in_groups * (15 + work.out_groups * (10 + workers * worker_w))
    kept_once_w = np.where(is_quick, 15, 0 if vertex.has_float_partials else 6)
    kept_once_w += 9 if vertex.has_float_partials else 10
    overhead = (58 if vertex.is_float else 65) - 10 * is_quick + workers * kept_once_w
    return overhead + work.conv_groups * loops + _zero_cycles(work, vertex)


def _zero_cycles(work: TileWork, vertex: Hmac) -> Ints:
    """Sums are cleared first, two at a time."""
    cleared = ceil_of(work.elements * vertex.out_group, vertex.num_workers)
    each = vertex.num_workers * (ceil_of(cleared, 2) + 14 - 9)
    return each * work.out_groups * work.conv_groups


def vmac_cycles(work: TileWork, groups: int, lanes: int, num_workers: int = 6) -> Ints:
    """VMAC: `groups` conv groups of one channel at once, `lanes` in one instruction."""
    vectors = -(-groups // lanes)
    output_w = 7 + 9 + 3 + 3 * (work.kernel - 1)
    outputs = ceil_of(work.elements, num_workers) * vectors
    inner = num_workers * (19 + outputs * output_w)
    clear = num_workers * (5 + ceil_of(work.elements * groups, 4 * num_workers))
    return 61 + 14 + 25 + work.conv_groups * (clear + 32 + 24 + inner)


def outer_product_cycles(
    work: TileWork, out_group: int, elements_per_load: int, num_workers: int = 6
) -> Ints:
    """OuterProduct: one input channel, so every output is a single product."""
    offset = 12 if elements_per_load == 4 else 6
    chunk = 6 + max(0, -(-(out_group - offset) // elements_per_load))
    width = ceil_of(work.elements, num_workers)
    groups = work.conv_groups * work.out_groups
    return num_workers * (25 + groups * (11 + width * chunk))


def reduce_cycles(
    outputs: Count, depth: Count, partial_bytes: int, num_workers: int = 6
) -> Count:
    """ReduceAdd: `depth` partials for each of `outputs` sums on the tile.

    128-bit accumulators, 3 worker cycles for each of them and each partial.
    """
    # Sums that fit into the accumulators of one turn: 128 bits.
    per_loop = 16 // partial_bytes
    loops = ceil_of(ceil_of(outputs, num_workers), per_loop)
    return num_workers * (32 + loops * (3 * depth + 8))


def cast_cycles(elements: Count, num_workers: int = 6) -> Count:
    """Cast of the sums to the output type: 2 elements in a worker cycle."""
    return 12 + num_workers * (26 + ceil_of(ceil_of(elements, num_workers), 2))


def slice_cycles(elements: Count, element_bytes: int, num_workers: int = 6) -> Count:
    """DynamicSlice or DynamicUpdateSlice of a serial split's part (ConvModel.cpp)."""
    vector = num_workers * (8 // element_bytes)
    return 25 + num_workers * (39 + 24 + ceil_of(2 * elements, vector))


def add_in_place_cycles(
    elements: Count, element_bytes: int, num_workers: int = 6
) -> Count:
    """Sum of one more serial part added to those before."""
    vector = num_workers * (8 // element_bytes)
    return 11 + num_workers * (58 + ceil_of(3 * elements, vector))


def transpose_cycles(
    rows: int, columns: int, num_blocks: int, element_bytes: int, num_workers: int = 6
) -> int:
    """Transpose: `num_blocks` blocks on a tile (popopsCycleEstimators.cpp).

    Rows and columns are multiples of 4, of 2 if elements are of 4 bytes.
    """
    blocks = -(-num_blocks // num_workers)
    if element_bytes == 4:
        worker = 27 + blocks * (11 + rows // 2 * (6 + 3 * (columns // 2 - 1)))
    elif rows == columns == 4:
        worker = 29 + 8 * (blocks > 1) + 4 * max(0, blocks - 2)
    elif columns == 4:
        worker = 27 + blocks * (35 + 4 * (rows // 4 - 2))
    else:
        worker = 29 + blocks * (18 + rows // 4 * (12 + 4 * (columns // 4 - 2)))
    return 7 + num_workers * worker


def copy_cycles(num_bytes: int, atom_bytes: int, is_aligned: bool = True) -> int:
    """On-tile rearrangement of `num_bytes` in pieces of `atom_bytes`.

    A quarter of the copies is overhead, two thirds if channels are no multiple of a
    64-bit word; a tile moves at most 8 bytes a cycle (ConvModel.cpp).
    """
    divisor = 4 if is_aligned else 3
    return -(-5 * num_bytes // (divisor * min(8, max(atom_bytes, 1))))
