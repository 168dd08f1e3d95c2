"""`FixedSizeOptions`: the size that every batch of graphs is brought to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from tqdm import tqdm

from ._counts import Count, Counts, Graph, edge_counts, node_counts

__all__ = ["FixedSizeOptions"]

# torch_geometric shows a progress bar from this many graphs on.
_MANY_GRAPHS = 10_000


class FixedSizeOptions:
    """How many nodes, edges and graphs a batch has, and what fills it up.

    `num_nodes` and `num_edges` are numbers or, for graphs with several types of nodes
    or edges, may be dictionaries of numbers; by default there are as many edges as
    connect every node to every other. `num_graphs` counts the graph that holds the
    padding, so it is 2 or more. The pad values fill tensors; `pad_graph_defaults` has
    the values of a padding graph's attributes that are no tensors.
    """

    def __init__(
        self,
        num_nodes: Count,
        num_edges: Count | None = None,
        num_graphs: int = 2,
        node_pad_value: float | None = None,
        edge_pad_value: float | None = None,
        graph_pad_value: float | None = None,
        pad_graph_defaults: dict[str, Any] | None = None,
    ) -> None:
        _check_num_graphs(num_graphs)
        total_nodes = _total(num_nodes)
        self.num_nodes = num_nodes
        self.num_edges = num_edges or total_nodes * (total_nodes - 1)
        self.num_graphs = num_graphs
        self.node_pad_value = 0.0 if node_pad_value is None else node_pad_value
        self.edge_pad_value = 0.0 if edge_pad_value is None else edge_pad_value
        self.graph_pad_value = 0.0 if graph_pad_value is None else graph_pad_value
        self.pad_graph_defaults = pad_graph_defaults or {}

    def is_hetero(self) -> bool:
        """Whether nodes and edges are both given type by type."""
        return isinstance(self.num_nodes, dict) and isinstance(self.num_edges, dict)

    def to_hetero(
        self, node_types: Iterable[Any], edge_types: Iterable[Any]
    ) -> FixedSizeOptions:
        """Give every type the number given for all; changes and returns the options."""
        if not isinstance(self.num_nodes, dict):
            self.num_nodes = dict.fromkeys(node_types, self.num_nodes)
        if not isinstance(self.num_edges, dict):
            self.num_edges = dict.fromkeys(edge_types, self.num_edges)
        return self

    @property
    def total_num_nodes(self) -> int:
        """Nodes of all types."""
        return _total(self.num_nodes)

    @property
    def total_num_edges(self) -> int:
        """Edges of all types."""
        return _total(self.num_edges)

    @classmethod
    def from_dataset(
        cls,
        dataset: Sequence[Graph],
        batch_size: int,
        sample_limit: int | None = None,
        progress_bar: bool | None = None,
    ) -> FixedSizeOptions:
        """Sizes that hold any `batch_size` - 1 graphs of the dataset and one more.

        With a `sample_limit` only that many graphs are looked at.
        """
        _check_num_graphs(batch_size)
        is_many = len(dataset) >= _MANY_GRAPHS if progress_bar is None else progress_bar
        graphs = (dataset[index] for index in range(len(dataset)))
        samples = tqdm(islice(graphs, sample_limit), disable=not is_many)
        largest = _Largest(samples)
        return cls(
            num_nodes=_per_batch(largest.nodes, batch_size),
            num_edges=_per_batch(largest.edges, batch_size),
            num_graphs=batch_size,
        )

    @classmethod
    def from_loader(
        cls, loader: Iterable[Graph], sample_limit: int = 1000
    ) -> FixedSizeOptions:
        """Sizes that hold the batches a loader gave, with one node and edge to spare.

        Batches that are still to come may be larger: a loader that draws at random is
        asked again and again, but only `sample_limit` times.
        """
        largest = _Largest(islice(_endless(loader), sample_limit))
        return cls(
            num_nodes=_plain({kind: n + 1 for kind, n in largest.nodes.items()}),
            num_edges=_plain({kind: n + 1 for kind, n in largest.edges.items()}),
            num_graphs=largest.num_graphs + 1,
        )

    def __repr__(self) -> str:
        sizes = f"num_nodes={self.num_nodes}, num_edges={self.num_edges}"
        values = ", ".join(
            f"{name}={getattr(self, name)}"
            for name in ("node_pad_value", "edge_pad_value", "graph_pad_value")
        )
        return (
            f"{type(self).__name__}({sizes}, num_graphs={self.num_graphs}, {values}, "
            f"pad_graph_defaults={self.pad_graph_defaults}; a node, an edge and a "
            "graph at least are padding)"
        )


def _check_num_graphs(num_graphs: int) -> None:
    if num_graphs < 2:
        raise ValueError(
            f"A batch of fixed size cannot have {num_graphs} graphs: it has at least "
            "2, a real one and the one that holds the padding."
        )


def _total(count: Count) -> int:
    return sum(count.values()) if isinstance(count, dict) else count


def _plain(counts: Counts) -> Count:
    """A plain graph's counts as one number."""
    return counts.get(None, counts)


def _per_batch(counts: Counts, batch_size: int) -> Count:
    return _plain({kind: n * (batch_size - 1) + 1 for kind, n in counts.items()})


def _endless(loader: Iterable[Graph]) -> Iterator[Graph]:
    while True:
        is_empty = True
        for data in loader:
            is_empty = False
            yield data
        if is_empty:
            raise ValueError("The loader gives no batches to find sizes for.")


class _Largest:
    """The largest numbers of nodes, edges and graphs among samples."""

    def __init__(self, samples: Iterable[Graph]) -> None:
        self.nodes: Counts = {}
        self.edges: Counts = {}
        self.num_graphs = 1
        for data in samples:
            _raise_to(self.nodes, node_counts(data))
            _raise_to(self.edges, edge_counts(data))
            self.num_graphs = max(self.num_graphs, getattr(data, "num_graphs", 1))


def _raise_to(largest: Counts, counts: Counts) -> None:
    for kind, count in counts.items():
        largest[kind] = max(largest.get(kind, 0), count)
