"""torch_geometric's collater, as one makes it without a dataset."""

from __future__ import annotations

from collections.abc import Sequence

from torch_geometric.loader.dataloader import Collater as PyGCollater

__all__ = ["Collater"]


class Collater(PyGCollater):
    """Makes a batch of a list of graphs, without the attributes in `exclude_keys`.

    For each attribute in `follow_batch` the batch says which graph an element is of.
    """

    def __init__(
        self,
        follow_batch: Sequence[str] | None = None,
        exclude_keys: Sequence[str] | None = None,
    ) -> None:
        super().__init__([], list(follow_batch or []), list(exclude_keys or []))
