"""Layers that every front end must capture in the same way.

`graphs/<name>.graph` holds the training step of each as PyTorch is captured. Names and
views are each framework's own (a kernel is [out, in, ...] here and [..., in, out]
there); what the machine computes must be the same, and what it costs nearly so: tensors
that lie on other tiles take other ways.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from popple.graph import Graph, get_op, parse_graph
from popple.pipeline import model_graph
from popple.target import Target, load_system

FOLDER = Path(__file__).parent / "graphs"
NAMES = ("dense", "conv")

# Families whose ops a layer consists of; losses are written differently everywhere.
_FAMILIES = frozenset({"conv", "matmul", "norm", "pool"})


def read_shared(name: str) -> Graph:
    """The stored training step of a layer."""
    return parse_graph((FOLDER / f"{name}.graph").read_text("utf-8"))


@dataclass(frozen=True)
class LayerCost:
    """Kinds of a layer's ops with their flops, how often each, and all their cycles."""

    work: Counter[tuple[str, int]]
    cycles: int


def cost_of(graph: Graph) -> LayerCost:
    """What the ops of the layers cost, those of the loss left out."""
    modelled = model_graph(graph, Target(load_system("bow-pod16"), 1, 1))
    ops = [op for op in graph.ops if get_op(op.kind).family in _FAMILIES]
    plans, by_op = modelled.planned.plans, modelled.simulation.cost_by_op
    return LayerCost(
        Counter((op.kind, plans[op.name].flops) for op in ops),
        sum(by_op[op.name].cycles for op in ops),
    )
