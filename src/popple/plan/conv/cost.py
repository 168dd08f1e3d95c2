"""Costs of candidate splits: exchange, compute, sums, serial parts, memory.

In: `Candidates` of a problem and a method. Out: `Costs`, cycles and bytes of the
fullest tile, one entry for each candidate. The terms are those of graphcore/poplibs
lib/poplin/ConvModel.cpp: bytes over the width of the exchange, 1/N of each operand
already in place, sums in one to three stages, 8 bytes a cycle where paired tiles
receive the same inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from popple.plan.conv.copies import estimate_copies
from popple.plan.conv.setting import Setting
from popple.plan.conv.splits import Candidates
from popple.plan.conv.vertices import (
    Ints,
    add_in_place_cycles,
    cast_cycles,
    ceil_of,
    reduce_cycles,
    slice_cycles,
)
from popple.target import Chip
from popple.units import ceil_div

# Partials summed in one, two and three stages.
TWO_STAGES_FROM = 16
THREE_STAGES_FROM = 125
# Beside the sums that a SLIC vertex keeps twice.
_BUFFER_BYTES = 200


@dataclass(frozen=True)
class SplitCost:
    """Cycles by cause of one split, and what they were found from.

    `memory_bytes` are temporary, `partials_bytes` those of the partial sums; elements
    are received in every serial part; `stages` add up so many partials each.
    """

    exchange: int
    compute: int
    reduction: int
    serial: int
    copies: int
    fixed: int
    memory_bytes: int
    partials_bytes: int
    received_inputs: int
    received_weights: int
    stages: tuple[int, ...]

    @property
    def by_cause(self) -> tuple[int, ...]:
        """Cycles of each cause."""
        causes = (self.exchange, self.compute, self.reduction, self.serial)
        return (*causes, self.copies, self.fixed)

    @property
    def total(self) -> int:
        """Cycles of the whole plan."""
        return sum(self.by_cause)

    def excess(self, reference: tuple[int, ...]) -> int:
        """Cycles beyond those of the reference, cause by cause; none without one."""
        if not reference:
            return 0
        pairs = zip(self.by_cause, reference, strict=True)
        return sum(max(0, cycles - limit) for cycles, limit in pairs)


@dataclass(frozen=True)
class Costs:
    """Cycles by cause of each candidate, and what they were found from."""

    exchange: Ints
    compute: Ints
    reduction: Ints
    serial: Ints
    copies: Ints
    fixed: Ints
    memory_bytes: Ints
    partials_bytes: Ints
    received_inputs: Ints
    received_weights: Ints
    stages: list[Ints]

    def at(self, index: int) -> SplitCost:
        """The candidate at `index`."""
        depths = [int(depth[index]) for depth in self.stages]
        return SplitCost(
            exchange=int(self.exchange[index]),
            compute=int(self.compute[index]),
            reduction=int(self.reduction[index]),
            serial=int(self.serial[index]),
            copies=int(self.copies[index]),
            fixed=int(self.fixed[index]),
            memory_bytes=int(self.memory_bytes[index]),
            partials_bytes=int(self.partials_bytes[index]),
            received_inputs=int(self.received_inputs[index]),
            received_weights=int(self.received_weights[index]),
            stages=tuple(depth for depth in depths if depth > 1),
        )

    @property
    def total(self) -> Ints:
        """Cycles of the whole plan."""
        parts = self.exchange + self.compute + self.reduction + self.serial
        return parts + self.copies + self.fixed

    @property
    def by_cause(self) -> Ints:
        """Cycles of each cause, one row for each."""
        causes = (self.exchange, self.compute, self.reduction, self.serial)
        return np.stack((*causes, self.copies, self.fixed))

    def excess(self, reference: tuple[int, ...]) -> Ints:
        """Cycles beyond those of the reference, cause by cause."""
        limits = np.array(reference, dtype=np.int64)[:, np.newaxis]
        return np.maximum(self.by_cause - limits, 0).sum(axis=0)


def estimate_costs(candidates: Candidates, setting: Setting) -> Costs:
    """Cycles and bytes of every candidate."""
    serial, chip = setting.serial, setting.chip
    received_inputs, received_weights = received_elements(candidates, setting)
    to_cycles = setting.element_bytes / chip.exchange_bytes_per_cycle
    # Tiles that differ only in output channels need the same inputs.
    inputs = received_inputs * to_cycles / input_bus_width(candidates.out_split, chip)
    weights = received_weights * to_cycles
    # Inputs and weights come together, but for inputs that are there before the loop.
    phases = serial.count * ((received_inputs > 0) | (received_weights > 0))
    if serial.keeps_inputs:
        phases = serial.count * (received_weights > 0) + (received_inputs > 0)
    exchange = serial.times_inputs * inputs + serial.count * weights
    compute = setting.method.cycles(candidates.work)
    stages = reduction_stages(candidates.num_summed)
    reduction, sums, reduce_bytes = _estimate_reduction(candidates, stages, setting)
    # What PopLibs' planner expects around the plan; steps for them come from `supply`.
    copies = estimate_copies(candidates.num_used, setting)
    partials = partials_bytes(candidates, setting)
    received = (received_inputs, received_weights)
    held_inputs, held_weights = held_bytes(candidates, received, setting)
    kept = held_inputs if serial.keeps_inputs else np.zeros_like(held_inputs)
    held = held_inputs + held_weights - kept
    # Either operands and partials are live, or partials and those that arrive.
    during = np.maximum(held + partials, partials + reduce_bytes)
    if serial.in_parts > 1:
        during = during + sums * setting.partial_bytes
    during = np.maximum(during, copies.temporary_bytes)
    turned_cycles, turned_bytes = _estimate_turned(candidates, setting)
    return Costs(
        exchange=_whole(exchange + setting.phase_cycles * phases),
        compute=serial.count * compute,
        reduction=serial.count * reduction,
        serial=_estimate_serial(candidates, sums, setting) + turned_cycles,
        copies=serial.count * copies.cycles
        - (serial.count - serial.times_inputs) * copies.inputs_cycles,
        fixed=_estimate_cast(candidates, sums, setting),
        memory_bytes=kept + turned_bytes + np.maximum(during, turned_bytes),
        partials_bytes=partials,
        received_inputs=received_inputs,
        received_weights=received_weights,
        stages=stages,
    )


def _whole(cycles: NDArray[np.float64]) -> Ints:
    return np.ceil(cycles).astype(np.int64)


def input_bus_width(out_split: Ints, chip: Chip) -> Ints:
    """2 where paired tiles, alike but for output channels, share their buses."""
    return np.where(out_split % chip.tiles_per_exchange_bus, 1, _pairs(chip))


def is_bus_shared(out_split: int, chip: Chip) -> bool:
    """Whether paired tiles receive the same inputs."""
    return _pairs(chip) > 1 and out_split % chip.tiles_per_exchange_bus == 0


def _pairs(chip: Chip) -> int:
    return min(2, chip.tiles_per_exchange_bus)


def received_elements(candidates: Candidates, setting: Setting) -> tuple[Ints, Ints]:
    """Input and weight elements the fullest tile receives in one serial part."""
    problem, serial = setting.form.problem, setting.serial
    used = candidates.num_used
    # An operand that lies evenly on the tiles of the plan is in place by 1/N.
    own_inputs = ceil_div(problem.num_inputs, serial.in_parts)
    own_weights = ceil_div(problem.num_weights, serial.count)
    inputs = candidates.inputs - ceil_of(own_inputs, used)
    weights = candidates.weights - ceil_of(own_weights, used)
    return np.maximum(inputs, 0), np.maximum(weights, 0)


def reduction_stages(num_summed: Ints) -> list[Ints]:
    """Partials added up in each stage; 1 where a stage is not needed."""
    stages = 1 + (num_summed >= TWO_STAGES_FROM) + (num_summed >= THREE_STAGES_FROM)
    left = num_summed
    depths: list[Ints] = []
    for done in range(3):
        # Stages of equal depth are the shortest; 1e-9 keeps exact roots whole.
        root = left ** (1 / np.maximum(stages - done, 1))
        depth = np.where(stages > done, np.ceil(root - 1e-9), 1).astype(np.int64)
        depths.append(depth)
        left = ceil_of(left, depth)
    return depths


def _estimate_reduction(
    candidates: Candidates, stages: list[Ints], setting: Setting
) -> tuple[Ints, Ints, Ints]:
    """Cycles, sums left on a tile, and bytes of the partials it received at once."""
    chip, size = setting.chip, setting.partial_bytes
    cycles = np.zeros_like(candidates.partials)
    sums, most = candidates.partials, np.zeros_like(candidates.partials)
    for depth in stages:
        outputs = ceil_of(sums, depth)
        received = outputs * (depth - 1) * size
        moved = ceil_of(received, chip.exchange_bytes_per_cycle) + setting.phase_cycles
        added = reduce_cycles(outputs, depth, size, chip.num_workers)
        cycles += np.where(depth > 1, moved + added, 0)
        most = np.maximum(most, received)
        sums = outputs
    return cycles, sums, most


def _estimate_serial(candidates: Candidates, sums: Ints, setting: Setting) -> Ints:
    """Slices of the operands, and updates or additions of the result."""
    serial, problem = setting.serial, setting.form.problem
    if serial.count == 1:
        return np.zeros_like(sums)
    workers, size = setting.chip.num_workers, setting.element_bytes
    weights = ceil_of(problem.num_weights, candidates.num_used * serial.count)
    cycles = slice_cycles(weights, size, workers)
    if serial.in_parts > 1:
        part = candidates.num_used * serial.in_parts
        inputs = ceil_of(problem.num_inputs, part)
        cycles = cycles + slice_cycles(inputs, size, workers)
        cycles = cycles + add_in_place_cycles(sums, setting.partial_bytes, workers)
    if serial.out_parts > 1:
        cycles = cycles + slice_cycles(sums, problem.output.num_bytes, workers)
    return serial.count * cycles


def _estimate_turned(candidates: Candidates, setting: Setting) -> tuple[Ints, Ints]:
    """What is expected for weights that must be brought in order before slicing.

    Once before the serial parts: through the exchange, then one by one; the copy lives
    as long as they do. PopLibs' planner expects it wherever passes have plans of their
    own (addRearrangeBeforeSliceEstimate). It decides between plans; steps for it come
    from `supply`, where operands do not lie as the plan wishes.
    """
    problem = setting.form.problem
    is_sliced = problem.purpose.is_linear and not setting.is_joint
    if setting.serial.count == 1 or not is_sliced:
        return np.zeros_like(candidates.partials), np.zeros_like(candidates.partials)
    weights = ceil_of(problem.num_weights, candidates.num_used)
    held = weights * setting.element_bytes
    return ceil_of(held, setting.chip.exchange_bytes_per_cycle) + weights, held


def _estimate_cast(candidates: Candidates, sums: Ints, setting: Setting) -> Ints:
    if not setting.is_cast:
        return np.zeros_like(sums)
    cycles = cast_cycles(sums, setting.chip.num_workers)
    if setting.serial.in_parts > 1:
        return cycles
    # A reduction writes the output type itself.
    alone = np.where(candidates.num_summed > 1, 0, cycles)
    return setting.serial.out_parts * alone


def partials_bytes(candidates: Candidates, setting: Setting) -> Ints:
    """Bytes of the partial sums, those a vertex keeps twice included."""
    partials = candidates.partials * setting.partial_bytes
    if not setting.method.is_buffered:
        return partials
    return partials + ceil_of(partials, candidates.groups_share) + _BUFFER_BYTES


def held_bytes(
    candidates: Candidates, received: tuple[Ints, Ints], setting: Setting
) -> tuple[Ints, Ints]:
    """Bytes of the copies of inputs and weights; none where all lies in place."""
    held = (candidates.inputs, candidates.weights)
    size = setting.element_bytes
    inputs, weights = (
        np.where(r > 0, h * size, 0) for r, h in zip(received, held, strict=True)
    )
    return inputs, weights
