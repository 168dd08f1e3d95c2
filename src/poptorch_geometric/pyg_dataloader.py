"""Loaders of graphs for models on the host: batches like those for the IPU.

`DataLoader` makes batches of graphs, `FixedSizeDataLoader` batches that all have the
same size. `dataloader.py` has the loaders that make the data of whole model calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import torch.utils.data
from torch.utils.data.sampler import RandomSampler, SequentialSampler
from torch_geometric.data import HeteroData

from .collate import FixedSizeCollater
from .fixed_size_options import FixedSizeOptions
from .pyg_collate import Collater
from .stream_packing_sampler import StreamPackingSampler

__all__ = ["DataLoader", "FixedSizeDataLoader", "FixedSizeStrategy", "OverSizeStrategy"]


class FixedSizeStrategy(Enum):
    """How batches come to their fixed size."""

    PadToMax = 0
    """The same number of graphs in every batch, and padding."""

    StreamPack = 1
    """As many graphs as fit, in the order they come, and less padding."""


class OverSizeStrategy(Enum):
    """What happens to graphs that are too large for a batch."""

    Error = 0
    """A RuntimeError."""

    Skip = 1
    """They are left out; with FixedSizeStrategy.StreamPack only."""

    TrimNodes = 2
    """Nodes are removed at random."""

    TrimEdges = 3
    """Edges are removed at random."""

    TrimNodesAndEdges = 4
    """Nodes and then edges are removed at random."""

    @property
    def trims_nodes(self) -> bool:
        """Whether nodes may be removed."""
        return self in (OverSizeStrategy.TrimNodes, OverSizeStrategy.TrimNodesAndEdges)

    @property
    def trims_edges(self) -> bool:
        """Whether edges may be removed."""
        return self in (OverSizeStrategy.TrimEdges, OverSizeStrategy.TrimNodesAndEdges)


class DataLoader(torch.utils.data.DataLoader[Any]):
    """Batches of `batch_size` graphs of a dataset.

    The batches have no attributes of `exclude_keys`; for attributes of `follow_batch`
    they say which graph an element is of. Other arguments are torch's.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        follow_batch: Sequence[str] | None = None,
        exclude_keys: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.pop("collate_fn", None)
        self.follow_batch = follow_batch
        self.exclude_keys = exclude_keys
        collater = Collater(follow_batch=follow_batch, exclude_keys=exclude_keys)
        super().__init__(
            dataset=dataset,
            batch_size=batch_size,
            shuffle=shuffle,
            collate_fn=self._joined(collater, batch_size),
            **kwargs,
        )

    def _joined(self, collater: Callable[..., Any], size: int | None) -> Any:
        """What makes a batch; a loader for model calls joins several."""
        return collater


class FixedSizeDataLoader(torch.utils.data.DataLoader[Any]):
    """Batches of graphs that all have the same size.

    Every batch has `batch_size` graphs, the last of them padding; the sizes are those
    of `fixed_size_options`, by default such that any graphs of the dataset fit.
    `add_pad_masks` adds masks that are True for what is real. Other arguments are
    those of `DataLoader` and torch's.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 2,
        shuffle: bool | None = False,
        fixed_size_options: FixedSizeOptions | None = None,
        fixed_size_strategy: FixedSizeStrategy = FixedSizeStrategy.PadToMax,
        over_size_strategy: OverSizeStrategy = OverSizeStrategy.Error,
        add_pad_masks: bool | None = True,
        follow_batch: Sequence[str] | None = None,
        exclude_keys: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        if "collate_fn" in kwargs:
            raise AssertionError(
                f"{type(self).__name__} has a collate_fn of its own. To use another, "
                "make a torch.utils.data.DataLoader with it and bring graphs to size "
                "with torch_geometric.transforms.Pad."
            )
        over_size_strategy = OverSizeStrategy(over_size_strategy)
        self.fixed_size_options = _sizes(dataset, batch_size, fixed_size_options)
        self.padded_batch_size = batch_size
        sampler = kwargs.pop("batch_sampler", None)
        if FixedSizeStrategy(fixed_size_strategy) is FixedSizeStrategy.StreamPack:
            sampler = self._packing_sampler(
                dataset, sampler, shuffle, over_size_strategy
            )
        collater = FixedSizeCollater(
            fixed_size_options=self.fixed_size_options,
            add_masks_to_batch=add_pad_masks,
            trim_nodes=over_size_strategy.trims_nodes,
            trim_edges=over_size_strategy.trims_edges,
            follow_batch=follow_batch,
            exclude_keys=exclude_keys,
        )
        # A batch sampler decides on the size and order of batches by itself.
        size = batch_size - 1 if sampler is None else None
        super().__init__(
            dataset=dataset,
            batch_size=size or 1,
            shuffle=shuffle if sampler is None else None,
            batch_sampler=sampler,
            collate_fn=self._joined(collater, size),
            **kwargs,
        )

    def _packing_sampler(
        self,
        dataset: Any,
        given: Any,
        shuffle: bool | None,
        over_size_strategy: OverSizeStrategy,
    ) -> StreamPackingSampler:
        if given is not None:
            raise ValueError(
                f"FixedSizeStrategy.StreamPack has a batch sampler of its own and does "
                f"not go with {given}: leave one of them out."
            )
        # One graph, node and edge are for padding.
        return StreamPackingSampler(
            dataset,
            max_num_graphs=self.padded_batch_size - 1,
            max_num_nodes=self.fixed_size_options.total_num_nodes - 1,
            max_num_edges=self.fixed_size_options.total_num_edges - 1,
            base_sampler=(RandomSampler if shuffle else SequentialSampler)(dataset),
            allow_skip_data=over_size_strategy is OverSizeStrategy.Skip,
        )

    def _joined(self, collater: Callable[..., Any], size: int | None) -> Any:
        """What makes a batch; a loader for model calls joins several."""
        return collater


def _sizes(
    dataset: Any, batch_size: int, options: FixedSizeOptions | None
) -> FixedSizeOptions:
    if options is None:
        options = FixedSizeOptions.from_dataset(dataset, batch_size)
    first = dataset[0]
    if isinstance(first, HeteroData):
        options.to_hetero(first.node_types, first.edge_types)
    if batch_size != options.num_graphs:
        raise AssertionError(
            f"batch_size ({batch_size}) counts the padding graph, like num_graphs of "
            f"the fixed size options ({options.num_graphs}): make them the same."
        )
    return options
