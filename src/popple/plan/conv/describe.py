"""Words and numbers that explain a solution: splits, rate, what bounds it."""

from __future__ import annotations

from popple.plan.conv.search import Choice, Solution


def describe_splits(solution: Solution) -> str:
    """Tiles along each direction: `groups 1, field 1x14, kernel 1, in 13, out 8`."""
    split, serial = solution.split, solution.setting.serial
    parts = [
        f"groups {int(split.groups_split[0])}",
        f"field {int(split.field.counts[0])}",
        f"kernel {int(split.kernel.counts[0])}",
        f"in {int(split.in_split[0])}",
        f"out {int(split.out_split[0])}",
    ]
    if serial.count > 1:
        parts.append(f"serial out {serial.out_parts}, serial in {serial.in_parts}")
    return ", ".join(parts)


def short_splits(solution: Solution) -> str:
    """The same without blanks, with all shares of the field, as part of a layout."""
    split, serial = solution.split, solution.setting.serial
    field = "x".join(str(int(share[0])) for share in split.field.shares)
    numbers = {
        "g": int(split.groups_split[0]),
        "f": field,
        "k": int(split.kernel.counts[0]),
        "i": int(split.in_split[0]),
        "o": int(split.out_split[0]),
        "s": f"{serial.out_parts}.{serial.in_parts}",
    }
    swap = "swap" if solution.setting.form.is_swapped else ""
    return swap + "".join(f"{key}{value}" for key, value in numbers.items())


def describe_method(solution: Solution) -> str:
    """The vertex and the form it computes: `amp-1x1, swap`."""
    form = solution.setting.form.name
    method = solution.setting.method.name
    return f"{method}, {form}" if form else method


def describe_choice(choice: Choice, num_macs: int) -> tuple[tuple[str, str], ...]:
    """Key and text of everything a report shows about the plan."""
    best = choice.best
    rate = num_macs / (best.setting.chip.num_tiles * max(best.cycles, 1))
    return (
        ("method", best.setting.method.name),
        ("form", best.setting.form.name or "plain"),
        ("splits", describe_splits(best)),
        ("tiles", str(int(best.split.num_used[0]))),
        ("macs_per_cycle", f"{rate:.2f} per tile"),
        ("bound", _find_bound(choice)),
        ("estimated_cycles", str(best.cycles)),
        ("temporary_bytes", str(best.memory_bytes)),
    )


def describe_runners_up(choice: Choice) -> tuple[tuple[str, int], ...]:
    """Plans not taken, with their estimated cycles."""
    return tuple(
        (f"{describe_method(s)}: {describe_splits(s)}", s.cycles)
        for s in choice.runners_up
    )


def _find_bound(choice: Choice) -> str:
    if choice.is_memory_bound:
        return "memory"
    costs = choice.best.costs
    moved = costs.exchange[0] + costs.reduction[0]
    return "compute" if costs.compute[0] >= moved else "exchange"
