"""Run the whole graph several times before returning to the host."""

from __future__ import annotations

from dataclasses import dataclass, replace

from popple.graph import Graph


@dataclass(frozen=True)
class RepeatOnDevice:
    """`count` iterations per run, each on `micro_batch` samples at a time."""

    count: int
    micro_batch: int = 1

    def apply(self, graph: Graph) -> Graph:
        """The graph, repeated."""
        execution = replace(
            graph.execution, device_iterations=self.count, micro_batch=self.micro_batch
        )
        return replace(graph, execution=execution)
