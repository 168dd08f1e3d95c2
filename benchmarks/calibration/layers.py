"""Layers: pooling, embedding and reductions as the benchmark tools run them."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.calibration.model_case import Case, Once, Passes, zeros
from benchmarks.calibration.params import Params
from benchmarks.calibration.products import padding, with_options
from benchmarks.calibration.rows import NotExpressed

_POOLS: dict[str, Callable[..., Tensor]] = {
    "max": F.max_pool2d,
    "avg": F.avg_pool2d,
}
_REDUCTIONS: dict[str, Callable[[Tensor, tuple[int, ...]], Tensor]] = {
    "ADD": torch.sum,
    "SQUARE_ADD": lambda x, dims: torch.linalg.vector_norm(x, dim=dims),
    "MAX": torch.amax,
    "MIN": torch.amin,
    "LOG_ADD": torch.logsumexp,
}
# A sum of squares is the norm of a program without its root.
_LAST_PASS = {"SQUARE_ADD": "sqrt"}


def pooling_case(params: Params) -> Case:
    """Pooling and its gradient; how channels are grouped is the planner's choice."""
    field = params.integers("field")
    name = "kernel" if "kernel" in params else "kernel-size"
    kernel, stride = params.sizes(name, 2, 1), params.sizes("stride", 2, 1)
    before, after = padding(params, 2)
    kind = params.text("pooling-type", "max")
    if len(field) != 2 or kind not in _POOLS or before != after:
        raise NotExpressed(f"{kind} pooling of {field}, padded by {before}, {after}")
    for side in ("fwd", "bwd"):
        params.integer(f"{side}-chans-per-group", 16)
    shape = (params.integer("batch-size", 1), params.integer("channels"), *field)
    operands = {"x": zeros(*shape, dtype=params.dtype())}

    def pool(x: Tensor) -> Tensor:
        return _POOLS[kind](x, kernel, stride, before)

    return with_options(params, Case(Passes(pool, operands)))


def embedding_case(params: Params) -> Case:
    """Rows gathered from a table, then others added to it in place."""
    num_rows, width = params.integers("shape")
    counts = params.integers("num-indices")
    if len(counts) != 1 or params.text("pass", "both") != "both":
        raise NotExpressed("several sets of indices, or one pass alone")
    dtype = params.dtype()
    operands = {
        "table": zeros(num_rows, width, dtype=dtype),
        "deltas": zeros(counts[0], width, dtype=dtype),
        "indices": torch.zeros(counts[0], dtype=torch.int32),
    }
    return with_options(params, Case(Once(_look_up_and_add, operands)))


def reduction_case(params: Params) -> Case:
    """A reduction over some dimensions."""
    shape, dims = params.integers("shape"), params.integers("dims")
    operation = params.text("operation", "ADD")
    if operation not in _REDUCTIONS:
        raise NotExpressed(f"reduction {operation}")
    if params.number("scale", 1.0) != 1.0 or params.flag("update"):
        raise NotExpressed("a scaled or added reduction")
    x = zeros(*shape, dtype=params.dtype("type", "float"))
    reduce = _REDUCTIONS[operation]
    once = Once(lambda x: reduce(x, dims), {"x": x})
    return with_options(params, Case(once, uncounted=_LAST_PASS.get(operation, "")))


def _look_up_and_add(table: Tensor, deltas: Tensor, indices: Tensor) -> Tensor:
    rows = F.embedding(indices, table)
    table.index_add_(0, indices, deltas)
    return rows
