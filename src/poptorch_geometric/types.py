"""Graphs as arguments and results of models: `PyGArgsParser`.

A graph is taken apart into its tensors and put together again around others, of the
same number and order. Everything in it that is no tensor stays as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.data.data import BaseData
from torch_geometric.data.storage import BaseStorage

from poptorch import ICustomArgParser, registerCustomArgParser

from ._counts import edge_counts, node_counts
from .common import DataBatch, HeteroDataBatch

__all__ = ["PyGArgsParser", "registerCustomArgParsers"]


class PyGArgsParser(ICustomArgParser):
    """Takes graphs and batches of graphs apart and puts them together.

    The tensors of a plain graph come in the order of their names, those of a graph
    with several types store by store.
    """

    def yieldTensors(self, struct: BaseData) -> Iterator[torch.Tensor]:
        """Every tensor of a graph."""
        for store, key in _tensor_places(struct):
            yield store[key]

    def reconstruct(
        self, original_structure: BaseData, tensor_iterator: Iterator[torch.Tensor]
    ) -> BaseData:
        """A graph like the original around other tensors.

        A batch whose tensors are those of several batches, one behind the other,
        keeps the numbers of nodes, edges and graphs that one of them had.
        """
        graph = copy.copy(original_structure)
        for store, key in list(_tensor_places(graph)):
            store[key] = next(tensor_iterator)
        if isinstance(graph, Batch):
            _forget_slices(graph)
            _keep_counts(graph, original_structure)
        return graph


def _tensor_places(graph: Any) -> Iterator[tuple[BaseStorage, str]]:
    if not isinstance(graph, BaseData):
        raise ValueError(
            f"PyGArgsParser takes graphs of torch_geometric, not {type(graph)}."
        )
    for store in graph.stores:
        keys = list(store.keys())
        for key in keys if isinstance(graph, HeteroData) else sorted(keys):
            if isinstance(store[key], torch.Tensor):
                yield store, key


def _forget_slices(batch: Any) -> None:
    """Where single graphs lie is not known of other tensors."""
    for notes in ("_slice_dict", "_inc_dict"):
        batch.stores[0].__dict__.pop(notes, None)


def _keep_counts(batch: Any, original: Any) -> None:
    for stores, counts, key in (
        (batch.node_stores, node_counts, "num_nodes"),
        (batch.edge_stores, edge_counts, "num_edges"),
    ):
        before, after = counts(original), counts(batch)
        for store in stores:
            if after[store._key] > before[store._key]:
                store[key] = before[store._key]


def registerCustomArgParsers() -> None:
    """Let models take and return graphs."""
    for kind in (BaseData, Data, HeteroData, DataBatch, HeteroDataBatch):
        registerCustomArgParser(kind, PyGArgsParser())


registerCustomArgParsers()
