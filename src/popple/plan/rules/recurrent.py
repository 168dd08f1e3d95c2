"""Recurrent layers: one loop over time, as in PopLibs popnn/Lstm.cpp and Gru.cpp.

Weights lie still as the product of a step wants them; states, gates and what is kept
of them lie alike on all tiles, so that only operands and results of products move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from popple.graph import DType, Signature, TensorType
from popple.plan.broadcast import add_binary, add_unary
from popple.plan.builder import PlanBuilder
from popple.plan.mapping import mapping_like, rescaled
from popple.plan.opplan import OpPlan, PlanRequest, Rule, TileMapping
from popple.plan.rules.matmul import plan_matmul
from popple.program import TileVector

STATE_GRAIN_ELEMENTS = 16
"""Neighbours of a state that stay on one tile: outputs of the widest product vertex."""

_BINARY = ("add", "sub", "mul")


@dataclass(frozen=True)
class _Product:
    """One product of a step: what it reads, and how many units it makes."""

    reads_input: bool
    reads_state: bool
    num_units: int


@dataclass(frozen=True)
class _Cell:
    """Products of a step, and passes over so many units before and after the last.

    `backward` passes give the gradients of all units from those of the output.
    """

    products: tuple[_Product, ...]
    gates: tuple[tuple[str, int], ...]
    output: tuple[tuple[str, int], ...]
    backward: tuple[tuple[str, int], ...]


_GRU_OUTPUT = (("tanh", 1), ("sub", 1), ("mul", 1), ("add", 1))
_GRU_BACKWARD = (("add", 1), ("mul", 3), ("sub", 1), ("mul", 3), ("add", 1))
_CELLS = {
    "lstm": _Cell(
        (_Product(True, True, 4),),
        (),
        (
            *(("add", 4), ("sigmoid", 3), ("tanh", 1)),
            *(("mul", 2), ("add", 1), ("tanh", 1), ("mul", 1)),
        ),
        (("add", 1), ("mul", 2), ("mul", 2), ("add", 1), ("mul", 3), ("mul", 3)),
    ),
    "gru": _Cell(
        (_Product(True, False, 3), _Product(False, True, 3)),
        (),
        (("add", 6), ("sigmoid", 2), ("mul", 1), ("add", 1), *_GRU_OUTPUT),
        _GRU_BACKWARD,
    ),
    "gru_reset_before": _Cell(
        (_Product(True, True, 2), _Product(True, True, 1)),
        (("add", 2), ("sigmoid", 2), ("mul", 1)),
        (("add", 1), *_GRU_OUTPUT),
        _GRU_BACKWARD,
    ),
}


def plan_recurrent(request: PlanRequest) -> OpPlan:
    """For each step of time: products with the weights, gates, the next state."""
    builder = PlanBuilder(request, "recurrent")
    layer = _Layer.of(request, first=0)
    outputs = request.signature.outputs
    is_kept = len(outputs) > 1 + layer.num_states
    wish = layer.weights_wish()
    layer.add_sequence(builder, "input", request.inputs[0])
    layer.add_weights(builder, wish)
    body = PlanBuilder(request, builder.rule)
    _add_forward(body, layer, wish, is_kept)
    builder.repeat("steps", layer.time, body)
    builder.note("steps", layer.time)
    return builder.finish(
        [layer.state_like(tensor) for tensor in outputs], layer.wishes(wish)
    )


def plan_recurrent_grad(request: PlanRequest) -> OpPlan:
    """Back through time: gradients of the gates, products with the weights turned."""
    builder = PlanBuilder(request, "recurrent_grad")
    num_states = request.signature.ints("num_states")[0]
    layer = _Layer.of(request, first=2 + num_states)
    turned = layer.turned_wish()
    builder.rearrange(
        "turned weights",
        layer.weights_type,
        layer.weights_wish(),
        turned,
        in_order=False,
    )
    held_from = builder.position - 1
    body = PlanBuilder(request, builder.rule)
    gradient = _add_backward(body, layer, turned)
    builder.repeat("steps", layer.time, body)
    builder.hold("turned weights", turned.bytes_by_tile, held_from)
    builder.note("steps", layer.time)
    states = [layer.state_like(t) for t in layer.types[: 1 + num_states]]
    weights = [mapping_like(gradient, t) for t in layer.types[1 + num_states :]]
    return builder.finish([*states, *weights])


@dataclass(frozen=True)
class _Layer:
    """Sizes, types and places of one layer; `first` is the position of its input."""

    request: PlanRequest
    cell: _Cell
    num_states: int
    first: int

    @classmethod
    def of(cls, request: PlanRequest, first: int) -> _Layer:
        """The layer that an op runs."""
        signature = request.signature
        (num_states,) = signature.ints("num_states")
        return cls(request, _CELLS[str(signature.attr("cell"))], num_states, first)

    @property
    def types(self) -> tuple[TensorType, ...]:
        """Types of input, states and weights."""
        return self.request.signature.inputs[self.first :]

    @property
    def dtype(self) -> DType:
        """Type of everything in the loop."""
        return self.types[0].dtype

    @property
    def time(self) -> int:
        """Steps."""
        return self.types[0].shape[0]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Batch, width of the input, width of the state."""
        _, batch, width = self.types[0].shape
        return batch, width, self.types[1].shape[-1]

    @property
    def state(self) -> TensorType:
        """One state, or one unit of gates."""
        batch, _, size = self.sizes
        return TensorType(self.dtype, (batch, size))

    @property
    def state_bytes(self) -> TileVector:
        """Where states and gates lie."""
        tiles = self.request.num_tiles
        grain = STATE_GRAIN_ELEMENTS * self.dtype.num_bytes
        return TileVector.spread(self.state.num_bytes, tiles, tiles, grain)

    def units(self, count: int) -> tuple[TensorType, TileMapping]:
        """So many units of gates, each where the state lies."""
        batch, _, size = self.sizes
        tensor = TensorType(self.dtype, (count, batch, size))
        return tensor, TileMapping(self.state_bytes.scaled(count), "states")

    def state_like(self, tensor: TensorType) -> TileMapping:
        """States of several steps, or the input of all, over the tiles of states."""
        size = tensor.dtype.num_bytes
        return TileMapping(rescaled(self.state_bytes, tensor.num_bytes, size), "states")

    def width(self, product: _Product) -> int:
        """Columns that a product reads."""
        _, width, size = self.sizes
        return width * product.reads_input + size * product.reads_state

    def plan_product(
        self,
        product: _Product,
        shape: Callable[[int, int, int], tuple[int, int, int]],
        inputs: tuple[TileMapping | None, TileMapping | None],
    ) -> OpPlan:
        """A product of the step: `shape` orders batch, columns read and units made."""
        batch, _, size = self.sizes
        rows, inner, columns = shape(
            batch, self.width(product), product.num_units * size
        )
        left, right, result = (
            TensorType(self.dtype, dims)
            for dims in ((rows, inner), (inner, columns), (rows, columns))
        )
        signature = Signature("matmul", (left, right), (result,))
        options = self.request.options
        return plan_matmul(PlanRequest(signature, inputs, self.request.target, options))

    @property
    def weights_type(self) -> TensorType:
        """All weights of products as one tensor."""
        _, _, size = self.sizes
        rows = sum(p.num_units * self.width(p) for p in self.cell.products)
        return TensorType(self.dtype, (rows, size))

    def weights_wish(self) -> TileMapping:
        """Where the weights lie: as the largest product wants them."""
        return self._wish(_forward_shape)

    def turned_wish(self) -> TileMapping:
        """Where the turned weights lie that gradients are multiplied with."""
        return self._wish(_backward_shape)

    def _wish(
        self, shape: Callable[[int, int, int], tuple[int, int, int]]
    ) -> TileMapping:
        largest = max(self.cell.products, key=lambda p: p.num_units * self.width(p))
        wish = self.plan_product(largest, shape, (None, None)).inputs[1]
        assert wish is not None
        return mapping_like(wish, self.weights_type)

    def wishes(self, weights: TileMapping) -> tuple[TileMapping | None, ...]:
        """The mapping wanted for each input of the forward op."""
        x, *rest = self.types
        states = [self.state_like(t) for t in rest[: self.num_states]]
        matrices = rest[self.num_states :][:2]
        biases = (None,) * (len(rest) - self.num_states - 2)
        wanted = [mapping_like(weights, matrix) for matrix in matrices]
        return self.state_like(x), *states, *wanted, *biases

    def add_sequence(
        self, builder: PlanBuilder, name: str, given: TileMapping | None
    ) -> None:
        """The input, copied to where every step lies alike."""
        target = self.state_like(self.types[0])
        builder.rearrange(name, self.types[0], given or target, target)

    def add_weights(self, builder: PlanBuilder, wish: TileMapping) -> None:
        """Weights that lie elsewhere are brought to their place before the loop."""
        first = self.first + 1 + self.num_states
        for index in (first, first + 1):
            tensor = self.request.signature.inputs[index]
            given, target = self.request.inputs[index], mapping_like(wish, tensor)
            if given is not None and given != target:
                builder.rearrange("weights", tensor, given, target, in_order=False)

    def operand(self, width: int) -> TileMapping:
        """Rows of a product's left side: states and input where they lie."""
        batch, _, _ = self.sizes
        tensor = TensorType(self.dtype, (batch, width))
        return self.state_like(tensor)


