"""Targets and requests that the planner's tests share."""

from __future__ import annotations

from dataclasses import replace

from popple.graph import DType, Signature, TensorType
from popple.plan.opplan import (
    Compute,
    Loop,
    Move,
    OpPlan,
    PlanRequest,
    PlanStep,
    TileMapping,
)
from popple.plan.options import PlanOptions
from popple.plan.rules import conv, matmul
from popple.program import TileVector
from popple.target import Chip, Target, load_target

Dims = tuple[int, ...]
Given = tuple[TileMapping | None, ...]
DEFAULTS = PlanOptions()


def target_of(name: str, num_tiles: int = 0) -> Target:
    """A known target, with another number of tiles if one is given."""
    target = load_target(name)
    if not num_tiles:
        return target
    chip = replace(target.chip, num_tiles=num_tiles)
    return replace(target, system=replace(target.system, chip=chip))


def plan_matmul(
    left: Dims,
    right: Dims,
    target: Target | None = None,
    dtype: DType = DType.F16,
    inputs: Given = (None, None),
    options: PlanOptions = DEFAULTS,
) -> OpPlan:
    types = (TensorType(dtype, left), TensorType(dtype, right))
    result = TensorType(dtype, (*left[:-1], right[-1]))
    signature = Signature("matmul", types, (result,))
    request = PlanRequest(signature, inputs, target or target_of("bow"), options)
    return matmul.RULES["matmul"](request)


def plan_conv(
    kind: str,
    field: Dims,
    kernel: Dims,
    target: Target | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    dtype: DType = DType.F16,
    given: tuple[TileMapping | None, ...] = (None, None),
) -> OpPlan:
    """A plan of `kind` for the convolution of `field` by `kernel`."""
    sizes = zip(field[2:], kernel[2:], strict=True)
    spans = ((n + 2 * padding - (k - 1) * dilation - 1) for n, k in sizes)
    out = (field[0], kernel[0], *(span // stride + 1 for span in spans))
    x, w, y = (TensorType(dtype, shape) for shape in (field, kernel, out))
    inputs, result = {
        "conv": ((x, w), y),
        "conv_input_grad": ((y, w), x),
        "conv_weight_grad": ((y, x), w),
    }[kind]
    rank = len(field) - 2
    attrs = (
        ("dilation", (dilation,) * rank),
        ("groups", groups),
        ("padding", (padding,) * rank),
        ("stride", (stride,) * rank),
    )
    signature = Signature(kind, inputs, (result,), attrs)
    machine = target or target_of("bow")
    return conv.RULES[kind](PlanRequest(signature, given, machine))


def cycles_of(plan: OpPlan) -> int:
    """The planner's own estimate of the steps, without copies it only expects."""
    choice = dict(plan.choice)
    copies = choice.get("expected_copies", "0 cycles").split()[0]
    return int(choice["estimated_cycles"]) - int(copies)


def cycles_of_steps(steps: tuple[PlanStep, ...], chip: Chip) -> float:
    """What the steps add up to, by the rules the planner estimates with."""
    total = 0.0
    for step in steps:
        if isinstance(step, Loop):
            total += step.count * cycles_of_steps(step.steps, chip)
        elif isinstance(step, Compute):
            total += sum(group.cycles_by_tile.maximum for group in step.vertices)
        elif isinstance(step, Move):
            width = chip.exchange_bytes_per_cycle * (2 if step.is_shared else 1)
            total += chip.exchange_latency_cycles + chip.mean_sync_delay_cycles
            total += step.received_by_tile.maximum / width
    return total


def flat_steps(steps: tuple[PlanStep, ...]) -> list[PlanStep]:
    """All steps, those of loops in place of the loop."""
    flat: list[PlanStep] = []
    for step in steps:
        flat += flat_steps(step.steps) if isinstance(step, Loop) else [step]
    return flat


def all_vectors(plan: OpPlan) -> list[TileVector]:
    """Every tile vector in a plan."""
    vectors = [mapping.bytes_by_tile for mapping in plan.outputs]
    vectors += [mapping.bytes_by_tile for mapping in plan.inputs if mapping]
    vectors += [temporary.bytes_by_tile for temporary in plan.temporaries]
    for step in flat_steps(plan.steps):
        if isinstance(step, Move):
            vectors += [step.sent_by_tile, step.received_by_tile]
            vectors += [step.messages_by_tile] if step.messages_by_tile else []
        elif isinstance(step, Compute):
            for group in step.vertices:
                vectors += [group.count_by_tile, group.cycles_by_tile]
    return vectors
