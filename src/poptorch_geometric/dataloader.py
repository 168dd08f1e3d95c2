"""Loaders of graphs for models on the IPU: each batch is the data of one model call.

That is as many batches as device iterations, gradient accumulation and replicas take,
joined on dimension 0, also `edge_index`; the model cuts them apart again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import poptorch

from . import pyg_dataloader as pyg
from .collate import CombinedBatchingCollater
from .fixed_size_options import FixedSizeOptions
from .pyg_dataloader import FixedSizeStrategy, OverSizeStrategy

__all__ = ["DataLoader", "FixedSizeDataLoader", "FixedSizeStrategy", "OverSizeStrategy"]


class DataLoader(pyg.DataLoader, poptorch.DataLoader):
    """Graphs of a dataset, `batch_size` per micro-batch of the model.

    All micro-batches must be of one size; `FixedSizeDataLoader` sees to that. Other
    arguments are those of `pyg_dataloader.DataLoader` and `poptorch.DataLoader`.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        follow_batch: Sequence[str] | None = None,
        exclude_keys: Sequence[str] | None = None,
        options: poptorch.Options | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            dataset=dataset,
            batch_size=batch_size,
            shuffle=shuffle,
            follow_batch=follow_batch,
            exclude_keys=exclude_keys,
            options=poptorch.Options() if options is None else options,
            **kwargs,
        )

    def _joined(self, collater: Callable[..., Any], size: int | None) -> Any:
        return CombinedBatchingCollater(collater, mini_batch_size=size)


class FixedSizeDataLoader(pyg.FixedSizeDataLoader, poptorch.DataLoader):
    """Graphs of a dataset in micro-batches that all have the same size.

    Arguments are those of `pyg_dataloader.FixedSizeDataLoader` and
    `poptorch.DataLoader`.
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
        options: poptorch.Options | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            dataset=dataset,
            batch_size=batch_size,
            shuffle=shuffle,
            fixed_size_options=fixed_size_options,
            fixed_size_strategy=fixed_size_strategy,
            over_size_strategy=over_size_strategy,
            add_pad_masks=add_pad_masks,
            follow_batch=follow_batch,
            exclude_keys=exclude_keys,
            options=poptorch.Options() if options is None else options,
            **kwargs,
        )

    def _joined(self, collater: Callable[..., Any], size: int | None) -> Any:
        return CombinedBatchingCollater(collater, mini_batch_size=size)
