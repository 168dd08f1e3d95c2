"""What lets a model mask padding without knowing how its data are padded.

A loader that pads comes with a `Masker`; the model calls it before its loss or its
pooling. A `LayerMasker` does the same around a layer: what it is called with is masked
first. `NoMasker` masks nothing, for data without padding.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import torch

__all__ = [
    "DecoratedLayer",
    "Entries",
    "Layer",
    "LayerMasker",
    "Mask",
    "Masker",
    "NoMasker",
    "PreLayerMasker",
]

Entries = torch.Tensor | tuple[torch.Tensor, ...]
Mask = torch.Tensor | None
Layer = Callable[..., torch.Tensor]
DecoratedLayer = Callable[..., torch.Tensor]


class Masker(abc.ABC):
    """Masks entries that padding, batching or clustering has added."""

    @abc.abstractmethod
    def node_masker(self, node_entries: Entries, mask: Mask = None) -> Entries:
        """Entries of nodes without those that were added."""

    @abc.abstractmethod
    def edge_masker(self, edge_entries: Entries, mask: Mask = None) -> Entries:
        """Entries of edges without those that were added."""

    @abc.abstractmethod
    def graph_masker(self, graph_entries: Entries, mask: Mask = None) -> Entries:
        """Entries of graphs without those that were added."""


class NoMasker(Masker):
    """Leaves all entries as they are."""

    def node_masker(self, node_entries: Entries, mask: Mask = None) -> Entries:
        """The entries."""
        return node_entries

    def edge_masker(self, edge_entries: Entries, mask: Mask = None) -> Entries:
        """The entries."""
        return edge_entries

    def graph_masker(self, graph_entries: Entries, mask: Mask = None) -> Entries:
        """The entries."""
        return graph_entries


class LayerMasker(abc.ABC):
    """Makes layers that mask what they are called with, all of it in one way."""

    def __init__(self, masker: Masker) -> None:
        super().__init__()
        self.masker = masker

    @abc.abstractmethod
    def node_masker(self, layer: Layer) -> DecoratedLayer:
        """A layer on entries of nodes."""

    @abc.abstractmethod
    def edge_masker(self, layer: Layer) -> DecoratedLayer:
        """A layer on entries of edges."""

    @abc.abstractmethod
    def graph_masker(self, layer: Layer) -> DecoratedLayer:
        """A layer on entries of graphs."""


class PreLayerMasker(LayerMasker):
    """Masks before the layer runs."""

    def node_masker(self, layer: Layer) -> DecoratedLayer:
        """The layer on entries of nodes, masked."""
        return _masked_first(layer, self.masker.node_masker)

    def edge_masker(self, layer: Layer) -> DecoratedLayer:
        """The layer on entries of edges, masked."""
        return _masked_first(layer, self.masker.edge_masker)

    def graph_masker(self, layer: Layer) -> DecoratedLayer:
        """The layer on entries of graphs, masked."""
        return _masked_first(layer, self.masker.graph_masker)


def _masked_first(layer: Layer, masker: Callable[..., Any]) -> DecoratedLayer:
    def masked_layer(*entries: torch.Tensor, mask: Mask = None) -> torch.Tensor:
        return layer(*masker(entries, mask=mask))

    return masked_layer