def _forward_shape(batch: int, width: int, made: int) -> tuple[int, int, int]:
    return batch, width, made


def _backward_shape(batch: int, width: int, made: int) -> tuple[int, int, int]:
    return batch, made, width


def _update_shape(batch: int, width: int, made: int) -> tuple[int, int, int]:
    return width, batch, made


def _add_forward(
    body: PlanBuilder, layer: _Layer, weights: TileMapping, is_kept: bool
) -> None:
    """One step; gates that a later product needs come before it."""
    _, width, _ = layer.sizes
    body.local_copy("slice", layer.operand(width).bytes_by_tile, layer.dtype)
    *early, last = layer.cell.products
    for product in early:
        _add_units(body, layer, product)
        _add_passes(body, layer, layer.cell.gates)
    _add_units(body, layer, last)
    _add_passes(body, layer, layer.cell.output)
    if is_kept:
        kept = layer.request.signature.outputs[-1]
        _, mapping = layer.units(kept.shape[-1] // layer.sizes[2])
        body.local_copy("keep", mapping.bytes_by_tile, layer.dtype)
    body.local_copy("store", layer.state_bytes, layer.dtype)


def _add_units(body: PlanBuilder, layer: _Layer, product: _Product) -> None:
    """A product, its result brought to where the state lies."""
    free = layer.plan_product(product, _forward_shape, (None, None))
    operand = layer.operand(layer.width(product))
    plan = layer.plan_product(product, _forward_shape, (operand, free.inputs[1]))
    made = body.embed("product", plan)
    tensor, target = layer.units(product.num_units)
    body.rearrange("units", tensor, made, target, in_order=False)
    body.hold("units", target.bytes_by_tile, body.position - 1)


def _add_passes(
    body: PlanBuilder, layer: _Layer, passes: tuple[tuple[str, int], ...]
) -> None:
    for kind, count in passes:
        tensor, mapping = layer.units(count)
        add = add_binary if kind in _BINARY else add_unary
        add(body, kind, tensor, mapping)


def _add_backward(body: PlanBuilder, layer: _Layer, turned: TileMapping) -> TileMapping:
    """One step back; gives where the largest gradient of weights lies."""
    kept = layer.request.signature.inputs[layer.first - 1]
    _, saved = layer.units(1 + kept.shape[-1] // layer.sizes[2])
    body.local_copy("slices", saved.bytes_by_tile, layer.dtype)
    body.hold("slices", saved.bytes_by_tile, body.position - 1)
    _add_passes(body, layer, layer.cell.backward)
    made: list[TileMapping] = []
    for product in layer.cell.products:
        _, gates = layer.units(product.num_units)
        body.hold("gradients of units", gates.bytes_by_tile, body.position - 1)
        free = layer.plan_product(product, _backward_shape, (None, None))
        inputs = gates, free.inputs[1]
        back = body.embed("back", layer.plan_product(product, _backward_shape, inputs))
        _store_gradient(body, layer, product, back)
        made.append(_add_update(body, layer, product))
    return max(made, key=lambda mapping: mapping.bytes_by_tile.total)


def _store_gradient(
    body: PlanBuilder, layer: _Layer, product: _Product, back: TileMapping
) -> None:
    """Gradients of input and state, to where these lie."""
    batch, _, _ = layer.sizes
    tensor = TensorType(layer.dtype, (batch, layer.width(product)))
    target = layer.state_like(tensor)
    body.rearrange("operand gradient", tensor, back, target, in_order=False)


def _add_update(body: PlanBuilder, layer: _Layer, product: _Product) -> TileMapping:
    """The product that is a step's share of the gradient of weights, added up."""
    operand = layer.operand(layer.width(product))
    _, gates = layer.units(product.num_units)
    plan = layer.plan_product(product, _update_shape, (operand, gates))
    made = body.embed("update", plan)
    size = layer.sizes[2] * product.num_units
    tensor = TensorType(layer.dtype, (layer.width(product), size))
    body.hold("update/product", made.bytes_by_tile, body.position - 1, body.position)
    add_binary(body, "add", tensor, made)
    return made


RULES: dict[str, Rule] = {
    "recurrent": plan_recurrent,
    "recurrent_grad": plan_recurrent_grad,
}
