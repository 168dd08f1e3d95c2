"""What stands in for functions and layers of torch_geometric while a model is traced.

Shapes must be known before values are. The originals ask values for them, or call
compiled libraries that cannot be traced; torch_geometric has other ways where it is
told that these libraries are missing, and `ops` has the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
import torch_geometric
from torch_geometric import nn, typing
from torch_geometric.index import index2ptr

import poptorch
from poptorch._tracing.extensions import register_tracing_context

from . import ops

__all__ = ["register_overrides", "static_shapes"]


class Override(NamedTuple):
    """A replacement for what `owner` has under `name`, if it has it at all."""

    owner: Any
    name: str
    replacement: Any


_FUNCTIONS = {
    "knn": ops.knn,
    "knn_graph": ops.knn_graph,
    "knn_interpolate": ops.knn_interpolate,
    "radius": ops.radius,
    "radius_graph": ops.radius_graph,
}

# Compiled libraries that torch_geometric can do without ...
_WITHOUT = (
    "WITH_GMM",
    "WITH_INDEX_SORT",
    "WITH_PYG_LIB",
    "WITH_SAMPLED_OP",
    "WITH_SEGMM",
    "WITH_SOFTMAX",
    "WITH_TORCH_SCATTER",
)
# ... and operators that are there while tracing, with the library or without.
_WITH = (
    "WITH_FPS",
    "WITH_GRID_CLUSTER",
    "WITH_KNN",
    "WITH_NEAREST",
    "WITH_RADIUS",
)


def _pointers(index: torch.Tensor | None, size: int | None = None) -> Any:
    """Where the elements of each number begin; without `size`, for any number."""
    return None if index is None else index2ptr(index, size or index.numel())


def _overrides() -> list[Override]:
    torch_cluster = sys.modules.get("torch_cluster")
    modules = [nn, nn.pool, nn.unpool, torch_cluster]
    convs = (nn.conv.edge_conv, nn.conv.gravnet_conv, nn.conv.x_conv)
    flags = {**dict.fromkeys(_WITHOUT, False), **dict.fromkeys(_WITH, True)}
    aggregation = ops.Aggregation.assert_sorted_index
    return [
        *(Override(m, name, f) for m in modules for name, f in _FUNCTIONS.items()),
        *(Override(conv, "index2ptr", _pointers) for conv in convs),
        *(Override(typing, name, is_on) for name, is_on in flags.items()),
        Override(torch_cluster, "nearest", poptorch.nearest),
        Override(nn.pool, "_batch_to_ptr", _pointers),
        Override(nn.aggr.Aggregation, "assert_sorted_index", aggregation),
        Override(nn.ClusterGCNConv, "forward", ops.ClusterGCNConv.forward),
        Override(nn.HeteroLinear, "forward", ops.HeteroLinear.forward),
        Override(nn.InstanceNorm, "forward", ops.InstanceNorm.forward),
        Override(nn.MFConv, "forward", ops.MFConv.forward),
    ]


@contextmanager
def static_shapes() -> Iterator[None]:
    """While inside, torch_geometric works with shapes that are known beforehand."""
    with ExitStack() as stack:
        for owner, name, replacement in _overrides():
            if hasattr(owner, name):
                stack.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, replacement)
        stack.enter_context(torch_geometric.experimental_mode("disable_dynamic_shapes"))
        yield


def register_overrides() -> None:
    """Have every model traced with fixed shapes."""
    register_tracing_context("poptorch_geometric", static_shapes)
