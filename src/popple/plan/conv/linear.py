"""Linear layers in training: their three products planned together.

In: a `Linear`, the sizes and types of a layer's forward product. Out: a `Choice` for
each `LinearPass`. As in graphcore/poplibs (lib/poplin/ConvPlan.cpp, runPlanner) there
is one joint plan, in which every weight is used on one tile in all passes and its
gradient is made there, and the best plan of each pass alone: whichever costs less.

The joint plan computes with operands exchanged: the layer's outputs are the field, its
rows the output channels, which are not split over tiles. Backward, field and input
channels change places; for the gradient of the weights, input and output channels do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from popple.graph import DType, LinearPass
from popple.plan.conv.cost import estimate_costs
from popple.plan.conv.methods import (
    Method,
    find_amp_unit,
    find_methods,
    hmac_of,
    outer_product_of,
)
from popple.plan.conv.problem import ConvProblem, Purpose, matmul_problem
from popple.plan.conv.search import Choice, Solution, find_choice
from popple.plan.conv.setting import Setting
from popple.plan.conv.splits import (
    Candidates,
    Grid,
    Parts,
    Serial,
    distinct_splits,
    make_candidates,
    thin,
)
from popple.plan.conv.transforms import Form, swap
from popple.plan.conv.vertices import Ints, ceil_of
from popple.target import Chip
from popple.units import ceil_div

# To search less.
_MAX_HMAC_GROUPS = 12
_MAX_SPLITS = 48


_PURPOSES = {
    LinearPass.FORWARD: Purpose.LINEAR,
    LinearPass.INPUT_GRAD: Purpose.LINEAR_INPUT_GRAD,
    LinearPass.WEIGHT_GRAD: Purpose.LINEAR_WEIGHT_GRAD,
}

_Trio = dict[LinearPass, Solution]


@dataclass(frozen=True)
class Linear:
    """`groups` products of [rows, inputs] by [inputs, outputs], the weights."""

    groups: int
    rows: int
    inputs: int
    outputs: int
    dtype: DType
    partials: DType
    output: DType

    def problem(self, which: LinearPass) -> ConvProblem:
        """The product of one pass."""
        shapes = {
            LinearPass.FORWARD: (self.rows, self.inputs, self.outputs),
            LinearPass.INPUT_GRAD: (self.rows, self.outputs, self.inputs),
            LinearPass.WEIGHT_GRAD: (self.inputs, self.rows, self.outputs),
        }
        types = (self.dtype, self.partials, self.output)
        product = matmul_problem(self.groups, shapes[which], *types)
        return replace(product, purpose=_PURPOSES[which])


def linear_of(problem: ConvProblem, which: LinearPass, is_turned: bool) -> Linear:
    """The layer that a product is a pass of; turned, rows are its outputs."""
    rows, inner, columns = problem.num_rows, problem.in_channels, problem.out_channels
    if is_turned:
        rows, columns = columns, rows
    sizes = {
        LinearPass.FORWARD: (rows, inner, columns),
        LinearPass.INPUT_GRAD: (rows, columns, inner),
        LinearPass.WEIGHT_GRAD: (inner, rows, columns),
    }[which]
    types = (problem.dtype, problem.partials, problem.output)
    return Linear(problem.groups, *sizes, *types)


@dataclass(frozen=True)
class LinearPlan:
    """A choice for every pass; `is_joint` says that they share one split."""

    choices: dict[LinearPass, Choice]
    is_joint: bool


@lru_cache(maxsize=1024)
def find_linear(layer: Linear, chip: Chip, memory_proportion: float) -> LinearPlan:
    """The joint plan of the three products, or the three best ones if those win."""
    apart = {
        which: find_choice(layer.problem(which), chip, memory_proportion)
        for which in LinearPass
    }
    limit_bytes = memory_proportion * chip.tile_memory_bytes
    joint = _find_joint(layer, chip, limit_bytes)
    if joint is None or not _is_better(joint, apart, limit_bytes):
        return LinearPlan(apart, is_joint=False)
    choices = {
        which: Choice(best, (apart[which].best,), apart[which].wished_cycles)
        for which, best in joint.items()
    }
    return LinearPlan(choices, is_joint=True)


def _is_better(joint: _Trio, apart: dict[LinearPass, Choice], limit: float) -> bool:
    most = max(choice.best.memory_bytes for choice in apart.values())
    cycles = sum(choice.best.cycles for choice in apart.values())
    # As in PopLibs the comparison is of the sums: one pass may get slower.
    return most > limit or sum(s.cycles for s in joint.values()) <= cycles


@dataclass(frozen=True)
class _Ways:
    """Methods of the three passes; `grain` outputs and inputs stay together."""

    grain: int
    methods: dict[LinearPass, Method]


def _find_joint(layer: Linear, chip: Chip, limit_bytes: float) -> _Trio | None:
    """The best joint plan that fits; serial parts are not tried."""
    # Sums of another type than the weights cannot lie in their place.
    if layer.dtype is not layer.output:
        return None
    best: _Trio | None = None
    fewest = math.inf
    for ways in _find_ways(layer, chip):
        cycles, found = _evaluate(layer, ways, chip, limit_bytes)
        if cycles < fewest:
            best, fewest = found, cycles
    return best


def _evaluate(
    layer: Linear, ways: _Ways, chip: Chip, limit_bytes: float
) -> tuple[float, _Trio]:
    """The best split of all passes together; infinite cycles if none fits."""
    splits = _find_splits(layer, ways.grain, chip.num_tiles)
    settings = {w: _setting(layer, w, m, chip) for w, m in ways.methods.items()}
    made = {w: _cut(layer, w, ways.grain, splits, s) for w, s in settings.items()}
    costs = {w: estimate_costs(made[w], s) for w, s in settings.items()}
    total = np.sum([c.total for c in costs.values()], axis=0)
    memory = np.max([c.memory_bytes for c in costs.values()], axis=0)
    # One split serves all three passes, so the worst of them must fit.
    cycles = np.where(memory <= limit_bytes, total, math.inf)
    at = int(cycles.argmin())
    solutions = {
        w: Solution(s, made[w].at(at), costs[w].at(at)) for w, s in settings.items()
    }
    return float(cycles.min()), solutions


def _setting(layer: Linear, which: LinearPass, method: Method, chip: Chip) -> Setting:
    form = swap(Form("", layer.problem(which)))
    return Setting(form, method, chip, Serial(), is_joint=True)


def _find_splits(layer: Linear, grain: int, num_tiles: int) -> tuple[Ints, Ints, Ints]:
    """Parts of the groups, the inputs and the outputs, in grains of the last two."""
    # Rows are not among them: every weight is used on one tile by all rows.
    axes = [distinct_splits(layer.groups, num_tiles)]
    for size in (layer.inputs, layer.outputs):
        axes.append(distinct_splits(ceil_div(size, grain), num_tiles))
    # Every option is one of all three passes: the grid must stay small.
    axes = [thin(axis, _MAX_SPLITS) for axis in axes]
    groups, ins, outs = (m.ravel() for m in np.meshgrid(*axes, indexing="ij"))
    fits = groups * ins * outs <= num_tiles
    return groups[fits], ins[fits], outs[fits]


def _cut(
    layer: Linear,
    which: LinearPass,
    grain: int,
    splits: tuple[Ints, Ints, Ints],
    setting: Setting,
) -> Candidates:
    """The split as one pass sees it."""
    groups, ins, outs = splits
    ones = np.ones_like(groups)
    inputs = _share(layer.inputs, ins, grain)
    outputs = _share(layer.outputs, outs, grain)
    rows = ones * layer.rows
    field, depth, channels = {
        LinearPass.FORWARD: ((outputs, outs), (inputs, ins), (rows, ones)),
        LinearPass.INPUT_GRAD: ((inputs, ins), (outputs, outs), (rows, ones)),
        LinearPass.WEIGHT_GRAD: ((outputs, outs), (rows, ones), (inputs, ins)),
    }[which]
    method = setting.method
    return make_candidates(
        setting.form.problem,
        method,
        Parts(groups, depth[1], channels[1]),
        (
            ceil_of(layer.groups, groups),
            ceil_of(depth[0], method.in_group),
            ceil_of(channels[0], method.out_group),
        ),
        Grid((ones, field[0]), field[1]),
        Grid((ones,), ones),
    )


def _share(size: int, parts: Ints, grain: int) -> Ints:
    """Elements of the largest part, in grains but never more than there are."""
    return np.minimum(ceil_of(ceil_div(size, grain), parts) * grain, size)


def _find_ways(layer: Linear, chip: Chip) -> Iterator[_Ways]:
    """Forward methods whose groups the other passes can work in, too."""
    problems = {w: swap(Form("", layer.problem(w))).problem for w in LinearPass}
    amp = {w: _amp_methods(p, chip) for w, p in problems.items()}
    for forward in amp[LinearPass.FORWARD]:
        back = _like(amp[LinearPass.INPUT_GRAD], forward)
        update = _of_width(amp[LinearPass.WEIGHT_GRAD], forward.in_group)
        if back and update:
            update = replace(update, in_group=forward.out_group)
            yield _Ways(forward.in_group, _methods(forward, back, update))
    unit = find_amp_unit(problems[LinearPass.FORWARD], chip)
    for group in _hmac_groups(layer.inputs, unit.num_units) if unit else ():
        forward = hmac_of(problems[LinearPass.FORWARD], chip, group)
        back = hmac_of(problems[LinearPass.INPUT_GRAD], chip, group)
        update = _find_update(layer, problems[LinearPass.WEIGHT_GRAD], group, chip)
        if update:
            yield _Ways(group, _methods(forward, back, update))


def _methods(forward: Method, back: Method, update: Method) -> dict[LinearPass, Method]:
    return {
        LinearPass.FORWARD: forward,
        LinearPass.INPUT_GRAD: back,
        LinearPass.WEIGHT_GRAD: update,
    }


def _find_update(
    layer: Linear, problem: ConvProblem, group: int, chip: Chip
) -> Method | None:
    """What the gradient of the weights takes beside dot products of `group`."""
    # One row: a column times a row, for which there is a vertex of its own.
    if layer.rows == 1:
        is_known = problem.dtype is not DType.F8
        return outer_product_of(problem, chip, group) if is_known else None
    if group > 1:
        return next(iter(_amp_methods(problem, chip)), None)
    return hmac_of(problem, chip, 1)


def _hmac_groups(inputs: int, num_units: int) -> list[int]:
    """1, or multiples of the units that are the smallest for their number of groups."""
    counts = distinct_splits(ceil_div(inputs, num_units), inputs)
    sizes = np.unique(ceil_of(ceil_div(inputs, num_units), counts) * num_units)
    return [1, *thin(sizes, _MAX_HMAC_GROUPS).tolist()]


def _amp_methods(problem: ConvProblem, chip: Chip) -> list[Method]:
    return [m for m in find_methods(problem, chip) if m.name.startswith("amp")]


def _like(methods: list[Method], wanted: Method) -> Method | None:
    sizes = (wanted.in_group, wanted.out_group)
    return next((m for m in methods if (m.in_group, m.out_group) == sizes), None)


def _of_width(methods: list[Method], out_group: int) -> Method | None:
    return next((m for m in methods if m.out_group == out_group), None)
