"""Loops of a traced step, made ready to run: their bodies as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch.fx import Graph, GraphModule

from popple.capture.torch import TracedLoop

Function = Callable[..., Sequence[Any]]


def prepare_loops(
    graph: Graph, make_function: Callable[[GraphModule], Function]
) -> None:
    """Let the loops of a graph run their bodies in the form that is made of them."""
    for node in graph.nodes:
        loop = node.target
        if isinstance(loop, TracedLoop):
            node.target = PreparedLoop(loop, make_function(loop.body))


@dataclass(frozen=True, eq=False)
class PreparedLoop:
    """A loop whose body is a function."""

    loop: TracedLoop
    body: Function

    __name__ = "loop"  # FX calls the node so

    def __call__(self, *inputs: Any) -> list[Any]:
        """Run the loop."""
        return self.loop.run(self.body, inputs)
