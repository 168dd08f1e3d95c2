"""Lowering of reductions: sum, mean, max, variance, norm, arg max, cumulative sums."""

from __future__ import annotations

from typing import Any

from popple.capture.torch.aten.forms import Lowering, emit_one
from popple.capture.torch.builder import NodeContext

_KINDS = {
    "sum": "reduce_sum",
    "nansum": "reduce_sum",
    "count_nonzero": "reduce_sum",
    "mean": "reduce_mean",
    "amax": "reduce_max",
    "amin": "reduce_min",
    "prod": "reduce_prod",
    "any": "reduce_any",
    "all": "reduce_all",
    "logsumexp": "reduce_log_sum_exp",
    "argmax": "arg_max",
    "argmin": "arg_min",
    "cumsum": "cumulative_sum",
    "cumprod": "cumulative_sum",
}


def reduced_dims(dims: Any, rank: int) -> tuple[int, ...]:
    """Dimensions as non-negative numbers; all of them if none are given."""
    if dims is None or dims == []:
        return tuple(range(rank))
    listed = dims if isinstance(dims, (list, tuple)) else [dims]
    return tuple(sorted(dim % max(rank, 1) for dim in listed))


def reduction(kind: str, dims_at: int = 1) -> Lowering:
    """A reduction whose dimensions are the argument number `dims_at`."""

    def lower(context: NodeContext) -> None:
        rank = len(context.type_of(context.inputs()[0]).shape)
        dims = reduced_dims(context.arg(dims_at), rank)
        emit_one(context, kind, {"dims": dims})

    return lower


def lower_extreme(context: NodeContext) -> None:
    """`max` and `min`: of everything, along a dimension with indices, or of two."""
    name = context.operator.split(".")[1]
    # Two tensors are no reduction: torch has the same name for both.
    if len(context.inputs()) == 2:
        emit_one(context, f"{name}imum", {})
        return
    source = context.inputs()[0]
    rank = len(context.type_of(source).shape)
    dims = reduced_dims(context.arg(1), rank)
    types = context.result_types()
    names = context.emit(f"reduce_{name}", [source], types[:1], attrs={"dims": dims})
    if len(types) == 2:
        names += context.emit(
            f"arg_{name}", [source], types[1:], suffix=".indices", attrs={"dims": dims}
        )
    context.finish_all(names)


def lower_var_mean(context: NodeContext) -> None:
    """Variance and mean in one operator."""
    source = context.inputs()[0]
    rank = len(context.type_of(source).shape)
    dims = reduced_dims(context.arg(1), rank)
    variance, mean = context.result_types()
    names = [
        *context.emit("reduce_variance", [source], [variance], attrs={"dims": dims}),
        *context.emit(
            "reduce_mean", [source], [mean], suffix=".mean", attrs={"dims": dims}
        ),
    ]
    context.finish_all(names)


LOWERINGS: dict[str, Lowering] = {
    **{f"aten.{name}": reduction(kind) for name, kind in _KINDS.items()},
    "aten.max": lower_extreme,
    "aten.min": lower_extreme,
    "aten.var": reduction("reduce_variance"),
    "aten.std": reduction("reduce_variance"),
    "aten.var_mean": lower_var_mean,
    "aten.linalg_vector_norm": reduction("reduce_norm", dims_at=2),
    "aten.norm": reduction("reduce_norm", dims_at=2),
}
