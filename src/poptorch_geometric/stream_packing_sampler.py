"""`StreamPackingSampler`: batches of as many graphs as fit, in the order they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import length_hint

from torch.utils.data.sampler import RandomSampler, Sampler, SequentialSampler

from ._counts import Graph

__all__ = ["StreamPackingSampler"]


@dataclass
class _Batch:
    """The batch that is being filled: its graphs and how much they take."""

    indices: list[int] = field(default_factory=list)
    num_nodes: int = 0
    num_edges: int = 0

    def add(self, index: int, data: Graph) -> None:
        """Take one more graph."""
        self.indices.append(index)
        self.num_nodes += data.num_nodes or 0
        self.num_edges += data.num_edges


class StreamPackingSampler(Sampler[list[int]]):
    """Puts graphs into a batch, one after the other, until the next does not fit.

    A batch has at most `max_num_graphs` graphs, `max_num_nodes` nodes and
    `max_num_edges` edges, by default as many as that many of the largest graphs have;
    of these a node and an edge are kept free for every graph that is missing. Graphs
    come in the order of `base_sampler`. One that does not even fit into an empty batch
    is an error, or is left out with `allow_skip_data`.
    """

    def __init__(
        self,
        data_source: Sequence[Graph],
        max_num_graphs: int,
        max_num_nodes: int | None = None,
        max_num_edges: int | None = None,
        base_sampler: Sampler[int] | Iterable[int] | None = None,
        allow_skip_data: bool | None = False,
    ) -> None:
        super().__init__()
        _check_limit("max_num_graphs", max_num_graphs, 1)
        if max_num_nodes is not None:
            _check_limit("max_num_nodes", max_num_nodes, max_num_graphs)
        if max_num_edges is not None:
            _check_limit("max_num_edges", max_num_edges, max_num_graphs)
        if base_sampler is not None and length_hint(base_sampler, 1) == 0:
            raise ValueError(f"The base sampler {base_sampler} gives no graphs.")
        self.data_source = data_source
        self.max_num_graphs = max_num_graphs
        if max_num_nodes is None or max_num_edges is None:
            most_nodes, most_edges = _largest_sizes(data_source)
            max_num_nodes = max_num_nodes or most_nodes * max_num_graphs
            max_num_edges = max_num_edges or most_edges * max_num_graphs
        self.max_num_nodes: int = max_num_nodes
        self.max_num_edges: int = max_num_edges
        self.base_sampler = (
            SequentialSampler(data_source) if base_sampler is None else base_sampler
        )
        self.allow_skip_data = allow_skip_data
        self._length: int | None = None

    def __iter__(self) -> Iterator[list[int]]:
        batch = _Batch()
        for index in self.base_sampler:
            data = self.data_source[index]
            if batch.indices and not self._has_space(batch, data):
                yield batch.indices
                batch = _Batch()
            if self._has_space(batch, data):
                batch.add(index, data)
            elif not self.allow_skip_data:
                raise RuntimeError(self._complaint(index, data))
        if batch.indices:
            yield batch.indices

    def _has_space(self, batch: _Batch, data: Graph) -> bool:
        graphs_left = self.max_num_graphs - len(batch.indices) - 1
        nodes_left = self.max_num_nodes - batch.num_nodes - (data.num_nodes or 0)
        edges_left = self.max_num_edges - batch.num_edges - data.num_edges
        return 0 <= graphs_left <= min(nodes_left, edges_left)

    def _complaint(self, index: int, data: Graph) -> str:
        return (
            f"Graph {index} with {data.num_nodes} nodes and {data.num_edges} edges "
            f"does not fit into a batch of at most {self.max_num_graphs} graphs, "
            f"{self.max_num_nodes} nodes and {self.max_num_edges} edges, of which a "
            "node and an edge are kept for every other graph. Increase the limits, or "
            "leave such graphs out with allow_skip_data=True."
        )

    def __len__(self) -> int:
        if isinstance(self.base_sampler, RandomSampler):
            raise NotImplementedError(
                "How many batches there will be depends on the order of the graphs, "
                "which is random. Iterate without asking for the length."
            )
        if self._length is None:
            self._length = sum(1 for _ in self)
        return self._length


def _check_limit(name: str, limit: int | None, least: int) -> None:
    if limit is None or limit < least:
        raise ValueError(f"{name} must be at least {least} but is {limit}.")


def _largest_sizes(graphs: Sequence[Graph]) -> tuple[int, int]:
    """The largest numbers of nodes and of edges that graphs have."""
    each = [graphs[index] for index in range(len(graphs))]
    return max(g.num_nodes or 0 for g in each), max(g.num_edges for g in each)
