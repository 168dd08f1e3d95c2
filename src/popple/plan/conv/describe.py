"""Words and numbers that explain a solution: splits, sums, rate."""

from __future__ import annotations

from collections.abc import Sequence

from popple.plan.conv.search import Choice, Solution
from popple.units import ceil_div


def describe_splits(solution: Solution) -> str:
    """Parts over tiles, then in turn; directions that are not cut are left out.

    `field 1x14, in-channels 13; in turn out-channels 2, inputs once`
    """
    split, problem = solution.split, solution.setting.form.problem
    batch, *field = _parts_of((problem.batch, *problem.out_field), split.field.shares)
    kernel = _parts_of(problem.kernel, split.kernel.shares)
    parts = {
        "groups": [split.groups_split],
        "batch": [batch],
        "field": field,
        "kernel": kernel,
        "in-channels": [split.in_split],
        "out-channels": [split.out_split],
    }
    serial = solution.setting.serial
    in_turn = {"in-channels": [serial.in_parts], "out-channels": [serial.out_parts]}
    text = _render_parts(parts) or "one tile"
    if serial.count == 1:
        return text
    kept = ", inputs once" if serial.keeps_inputs else ""
    return f"{text}; in turn {_render_parts(in_turn)}{kept}"


def _parts_of(dims: Sequence[int], shares: Sequence[int]) -> list[int]:
    return [ceil_div(dim, share) for dim, share in zip(dims, shares, strict=True)]


def _render_parts(parts: dict[str, list[int]]) -> str:
    return ", ".join(
        f"{name} {'x'.join(map(str, counts))}"
        for name, counts in parts.items()
        if max(counts) > 1
    )


def describe_reduction(solution: Solution) -> str:
    """How partials are added up: `78 partials of f32 in 2 stages, 9 x 9`."""
    count = solution.split.num_summed
    dtype = solution.setting.method.partials.value
    if count == 1:
        return f"none, sums in {dtype} stay where they are"
    stages = [str(depth) for depth in solution.cost.stages]
    many = "1 stage" if len(stages) == 1 else f"{len(stages)} stages"
    return f"{count} partials of {dtype} in {many}, {' x '.join(stages)}"


def describe_method(solution: Solution) -> str:
    """The vertex and the form it computes: `amp-1x1, swap`."""
    form = solution.setting.form.name
    method = solution.setting.method.name
    return f"{method}, {form}" if form else method


def describe_choice(choice: Choice, num_macs: int) -> tuple[tuple[str, str], ...]:
    """Key and text of everything a report shows about the plan."""
    best = choice.best
    wished = choice.wished_cycles
    # Only told if it says something: what more memory would give, and copies around the
    # product that the planner counted on.
    slower = (("with_all_memory", f"{wished} cycles"),) if wished < best.cycles else ()
    copies = best.cost.copies
    around = (("expected_copies", f"{copies} cycles"),) if copies else ()
    # Over all tiles, idle ones too: what the chip's peak is compared with.
    rate = num_macs / (best.setting.chip.num_tiles * max(best.cycles, 1))
    return (
        ("method", best.setting.method.name),
        ("form", best.setting.form.name or "plain"),
        ("splits", describe_splits(best)),
        ("reduction", describe_reduction(best)),
        ("tiles", str(best.split.num_used)),
        ("macs_per_cycle", f"{rate:.2f} per tile"),
        ("estimated_cycles", str(best.cycles)),
        ("temporary_bytes", str(best.memory_bytes)),
        *around,
        *slower,
    )


def describe_runners_up(choice: Choice) -> tuple[tuple[str, int], ...]:
    """Plans not taken, with their estimated cycles."""
    return tuple(
        (f"{describe_method(s)}: {describe_splits(s)}", s.cycles)
        for s in choice.runners_up
    )
