"""Rewrites of traced operators: decompositions, and batch norm's running statistics.

`DECOMPOSITIONS` goes to the tracer. `keep_statistics` is for afterwards: the machine
updates running statistics when a step is over, so whoever else reads them in the step
reads what they were before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from popple.capture.torch.effects import find_storages, written_arguments

_RANDOM = getattr(torch.ops.aten.random_, "from")


def _random_from(
    x: Tensor, low: int, high: int | None, *, generator: Any = None
) -> Tensor:
    """Whole numbers in place. Generated code cannot call an overload named `from`."""
    bound = _largest(x.dtype) if high is None else high
    return x.copy_(torch.randint_like(x, low, bound))


def _largest(dtype: torch.dtype) -> int:
    """Up to here a type has every whole number."""
    if dtype.is_floating_point:
        return int(2 / torch.finfo(dtype).eps)
    return torch.iinfo(dtype).max


def _bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Counts of the numbers below `minlength`, which must be all there are."""
    # Without a size only values tell how long the result is: torch's own error says so.
    if not minlength:
        return NotImplemented
    if weights is None:
        weights = torch.ones_like(x, dtype=torch.int64)
    elif not weights.is_floating_point():
        weights = weights.double()
    return weights.new_zeros(minlength).scatter_add(0, x.long(), weights)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    _RANDOM: _random_from,
    torch.ops.aten.bincount.default: _bincount,
}


def keep_statistics(traced: GraphModule) -> None:
    """Let all but normalisations read running statistics as they were at first."""
    graph = traced.graph
    last = graph.find_nodes(op="placeholder")[-1:]
    for node, writers in _find_statistics(traced).items():
        readers = [user for user in node.users if not _is_normalisation(user)]
        if not readers:
            continue
        with graph.inserting_after(last[0]):
            kept = graph.call_function(torch.ops.aten.clone.default, (node,))
        kept.meta |= {**writers[0].meta, "val": node.meta["val"].clone()}
        for reader in readers:
            reader.replace_input_with(node, kept)
    traced.recompile()


def _find_statistics(traced: GraphModule) -> dict[Node, list[Node]]:
    """Arguments that only normalisations write to, with these."""
    storages = find_storages(traced)
    writers: dict[int | None, list[Node]] = {}
    for node in traced.graph.nodes:
        for argument in written_arguments(node):
            writers.setdefault(storages.get(argument), []).append(node)
    given = traced.graph.find_nodes(op="placeholder")
    found = {node: writers.get(storages.get(node), []) for node in given}
    return {n: w for n, w in found.items() if w and all(map(_is_normalisation, w))}


def _is_normalisation(node: Node) -> bool:
    return "batch_norm" in str(node.target)
