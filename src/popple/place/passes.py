"""What a pass is, and how a list of them runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from popple.graph import Graph, verify


class Pass(Protocol):
    """Graph to Graph, valid in, valid out: a frozen dataclass; fields are options."""

    def apply(self, graph: Graph) -> Graph:
        """The changed graph."""
        ...


def run_passes(
    graph: Graph,
    passes: Iterable[Pass],
    after: Callable[[Pass, Graph], None] = lambda done, graph: None,
    *,
    is_verified: bool = True,
) -> Graph:
    """Apply passes in order, verifying what each changed; `after` sees every result.

    Without `is_verified` only what is given is verified. The caller verifies the end.
    """
    verify(graph)
    for each in passes:
        result = each.apply(graph)
        # A pass with nothing to do gives its graph back.
        if is_verified and result is not graph:
            verify(result, graph)
        graph = result
        after(each, graph)
    return graph
