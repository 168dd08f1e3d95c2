"""Methods: which vertices can compute a problem on a chip, and in what groups.

In: a ConvProblem and a Chip. Out: candidates for the search, each with the channels its
vertex takes at once, its peak rate and its cycle function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from popple.errors import PlanError
from popple.graph import DType
from popple.plan.codelets.sizes import PRODUCT_CODE_BYTES
from popple.plan.conv import lists, vertices
from popple.plan.conv.lists import Listing
from popple.plan.conv.problem import ConvProblem
from popple.plan.conv.vertices import AmpUnit, Hmac, Ints, TileWork
from popple.program import Codelet, Thread
from popple.target import Chip
from popple.units import ceil_div, round_up

# Sizes of machine code are estimates: 6 to 17 KB of code serve all vertex types of a
# model on a tile (POPLINER profiles), AMP vertices being the largest.
_CODE_BYTES = {
    "amp-1x1": PRODUCT_CODE_BYTES,
    "amp-nx1": 2200,
    "slic": 2000,
    "hmac": 900,
    "vmac": 1200,
    "outer-product": 400,
}
# Chips with so many units can leave half of them idle (ConvVertexType.cpp).
_ALL_UNITS = 16
_SOURCE = "graphcore/poplibs lib/poplin/PerformanceEstimation.hpp"


@dataclass(frozen=True)
class Method:
    """A vertex and the groups it works in.

    `in_group`, `out_group` and `conv_group` are the channels and conv groups taken at
    once; what does not fill them is padding. `macs_per_cycle` is the rate of the inner
    loop. A vertex that `is_buffered` keeps the sums of one set of groups twice. Beside
    its state it has lists of `list_bytes`.
    """

    name: str
    codelet: Codelet
    in_group: int
    out_group: int
    partials: DType
    macs_per_cycle: float
    conv_group: int = 1
    kernel_height: int = 1
    is_interleaved: bool = False
    is_buffered: bool = False
    cycles: Callable[[TileWork], Ints] = field(compare=False, kw_only=True, repr=False)
    list_bytes: Callable[[TileWork], Ints] = field(
        default=lists.no_lists, compare=False, kw_only=True, repr=False
    )

    def padding_factor(self, problem: ConvProblem) -> float:
        """Products computed for each one wanted."""
        wanted = problem.groups * problem.in_channels * problem.out_channels
        padded = (
            round_up(problem.groups, self.conv_group)
            * round_up(problem.in_channels, self.in_group)
            * round_up(problem.out_channels, self.out_group)
        )
        height = math.prod(problem.kernel[:-1])
        return padded / wanted * round_up(height, self.kernel_height) / height

    def least_cycles(self, problem: ConvProblem, num_tiles: int) -> float:
        """Cycles that no split over `num_tiles` tiles can beat."""
        work = problem.num_macs * self.padding_factor(problem)
        return work / (self.macs_per_cycle * num_tiles)


def find_methods(problem: ConvProblem, chip: Chip) -> tuple[Method, ...]:
    """Methods that can compute the problem, most useful products a cycle first."""
    found = list(_all_methods(problem, chip))
    found.sort(key=lambda method: method.least_cycles(problem, 1))
    return tuple(found)


def _all_methods(problem: ConvProblem, chip: Chip) -> Iterator[Method]:
    unit = find_amp_unit(problem, chip)
    if unit is not None:
        for num_passes in _amp_passes(problem, chip, unit):
            several = replace(unit, num_passes=num_passes)
            yield from _amp_methods(problem, chip, several)
        if unit.num_units == _ALL_UNITS:
            yield from _amp_methods(problem, chip, _half_of(unit))
        yield from _slic_methods(problem, chip, unit)
    yield from _hmac_methods(problem, chip)
    yield from _vmac_methods(problem, chip)
    yield from _outer_product_methods(problem, chip)


def find_amp_unit(problem: ConvProblem, chip: Chip) -> AmpUnit | None:
    """The multiply-accumulate units for the problem's types; integers have none."""
    if not problem.dtype.is_float:
        return None
    kind, num_units = _amp_kind(problem, chip)
    if num_units == 0:
        raise PlanError(
            f"chip {chip.name} cannot multiply {problem.dtype.value} numbers.",
            remedy="Cast to f16, or use a chip with FP8 units such as c600.",
        )
    weight_bytes = num_units * amp_depth(problem.dtype, chip) * problem.dtype.num_bytes
    load_cycles = ceil_div(weight_bytes, chip.conv_unit_coeff_load_bytes_per_cycle)
    return AmpUnit(
        kind,
        load_cycles,
        num_units,
        problem.partials.num_bytes,
        num_workers=chip.num_workers,
    )


