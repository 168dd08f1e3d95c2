"""Kernels: dense products, stencils and a matrix-vector product, measured on chips.

Kernels that were written in C++, vertex by vertex, are in `hand_written`. A kernel that
runs in a loop on its own output is modelled by what one more round adds, so that
loading and the first layout do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

import popple
from benchmarks.calibration.hand_written import (
    matvec_cycles,
    phase_cycles,
    sweep_seconds,
)
from benchmarks.calibration.model_case import Case, Once, Operation, model_case, zeros
from benchmarks.calibration.published import (
    KERNELS,
    OTHER,
    Published,
    published_rows,
)
from benchmarks.calibration.rows import NotExpressed, Row, Rows
from popple.sim import Cost

_DTYPES = {
    "FP16": torch.float16,
    "FP32": torch.float32,
    "half": torch.float16,
    "float": torch.float32,
}
TIME = "time or rate"
_KERNEL = 3


def kernel_rows(facts: Path) -> Iterator[Rows]:
    """The published figures of kernels, and those that no set has a model of."""
    for each in published_rows(facts):
        if each.kind in (KERNELS, OTHER):
            group, model = _model_of(each)
            row = Row(each.name, group, each.chip, TIME, each.value)
            yield Rows((row,), partial(_figures, each, model))


Model = Callable[[Published], float]


def _model_of(row: Published) -> tuple[str, Model]:
    if row.workload.startswith("dense matmul"):
        return "dense matmul", dense_teraflops
    if "poplin convolution" in row.workload:
        return "stencil", blur_seconds
    if "phase" in row.workload:
        return "stencil by hand", phase_cycles
    if "blur" in row.workload or row.workload.startswith("stencil"):
        return "stencil by hand", sweep_seconds
    if "matrix-vector" in row.workload:
        return "matrix-vector", matvec_cycles
    return "other", _refuse


def _figures(row: Published, model: Model) -> Mapping[str, float]:
    row.check_value()
    if row.kind == OTHER or "compil" in row.metric:
        raise NotExpressed(f"no model of {row.metric!r}")
    return {TIME: model(row)}


def _refuse(row: Published) -> float:
    if "PopSparse" in row.workload:
        raise NotExpressed("no sparse product in PopTorch")
    raise NotExpressed(f"no model of {row.workload!r}")


def dense_teraflops(row: Published) -> float:
    """A product whose output is the next input: tera operations a second."""
    found = row.find(r"(\d+)x(\d+)x(\d+) (FP16|FP32)")
    rows, inner, columns = map(int, found.groups()[:3])
    dtype = _DTYPES[found[4]]
    partials = torch.float16 if "half partials" in row.config else torch.float32
    operands = {
        "x": zeros(inner, columns, dtype=dtype),
        "weights": zeros(rows, inner, dtype=dtype),
    }
    make = partial(Case, partials=partials)
    cost = cost_of_round(lambda x, weights: weights @ x, operands, make, row.chip)
    return 2 * rows * inner * columns / _seconds(cost, row.chip) / 1e12


def blur_seconds(row: Published) -> float:
    """A depthwise convolution of an image with itself as the next input."""
    if row.num_chips > 1:
        raise NotExpressed("a field over several chips has no words in PopTorch")
    width, height = map(int, row.find(r"image (\d+)x(\d+)").groups())
    dtype = _DTYPES[row.find(r"\b(half|float)\b")[1]]
    groups = int(row.find(r"(\d+) conv groups", row.workload)[1])
    proportion = float(row.find(r"availableMemoryProportion ([\d.]+)")[1])
    operands = {
        "x": zeros(1, groups, height, width, dtype=dtype),
        "weights": zeros(groups, 1, _KERNEL, _KERNEL, dtype=dtype),
    }
    make = partial(Case, memory_proportion=proportion)
    cost = cost_of_round(
        lambda x, weights: F.conv2d(x, weights, padding=1, groups=groups),
        operands,
        make,
        row.chip,
    )
    return int(row.find(r"(\d+) convs")[1]) * _seconds(cost, row.chip)


def cost_of_round(
    operation: Operation,
    operands: Mapping[str, Tensor],
    make: Callable[[Once], Case],
    chip: str,
) -> Cost:
    """What one more round of an operation on its own result costs.

    The first operand is the one that each round replaces.
    """

    def repeated(count: int, x: Tensor, *others: Tensor) -> Tensor:
        for _ in range(count):
            x = operation(x, *others)
        return x

    costs: list[Cost] = []
    for count in (2, 3):
        module = Once(partial(repeated, count), operands)
        costs.append(_counted_cost(model_case(make(module), chip).modelled))
    return costs[1] + costs[0] * -1


def _counted_cost(modelled: popple.Modelled) -> Cost:
    """All ops together, without transfers from and to the host."""
    costs = modelled.simulation.cost_by_op
    return sum((cost for op, cost in costs.items() if op), start=Cost())


def _seconds(cost: Cost, chip: str) -> float:
    return cost.cycles / popple.load_target(chip).chip.clock_hz
