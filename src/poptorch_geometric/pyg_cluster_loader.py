"""`FixedSizeClusterLoader` for models on the host: clusters of a graph in one size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.utils.data
from torch_geometric.loader import ClusterData, ClusterLoader

from .collate import FixedSizeCollater
from .fixed_size_options import FixedSizeOptions
from .pyg_dataloader import OverSizeStrategy

__all__ = ["FixedSizeClusterLoader"]

_OWN_ARGUMENTS = frozenset({"batch_sampler", "collate_fn", "exclude_keys", "shuffle"})


class FixedSizeClusterLoader(torch.utils.data.DataLoader[Any]):
    """Batches of `batch_size` clusters of one graph that all have the same size.

    The clusters of a batch are one graph, and padding a second. Clusters that are too
    large are trimmed, unless `over_size_strategy` says otherwise. `add_pad_masks` adds
    masks that are True for what is real; other arguments are torch's.
    """

    def __init__(
        self,
        cluster_data: ClusterData,
        fixed_size_options: FixedSizeOptions,
        batch_size: int = 1,
        over_size_strategy: OverSizeStrategy = OverSizeStrategy.TrimNodesAndEdges,
        add_pad_masks: bool | None = True,
        **kwargs: Any,
    ) -> None:
        if fixed_size_options.num_graphs != 2:
            raise AssertionError(
                "A batch of clusters is one graph and one for padding: num_graphs of "
                f"the fixed size options is {fixed_size_options.num_graphs} and must "
                "be 2."
            )
        if unsupported := sorted(_OWN_ARGUMENTS & kwargs.keys()):
            raise AssertionError(
                f"{type(self).__name__} does not take {', '.join(unsupported)}."
            )
        over_size_strategy = OverSizeStrategy(over_size_strategy)
        self.cluster_data = cluster_data
        self._cluster_loader = ClusterLoader(cluster_data, batch_size=batch_size)
        self._fixed_size_collater = FixedSizeCollater(
            fixed_size_options=fixed_size_options,
            add_masks_to_batch=add_pad_masks,
            trim_nodes=over_size_strategy.trims_nodes,
            trim_edges=over_size_strategy.trims_edges,
        )
        numbers: Any = range(len(cluster_data))
        super().__init__(
            dataset=numbers,
            batch_size=batch_size,
            collate_fn=self._joined(self._collate_clusters, batch_size),
            **kwargs,
        )

    def _collate_clusters(self, numbers: list[int]) -> Any:
        graph = self._cluster_loader._collate(numbers)
        return self._fixed_size_collater([graph])

    def _joined(self, collater: Callable[..., Any], size: int | None) -> Any:
        """What makes a batch; a loader for model calls joins several."""
        return collater
