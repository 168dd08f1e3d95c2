"""`FixedSizeClusterLoader` for models on the IPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch_geometric.loader import ClusterData

import poptorch

from . import pyg_cluster_loader as pyg
from .collate import CombinedBatchingCollater
from .fixed_size_options import FixedSizeOptions
from .pyg_dataloader import OverSizeStrategy

__all__ = ["FixedSizeClusterLoader"]


class FixedSizeClusterLoader(pyg.FixedSizeClusterLoader, poptorch.DataLoader):
    """Clusters of one graph in micro-batches that all have the same size.

    Arguments are those of `pyg_cluster_loader.FixedSizeClusterLoader` and
    `poptorch.DataLoader`.
    """

    def __init__(
        self,
        cluster_data: ClusterData,
        fixed_size_options: FixedSizeOptions,
        batch_size: int = 1,
        over_size_strategy: OverSizeStrategy = OverSizeStrategy.TrimNodesAndEdges,
        add_pad_masks: bool | None = True,
        options: poptorch.Options | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            cluster_data=cluster_data,
            fixed_size_options=fixed_size_options,
            batch_size=batch_size,
            over_size_strategy=over_size_strategy,
            add_pad_masks=add_pad_masks,
            options=poptorch.Options() if options is None else options,
            **kwargs,
        )

    def _joined(self, collater: Callable[..., Any], size: int | None) -> Any:
        return CombinedBatchingCollater(collater, mini_batch_size=size)
