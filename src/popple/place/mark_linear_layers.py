"""Mark the matrix products of linear layers, so that each layer is planned as one.

The products of a layer are the forward one, the one for the gradient of its input and
the one for the gradient of its weights. They are found by what they read: a gradient
reads the weights, or the input, the other way round. PopART names the passes to PopLibs
for every product of a training program (willow/src/popx/op/matmulx.cpp); in inference
there is nothing to plan together. A layer's forward and backward work may stand in
different functions: the first run of each shows how their arguments belong together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from popple.graph import (
    Graph,
    LinearPass,
    LinearProduct,
    Notes,
    Op,
    Phase,
    SerialSplit,
    SplitDimension,
    arguments_of,
    functions_of,
)
from popple.quick import replaced

_Shape = tuple[int, ...]
_Place = tuple[str, str]
"""A function, or an empty name for the main graph, and a value or an op of it"""


@dataclass(frozen=True)
class MarkLinearLayers:
    """Notes on the products of linear layers which product of its layer each is.

    Runs last: recomputation and copies between chips decide what a product reads. Not
    `planned_together`, products only get the serial splits of their layers.
    """

    planned_together: bool = True

    def apply(self, graph: Graph) -> Graph:
        """The graph with `Notes.linear` on every product of a linear layer."""
        bodies = (graph, *graph.functions.values())
        products = [op for body in bodies for op in body.ops if op.kind == "matmul"]
        if not any(op.phase is Phase.BACKWARD for op in products):
            return graph
        search = _Search(self.planned_together)
        search.walk("", graph, {})
        return _noted(graph, "", search).with_bodies(
            lambda body: _noted(body, body.name, search)
        )


def _noted(graph: Graph, scope: str, search: _Search) -> Graph:
    return graph.with_ops(
        replaced(op, notes=search.notes_on(op, (scope, op.name), product))
        if (product := search.found.get((scope, op.name)))
        else op
        for op in graph.ops
    )


def _split_of(split: SerialSplit, product: LinearProduct) -> SerialSplit:
    """How a gradient is cut where the forward product is: along the same dimension."""
    rows, inner, columns = SplitDimension
    # Rows, inner dimension and columns of the forward product, as each gradient has
    # them; one that is computed the other way round has rows for columns.
    places = {
        LinearPass.FORWARD: (rows, inner, columns),
        LinearPass.INPUT_GRAD: (rows, columns, inner),
        LinearPass.WEIGHT_GRAD: (inner, rows, columns),
    }[product.part]
    found = places[(rows, inner, columns).index(split.dimension)]
    if product.is_turned and found is not inner:
        found = rows if found is columns else columns
    return SerialSplit(found, split.factor)


@dataclass(frozen=True)
class _Matrix:
    """A value as a product reads it: its memory, shape and way round."""

    root: _Place
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

    def __init__(self, planned_together: bool) -> None:
        self._planned_together = planned_together
        self.found: dict[_Place, LinearProduct] = {}
        self._splits: dict[_Place, SerialSplit] = {}
        self._seen: set[str] = set()
        self._by_input: dict[_Key, _Place] = {}
        self._by_weights: dict[_Key, _Place] = {}

    def notes_on(self, op: Op, place: _Place, product: LinearProduct) -> Notes:
        """What is noted on an op that is a product of a layer."""
        linear = product if self._planned_together else None
        split = self._splits.get(place)
        return replace(op.notes, linear=linear, serial_split=split)

    def walk(
        self, scope: str, graph: Graph, given: Mapping[str, _Place]
    ) -> tuple[_Place, ...]:
        """Look at all products of a graph in order, functions where they are first run.

        `given` are the places that arguments stand for. Returns those of the results.
        """
        reader = _Reader(scope, graph, dict(given))
        for op in graph.ops:
            if op.kind == "matmul":
                self._add((scope, op.name), op, *map(reader.matrix, op.inputs))
            for name in functions_of(op):
                self._enter(name, op, graph, reader)
        return tuple(map(reader.place, graph.outputs))

    def _enter(self, name: str, op: Op, graph: Graph, reader: _Reader) -> None:
        if name in self._seen:
            return
        self._seen.add(name)
        body = graph.body(name)
        places = map(reader.place, arguments_of(op))
        made = self.walk(name, body, dict(zip(body.arguments, places, strict=True)))
        # What the function made is known by that place wherever its result is read.
        reader.known.update(zip(op.outputs, made, strict=False))

    def _add(self, place: _Place, op: Op, left: _Matrix, right: _Matrix) -> None:
        """Look at one product, after those whose results it depends on."""
        if op.phase is Phase.FORWARD:
            if (split := op.notes.serial_split) is not None:
                self._splits[place] = split
            self._by_weights.setdefault((right, left.shape), place)
            self._by_input.setdefault((left, right.shape), place)
        elif (pair := self._find_forward(left, right)) is not None:
            forward, product = pair
            self.found[forward] = LinearProduct(LinearPass.FORWARD)
            self.found[place] = product
            if (split := self._splits.get(forward)) is not None:
                self._splits[place] = _split_of(split, product)
            if product.part is LinearPass.FORWARD:
                # The gradient of the weights may read the recomputed input.
                self._by_input.setdefault((left, right.shape), place)

    def _find_forward(
        self, left: _Matrix, right: _Matrix
    ) -> tuple[_Place, LinearProduct] | None:
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


class _Reader:
    """Values of one graph as products read them; `known` are those from elsewhere."""

    def __init__(self, scope: str, graph: Graph, known: dict[str, _Place]) -> None:
        self.known = known
        self._scope = scope
        self._graph = graph
        # What may lie between a product and the matrix that it reads. A transposed one
        # is how a gradient differs from the forward product.
        views = [op for op in graph.ops if op.kind in ("permute", "reshape")]
        self._views = {op.outputs[0]: op for op in views}

    def place(self, name: str) -> _Place:
        """The memory of a value: that of the argument or result it stands for."""
        root = self._graph.root(name)
        return self.known.get(root, (self._scope, root))

    def matrix(self, name: str) -> _Matrix:
        """A value as an operand, views followed back."""
        shape, is_turned = self._graph.type_of(name).shape, False
        place = self.place(name)
        while (view := self._views.get(name)) is not None:
            is_turned ^= view.kind == "permute" and _swaps_last(view)
            name = view.inputs[0]
        return _Matrix(place, shape, is_turned)


def _swaps_last(view: Op) -> bool:
    """Whether a permutation changes the order of the last two dimensions."""
    order = view.attrs.get("order")
    if not isinstance(order, tuple) or len(order) < 2:
        return True
    return int(order[-2]) > int(order[-1])
