"""Linear layers of a training graph: their products told to be planned together.

In: a graph. Out: the graph in which the matrix products of a layer, forward, for the
gradient of the input and for that of the weights, say which of them they are. They are
found by what they read: a gradient reads the weights, or the input, the other way
round. PopART names the passes to PopLibs for every product of a training program
(willow/src/popx/op/matmulx.cpp); in inference there is nothing to plan together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from popple.graph import Attr, Graph, Op, Phase
from popple.plan.conv import LinearPass

PASS = "linear_pass"
# On the gradient of weights that has the outputs of the layer as its rows.
TURNED = "linear_turned"

_Shape = tuple[int, ...]


@dataclass(frozen=True)
class _Matrix:
    """A value as a product reads it: its memory, shape and way round."""

    root: str
    shape: _Shape
    is_turned: bool

    def turned(self) -> _Matrix:
        """The same memory with rows for columns."""
        *groups, rows, columns = self.shape
        return _Matrix(self.root, (*groups, columns, rows), not self.is_turned)


_Key = tuple[_Matrix, _Shape]
_Found = tuple[str, dict[str, Attr]]
"""The forward product that an op belongs to, and the attributes that say how"""


def mark_linear_layers(graph: Graph) -> Graph:
    """The graph with the pass of every product of a linear layer."""
    products = [op for op in graph.ops if op.kind == "matmul"]
    if not any(op.phase is Phase.BACKWARD for op in products):
        return graph
    search = _Search(graph)
    for op in products:
        search.add(op)
    return graph.with_ops(
        replace(op, attrs={**op.attrs, **attrs})
        if (attrs := search.attrs.get(op.name))
        else op
        for op in graph.ops
    )


class _Search:
    """Forward products by their operands, and what was found so far."""

    def __init__(self, graph: Graph) -> None:
        self.attrs: dict[str, dict[str, Attr]] = {}
        self._graph = graph
        self._views = {op.outputs[0]: op for op in graph.ops if op.kind == "permute"}
        self._views |= {op.outputs[0]: op for op in graph.ops if op.kind == "reshape"}
        self._by_input: dict[_Key, str] = {}
        self._by_weights: dict[_Key, str] = {}

    def add(self, op: Op) -> None:
        """Note one product, those that it depends on before it."""
        left, right = map(self._read, op.inputs)
        if op.phase is Phase.FORWARD:
            self._by_weights.setdefault((right, left.shape), op.name)
            self._by_input.setdefault((left, right.shape), op.name)
        elif (found := self._find(left, right)) is not None:
            forward, attrs = found
            self.attrs[forward] = {PASS: LinearPass.FORWARD.name}
            self.attrs[op.name] = attrs
            if attrs[PASS] == LinearPass.FORWARD.name:
                self._by_input.setdefault((left, right.shape), op.name)

    def _find(self, left: _Matrix, right: _Matrix) -> _Found | None:
        *groups, rows, _ = left.shape
        columns = right.shape[-1]
        shape = (*groups, rows, columns)
        if forward := self._by_input.get((left.turned(), shape)):
            return forward, {PASS: LinearPass.WEIGHT_GRAD.name}
        if forward := self._by_input.get((right, (*groups, columns, rows))):
            return forward, {PASS: LinearPass.WEIGHT_GRAD.name, TURNED: True}
        if forward := self._by_weights.get((right.turned(), shape)):
            return forward, {PASS: LinearPass.INPUT_GRAD.name}
        if forward := self._by_weights.get((right, left.shape)):
            # Computed once more, from an input that is recomputed.
            return forward, {PASS: LinearPass.FORWARD.name}
        return None

    def _read(self, name: str) -> _Matrix:
        shape, is_turned = self._graph.type_of(name).shape, False
        root = self._graph.root(name)
        while (view := self._views.get(name)) is not None:
            is_turned ^= view.kind == "permute" and _swaps_last(view)
            name = view.inputs[0]
        return _Matrix(root, shape, is_turned)


def _swaps_last(view: Op) -> bool:
    """Whether a permutation changes the order of the last two dimensions."""
    order = view.attrs.get("order")
    if not isinstance(order, tuple) or len(order) < 2:
        return True
    return int(order[-2]) > int(order[-1])
