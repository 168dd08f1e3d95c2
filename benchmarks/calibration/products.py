"""Products: convolution, fully connected layer and general matrix product.

The tools keep all data on the chip. Layers run forward, backward and weight update,
the last one added to the weights in place; inference only if they say so.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.calibration.model_case import Case, Once, Operation, Passes, zeros
from benchmarks.calibration.params import Params
from benchmarks.calibration.rows import NotExpressed


def conv_case(params: Params) -> Case:
    """A convolution of any rank up to 3."""
    field = params.integers("field")
    rank, dtype = len(field), params.dtype()
    groups = params.integer("conv-groups", 1)
    inputs, outputs = (params.integer(f"{n}-channels") for n in ("input", "output"))
    kernel = params.sizes("kernel-size", rank, 1)
    x = zeros(params.integer("batch-size", 1), groups * inputs, *field, dtype=dtype)
    weights = zeros(groups * outputs, inputs, *kernel, dtype=dtype)
    return layer_case(params, convolution(params, rank, groups), x, weights)


def fc_case(params: Params) -> Case:
    """A fully connected layer, or several side by side."""
    groups, dtype = params.integer("num-groups", 1), params.dtype()
    inputs, outputs = params.integer("input-size"), params.integer("output-size")
    x = zeros(groups, params.integer("batch-size", 1), inputs, dtype=dtype)
    weights = zeros(groups, inputs, outputs, dtype=dtype)
    if groups == 1:
        return layer_case(params, torch.mm, x[0], weights[0])
    return layer_case(params, torch.bmm, x, weights)


def gemm_case(params: Params) -> Case:
    """A product added to a matrix in place: alpha * A * B + beta * C."""
    m, k, n = (params.integer(name) for name in "mkn")
    groups, dtype = params.integer("g", 1), params.dtype()
    if {params.number(name, 1.0) for name in ("alpha", "beta")} != {1.0}:
        raise NotExpressed("alpha and beta other than 1")
    left = _transposed(params, "left", zeros(groups, m, k, dtype=dtype))
    right = _transposed(params, "right", zeros(groups, k, n, dtype=dtype))
    operands = {"left": left, "right": right, "sums": zeros(groups, m, n, dtype=dtype)}
    if groups == 1:
        operands = {name: value[0] for name, value in operands.items()}
    return with_options(params, Case(Once(_add_product, operands)))


def layer_case(
    params: Params, operation: Operation, x: Tensor, weights: Tensor
) -> Case:
    """All passes of a layer, or the forward pass alone."""
    if params.flag("bias", True):
        raise NotExpressed("a bias")
    operands = {"x": x, "weights": weights}
    if "inference-only" in params:
        params.text("inference-only", "true")
        return with_options(params, Case(Once(operation, operands)))
    if params.text("single-phase", "all") != "all":
        raise NotExpressed("a single phase")
    passes = Passes(operation, operands)
    return with_options(params, Case(passes, frozenset({"weights"})))


def with_options(params: Params, case: Case) -> Case:
    """The case with the type of partials and the number of tiles asked for."""
    return replace(
        case,
        partials=params.dtype("partials-type", "float"),
        num_tiles=params.integer("tiles-per-ipu")
        if "tiles-per-ipu" in params
        else None,
    )


def convolution(params: Params, rank: int, groups: int) -> Operation:
    """The convolution with the stride, dilation and padding asked for."""
    if not 1 <= rank <= 3:
        raise NotExpressed(f"a field of {rank} dimensions")
    function = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    stride = params.sizes("stride", rank, 1)
    dilation = params.sizes("kernel-dilation", rank, 1)
    before, after = padding(params, rank)
    # torch pads both sides alike: what differs is zeros, or a cut, beside the field.
    around = tuple(map(min, before, after))
    rest = [
        n for a, b, c in zip(before, after, around, strict=True) for n in (a - c, b - c)
    ]

    def convolve(x: Tensor, weights: Tensor) -> Tensor:
        x = F.pad(x, _last_first(rest)) if any(rest) else x
        return function(x, weights, None, stride, around, dilation, groups)

    return convolve


def padding(params: Params, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Zeros before and after each dimension."""
    both = params.sizes("padding", rank, 0)
    before = params.sizes("padding-lower", rank, 0)
    after = params.sizes("padding-upper", rank, 0)
    return (both, both) if any(both) else (before, after)


def _last_first(pads: list[int]) -> list[int]:
    """Pairs of (before, after) in the order of `F.pad`, last dimension first."""
    pairs = [pads[i : i + 2] for i in range(0, len(pads), 2)]
    return [n for pair in reversed(pairs) for n in pair]


def _transposed(params: Params, side: str, value: Tensor) -> Tensor:
    operation = params.text(f"{side}-matrix-op", "normal")
    if operation != "normal":
        raise NotExpressed(f"{operation} of the {side} matrix")
    return value


def _add_product(left: Tensor, right: Tensor, sums: Tensor) -> Tensor:
    return sums.add_(left @ right)
