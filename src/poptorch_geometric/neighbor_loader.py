"""`FixedSizeNeighborLoader`: sampled neighbourhoods of nodes, brought to one size."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch_geometric.loader import NeighborLoader
from torch_geometric.sampler.base import SubgraphType

import poptorch

from ._counts import Graph
from .collate import CombinedBatchingCollater, FixedSizeCollater
from .fixed_size_options import FixedSizeOptions
from .pyg_dataloader import OverSizeStrategy

__all__ = ["FixedSizeNeighborLoader"]

# What the sampler notes about a sample: of the seeds and hops, not of its nodes.
_NOTES = (
    "batch_size",
    "input_id",
    "num_sampled_edges",
    "num_sampled_nodes",
    "seed_time",
)


_SAMPLING = inspect.signature(NeighborLoader).parameters.keys() - {"kwargs"}


class FixedSizeNeighborLoader(poptorch.DataLoader):
    """Sampled neighbourhoods of nodes in micro-batches that all have the same size.

    A micro-batch is the neighbourhood of `batch_size` nodes as one graph, and padding
    as a second. Its size is that of `fixed_size_options`, by default found by sampling
    first; what is too large is trimmed. Arguments that are not named here are those of
    torch_geometric's NeighborLoader and of `poptorch.DataLoader`.
    """

    def __init__(
        self,
        data: Any,
        num_neighbors: Any,
        input_nodes: Any = None,
        input_time: torch.Tensor | None = None,
        subgraph_type: SubgraphType | str = SubgraphType.directional,
        *,
        batch_size: int = 1,
        over_size_strategy: OverSizeStrategy = OverSizeStrategy.TrimNodesAndEdges,
        fixed_size_options: FixedSizeOptions | None = None,
        add_pad_masks: bool | None = True,
        follow_batch: Sequence[str] | None = None,
        exclude_keys: Sequence[str] | None = None,
        options: poptorch.Options | None = None,
        **kwargs: Any,
    ) -> None:
        sampling = {key: kwargs.pop(key) for key in _SAMPLING & kwargs.keys()}
        # The collater needs the features wherever it runs: nothing else works.
        sampling["filter_per_worker"] = True
        self.neighbour_loader = NeighborLoader(
            data,
            num_neighbors,
            input_nodes=input_nodes,
            input_time=input_time,
            subgraph_type=subgraph_type,
            batch_size=batch_size,
            shuffle=kwargs.get("shuffle"),
            **sampling,
        )
        if fixed_size_options is None:
            fixed_size_options = FixedSizeOptions.from_loader(self.neighbour_loader)
        over_size_strategy = OverSizeStrategy(over_size_strategy)
        self._fixed_size_collater = FixedSizeCollater(
            fixed_size_options=fixed_size_options,
            add_masks_to_batch=add_pad_masks,
            trim_nodes=over_size_strategy.trims_nodes,
            trim_edges=over_size_strategy.trims_edges,
            follow_batch=follow_batch,
            exclude_keys=exclude_keys,
        )
        super().__init__(
            options=poptorch.Options() if options is None else options,
            dataset=self.neighbour_loader.dataset,
            batch_size=batch_size,
            collate_fn=CombinedBatchingCollater(self._collate_seeds, batch_size),
            **kwargs,
        )

    def _collate_seeds(self, index: Any) -> Any:
        return self.fixedSizeCollate(self.nativeCollate(index))

    def nativeCollate(self, index: Any) -> Any:
        """The sampled neighbourhood of the nodes with these numbers, in its size."""
        return self.neighbour_loader(index)

    def fixedSizeCollate(self, data_list: Graph) -> Any:
        """A sampled graph brought to size; it hands the sampler's notes over."""
        notes = [
            (store._key, key, store.pop(key))
            for store in data_list.stores
            for key in _NOTES
            if key in store
        ]
        batch = self._fixed_size_collater([data_list])
        for kind, key, value in notes:
            store = batch.stores[0] if kind is None else batch[kind]
            store[key] = value
        return batch
