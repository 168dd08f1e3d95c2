"""Mark the matrix products of linear layers, so that each layer is planned as one.

The products of a layer are the forward one, the one for the gradient of its input and
the one for the gradient of its weights. They are found by what they read: a gradient
reads the weights, or the input, the other way round. PopART names the passes to PopLibs
for every product of a training program (willow/src/popx/op/matmulx.cpp); in inference
there is nothing to plan together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from popple.graph import Graph, LinearPass, LinearProduct, Op, Phase

_Shape = tuple[int, ...]


@dataclass(frozen=True)
class MarkLinearLayers:
    """Notes on the products of linear layers which product of its layer each is.

    Runs last: recomputation and copies between chips decide what a product reads.
    """

    def apply(self, graph: Graph) -> Graph:
        """The graph with `Notes.linear` on every product of a linear layer."""
        products = [op for op in graph.ops if op.kind == "matmul"]
        if not any(op.phase is Phase.BACKWARD for op in products):
            return graph
        search = _Search(graph)
        for op in products:
            search.add(op)
        return graph.with_ops(
            replace(op, notes=replace(op.notes, linear=found))
            if (found := search.found.get(op.name))
            else op
            for op in graph.ops
        )


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
"""An operand of a product, and the shape of the other one"""


class _Search:
    """Forward products by their operands, and the products of layers found so far."""

    def __init__(self, graph: Graph) -> None:
        self.found: dict[str, LinearProduct] = {}
        self._graph = graph
        # What may lie between a product and the matrix that it reads. A transposed one
        # is how a gradient differs from the forward product.
        views = [op for op in graph.ops if op.kind in ("permute", "reshape")]
        self._views = {op.outputs[0]: op for op in views}
        self._by_input: dict[_Key, str] = {}
        self._by_weights: dict[_Key, str] = {}

    def add(self, op: Op) -> None:
        """Look at one product, after those whose results it depends on."""
        left, right = map(self._read, op.inputs)
        if op.phase is Phase.FORWARD:
            self._by_weights.setdefault((right, left.shape), op.name)
            self._by_input.setdefault((left, right.shape), op.name)
        elif (pair := self._find_forward(left, right)) is not None:
            forward, product = pair
            self.found[forward] = LinearProduct(LinearPass.FORWARD)
            self.found[op.name] = product
            if product.part is LinearPass.FORWARD:
                # The gradient of the weights may read the recomputed input.
                self._by_input.setdefault((left, right.shape), op.name)

    def _find_forward(
        self, left: _Matrix, right: _Matrix
    ) -> tuple[str, LinearProduct] | None:
        """The forward product that a backward one belongs to, and how it does."""
        *groups, rows, _ = left.shape
        columns = right.shape[-1]
        shape = (*groups, rows, columns)
        if forward := self._by_input.get((left.turned(), shape)):
            return forward, LinearProduct(LinearPass.WEIGHT_GRAD)
        if forward := self._by_input.get((right, (*groups, columns, rows))):
            return forward, LinearProduct(LinearPass.WEIGHT_GRAD, is_turned=True)
        if forward := self._by_weights.get((right.turned(), shape)):
            return forward, LinearProduct(LinearPass.INPUT_GRAD)
        if forward := self._by_weights.get((right, left.shape)):
            # Computed once more, from an input that is recomputed.
            return forward, LinearProduct(LinearPass.FORWARD)
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
    return order[-2] > order[-1]