def _amp_kind(problem: ConvProblem, chip: Chip) -> tuple[str, int]:
    if problem.dtype is DType.F32:
        return "f32", chip.fp32_in_fp32_out_conv_units
    if problem.dtype is DType.F8:
        return "f8", chip.fp8_in_fp16_out_conv_units
    if problem.partials is DType.F32:
        return "f16", chip.fp16_in_fp32_out_conv_units
    # GC2 has 8 of these, and its vertices clear partials themselves (`vertices`).
    kind = "f16" if chip.fp16_in_fp16_out_conv_units >= 16 else "f16-mk1"
    return kind, chip.fp16_in_fp16_out_conv_units


def amp_depth(dtype: DType, chip: Chip) -> int:
    """Input channels of one weight load: elements a cycle times pipeline depth."""
    if dtype is DType.F32:
        return chip.fp32_conv_unit_load_elements * chip.fp32_conv_unit_pipeline_depth
    if dtype is DType.F8:
        return chip.fp8_conv_unit_load_elements * chip.fp8_conv_unit_pipeline_depth
    return chip.fp16_conv_unit_load_elements * chip.fp16_conv_unit_pipeline_depth


def _half_of(unit: AmpUnit) -> AmpUnit:
    """Half of the units, for results of few channels."""
    loads = ceil_div(unit.load_cycles, 2)
    return replace(unit, num_units=unit.num_units // 2, load_cycles=loads)


def _amp_passes(problem: ConvProblem, chip: Chip, unit: AmpUnit) -> list[int]:
    """One pass, or as many as make a group of outputs a group of the next inputs."""
    depth = amp_depth(problem.dtype, chip)
    is_wide = problem.out_channels > unit.num_units and depth > unit.num_units
    return [1, ceil_div(depth, unit.num_units)] if is_wide else [1]


def _amp_methods(problem: ConvProblem, chip: Chip, unit: AmpUnit) -> Iterator[Method]:
    depth = amp_depth(problem.dtype, chip)
    out_group = unit.num_units * unit.num_passes
    # A worker spends 4 cycles (8 for f32) on each element and weight load.
    slope = 8 if unit.kind == "f32" else 4
    # Each of n workers issues every n-th cycle, so together they take `slope` tile
    # cycles for an element.
    rate = depth * unit.num_units / slope
    make = partial(
        Method,
        out_group=out_group,
        partials=problem.partials,
        macs_per_cycle=rate,
        is_interleaved=True,
    )
    listing = Listing.of(chip)
    is_narrow = out_group < _ALL_UNITS and out_group < problem.out_channels
    narrow = f", {out_group} channels" if is_narrow else ""
    if problem.is_matmul:
        yield make(
            f"amp-1x1{narrow}",
            _codelet("amp-1x1", "ConvPartial1x1Out", problem, unit.num_units),
            depth,
            cycles=partial(vertices.amp_1x1_cycles, unit=unit),
            list_bytes=partial(lists.amp_1x1_lists, listing=listing),
        )
        return
    # Rows of the kernel loaded at once take the place of input channels: few channels
    # then still fill the unit.
    for height in (1, 2, 4):
        yield make(
            f"{_nx1_name(height)}{narrow}",
            _codelet("amp-nx1", "ConvPartialnx1", problem, unit.num_units),
            depth // height,
            kernel_height=height,
            cycles=partial(vertices.amp_nx1_cycles, unit=unit, kernel_height=height),
            list_bytes=partial(
                lists.positional_lists, listing=listing, kernel_height=height
            ),
        )


def _nx1_name(height: int) -> str:
    return "amp-nx1" if height == 1 else f"amp-nx1 of {height} kernel rows"


def _slic_methods(problem: ConvProblem, chip: Chip, unit: AmpUnit) -> Iterator[Method]:
    """Groupings of conv groups by channels: 1x4, 2x2, 4x1 and, 16 units, 8x1, 16x1."""
    if unit.kind not in ("f16", "f8") or problem.stride[-1] > 2:
        return
    if problem.is_matmul or max(problem.upsampling) > 1 or problem.in_channels > 4:
        return
    groupings = [(1, 4), (2, 2), (4, 1)]
    if unit.num_units >= 16:
        groupings += [(8, 1), (16, 1)]
    # Four chains of units need one pass over the field, two chains need two.
    quick = replace(unit, num_passes=1 if unit.num_units >= 16 else 2)
    for groups, channels in groupings:
        if groups > problem.groups or problem.in_channels > channels:
            continue
        yield Method(
            f"slic {groups}x{channels}",
            _codelet("slic", "ConvPartial1xNSLIC", problem, unit.num_units),
            channels,
            channels,
            problem.partials,
            4.0 * groups * channels * channels / quick.num_passes,
            conv_group=groups,
            is_interleaved=True,
            is_buffered=True,
            cycles=partial(
                vertices.slic_cycles,
                unit=quick,
                stride=problem.stride[-1],
                is_quad_channel=channels == 4,
            ),
            list_bytes=partial(lists.slic_lists, listing=Listing.of(chip)),
        )


def _hmac_methods(problem: ConvProblem, chip: Chip) -> Iterator[Method]:
    vector = _vector_elements(problem.dtype)
    whole = round_up(problem.in_channels, vector)
    for in_group in sorted({min(whole, 16), min(whole, 256)}):
        yield hmac_of(problem, chip, in_group)


def hmac_of(problem: ConvProblem, chip: Chip, in_group: int) -> Method:
    """Dot products of `in_group` input channels."""
    is_float = problem.dtype is DType.F32
    has_float_partials = problem.partials is DType.F32
    vertex = Hmac(in_group, is_float, has_float_partials, chip.num_workers)
    return Method(
        "hmac" if in_group <= 16 else "hmac of long rows",
        _codelet("hmac", "ConvPartialHorizontalMac", problem),
        in_group,
        vertex.out_group,
        problem.partials,
        in_group * vertex.out_group / (2 + vertex.dot_cycles),
        cycles=partial(vertices.hmac_cycles, vertex=vertex),
        list_bytes=partial(lists.positional_lists, listing=Listing.of(chip)),
    )


def _vmac_methods(problem: ConvProblem, chip: Chip) -> Iterator[Method]:
    is_depthwise = problem.in_channels == 1 and problem.out_channels == 1
    is_half = problem.dtype in (DType.F16, DType.BF16)
    if not (is_depthwise and is_half) or problem.is_matmul:
        return
    lanes = 4 if problem.partials is DType.F32 else 8
    for groups in (4, 8, 16):
        if groups > round_up(problem.groups, 4):
            continue
        yield Method(
            f"vmac of {groups}",
            _codelet("vmac", "ConvPartialVerticalMac", problem),
            1,
            1,
            problem.partials,
            lanes / 3,
            conv_group=groups,
            is_interleaved=True,
            cycles=partial(
                vertices.vmac_cycles,
                groups=groups,
                lanes=lanes,
                num_workers=chip.num_workers,
            ),
            list_bytes=partial(lists.vmac_lists, listing=Listing.of(chip)),
        )


def _outer_product_methods(problem: ConvProblem, chip: Chip) -> Iterator[Method]:
    if problem.in_channels > 1 or not problem.is_matmul or not problem.dtype.is_float:
        return
    if problem.dtype is DType.F8:
        return
    vector = _vector_elements(problem.dtype)
    out_group = min(round_up(problem.out_channels, vector), 16 * vector)
    yield outer_product_of(problem, chip, out_group)


def outer_product_of(problem: ConvProblem, chip: Chip, out_group: int) -> Method:
    """Products with one input channel for `out_group` output channels at once."""
    vector = _vector_elements(problem.dtype)
    return Method(
        "outer-product",
        _codelet("outer-product", "OuterProduct", problem),
        1,
        out_group,
        problem.output,
        vector,
        cycles=partial(
            vertices.outer_product_cycles,
            out_group=out_group,
            elements_per_load=vector,
            num_workers=chip.num_workers,
        ),
    )


def _vector_elements(dtype: DType) -> int:
    """Elements of one 64-bit load; integers are multiplied one by one."""
    return 8 // max(dtype.num_bytes, 2) if dtype.is_float else 1


def _codelet(method: str, name: str, problem: ConvProblem, units: int = 0) -> Codelet:
    types = f"{problem.dtype.value},{problem.partials.value}"
    suffix = f",{units}" if units else ""
    return Codelet(
        f"poplin::{name}<{types}{suffix}>",
        Thread.SUPERVISOR,
        code_bytes=_CODE_BYTES[method],
        state_bytes=44,
        source=_SOURCE,
    )
