"""float32 copies of float16 weights that outlive a step: made when weights change.

`hoist_copies` makes copies of weights inside a graph arguments of it; `WeightCopies`
keeps them up. A weight is converted once per update, however many micro-batches,
replicas or calls read it in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor
from torch.fx import Graph

from popple.engine.torch.rewrites.views import overwrites, storage_of
from popple.engine.torch.rewrites.wide import COPY


def hoist_copies(graph: Graph, num_weights: int) -> tuple[int, ...]:
    """Make float32 copies of weights further arguments; the numbers of the weights.

    Weights are the first `num_weights` arguments. Those that the graph itself writes to
    are left alone.
    """
    arguments = graph.find_nodes(op="placeholder")
    weights = {node: number for number, node in enumerate(arguments[:num_weights])}
    writers = [node for node in graph.nodes if overwrites(node)]
    written = {storage_of(n) for node in writers for n in node.all_input_nodes}
    hoisted: list[int] = []
    last = arguments[-1] if arguments else None
    for weight, number in weights.items():
        copies = [user for user in weight.users if COPY in user.meta]
        if not copies or storage_of(weight) in written:
            continue
        with graph.inserting_after(last):
            last = graph.placeholder(f"wide_{number}")
        for copy in copies:
            copy.replace_all_uses_with(last)
            graph.erase_node(copy)
        hoisted.append(number)
    return tuple(hoisted)


@dataclass
class WeightCopies:
    """float32 copies of the arguments with these numbers."""

    numbers: tuple[int, ...]
    _kept: dict[int, _Kept] = field(default_factory=dict)

    def of(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """The copies, brought up to date."""
        return [self._copy_of(number, arguments[number]) for number in self.numbers]

    def _copy_of(self, number: int, weight: Tensor) -> Tensor:
        # Every write counts a version up, whoever makes it. The weight is held, so
        # nothing else can take its address.
        seen = weight._version, weight.data_ptr()
        kept = self._kept.get(number)
        if kept is None or kept.copy.shape != weight.shape:
            copy = weight.to(torch.float32)
        elif kept.seen == seen:
            return kept.copy
        else:
            copy = kept.copy.copy_(weight)
        self._kept[number] = _Kept(weight, seen, copy)
        return copy


class _Kept(NamedTuple):
    """A copy, and version and address of the weight that it was made of."""

    weight: Tensor
    seen: tuple[int, int]
    copy: Tensor
