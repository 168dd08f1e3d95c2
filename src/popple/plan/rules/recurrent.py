"""Recurrent layers: one loop over time, as in PopLibs popnn/Lstm.cpp and Gru.cpp.

Weights lie still as the product of a step wants them; states, gates and what is kept
of them lie alike on all tiles, so that only operands and results of products move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from popple.graph import DType, Signature, TensorType
from popple.plan.blocks.broadcast import add_binary, add_unary
from popple.plan.builder import PlanBuilder
from popple.plan.layout import Layout, Named
from popple.plan.mapping import mapping_like, rescaled
from popple.plan.opplan import (
    Move,
    OpPlan,
    PlanRequest,
    PlanStep,
    Rule,
    TileMapping,
)
from popple.plan.rules.matmul import plan_matmul
from popple.program import TileVector

STATE_GRAIN_ELEMENTS = 16
"""Neighbours of a state that stay on one tile: outputs of the widest product vertex."""

_WEIGHTS_ONLY = (1,)  # the right operand of a product
_BINARY = ("add", "sub", "mul")
_STATES = Layout(Named("states"))


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
    body = builder.part()
    _add_forward(body, layer, wish, is_kept)
    builder.repeat("steps", layer.time, body)
    builder.note("steps", layer.time)
    return builder.finish(
        [layer.state_like(tensor) for tensor in outputs], layer.wishes(wish)
    )


def plan_recurrent_grad(request: PlanRequest) -> OpPlan:
    """Back through time: gradients of gates, input and state, then of the weights.

    Weights turned and gradients of all gates need not be there together: those of the
    weights have a loop of their own unless the gates of all steps take more memory.
    """
    builder = PlanBuilder(request, "recurrent_grad")
    num_states = request.signature.integer("num_states")
    layer = _Layer.of(request, first=2 + num_states)
    turned, source = layer.turned_wish(), layer.weights_wish()
    kind = layer.weights_type
    builder.rearrange("turned weights", kind, source, turned, in_order=False)
    back, update = builder.part(), builder.part()
    _add_backward(back, layer)
    gradients = layer.gate_gradients()
    is_at_once = kind.num_bytes <= gradients.total
    if not is_at_once:
        back.local_copy(
            "keep", layer.units(layer.num_units)[1].bytes_by_tile, layer.dtype
        )
    target = _add_updates(back if is_at_once else update, layer)
    first = builder.position
    builder.repeat("steps", layer.time, back)
    builder.hold("turned weights", turned.bytes_by_tile, first - 1)
    if not is_at_once:
        builder.repeat("updates", layer.time, update)
        builder.hold("gradients of gates", gradients, first)
    builder.note("steps", layer.time)
    states = [layer.state_like(t) for t in layer.types[: 1 + num_states]]
    weights = [mapping_like(target, t) for t in layer.types[1 + num_states :]]
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
        num_states = signature.integer("num_states")
        return cls(request, _CELLS[signature.text("cell")], num_states, first)

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
        return tensor, TileMapping(self.state_bytes.scaled(count), _STATES)

    @property
    def num_units(self) -> int:
        """Units that the products of a step make."""
        return sum(product.num_units for product in self.cell.products)

    def gate_gradients(self) -> TileVector:
        """Gradients of the gates of all steps."""
        return self.state_bytes.scaled(self.num_units * self.time)

    def state_like(self, tensor: TensorType) -> TileMapping:
        """States of several steps, or the input of all, over the tiles of states."""
        size = tensor.dtype.num_bytes
        return TileMapping(rescaled(self.state_bytes, tensor.num_bytes, size), _STATES)

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
        # Cells with several products have one tensor of weights, which lies in one way.
        largest = max(self.cell.products, key=lambda p: p.num_units * self.width(p))
        wish = self.plan_product(largest, shape, (None, None)).inputs[1]
        assert wish is not None
        return mapping_like(wish, self.weights_type)

    def wishes(self, weights: TileMapping) -> tuple[TileMapping | None, ...]:
        """The mapping wanted for each input of the forward op."""
        x, *rest = self.types
        states = [self.state_like(t) for t in rest[: self.num_states]]
        wanted = [
            mapping_like(weights, tensor) if _is_matrix(tensor) else None
            for tensor in rest[self.num_states :]
        ]
        return self.state_like(x), *states, *wanted

    def add_sequence(
        self, builder: PlanBuilder, name: str, given: TileMapping | None
    ) -> None:
        """The input, copied to where every step lies alike."""
        target = self.state_like(self.types[0])
        builder.rearrange(name, self.types[0], given or target, target)

    def add_weights(self, builder: PlanBuilder, wish: TileMapping) -> None:
        """Weights that lie elsewhere are brought to their place before the loop."""
        first = self.first + 1 + self.num_states
        types = self.request.signature.inputs[first:]
        for tensor, given in zip(types, self.request.inputs[first:], strict=True):
            target = mapping_like(wish, tensor)
            if _is_matrix(tensor) and given is not None and given != target:
                builder.rearrange("weights", tensor, given, target, in_order=False)

    def operand(self, width: int) -> TileMapping:
        """Rows of a product's left side: states and input where they lie."""
        batch, _, _ = self.sizes
        tensor = TensorType(self.dtype, (batch, width))
        return self.state_like(tensor)


def _is_matrix(weight: TensorType) -> bool:
    """Whether products read a weight; biases are rows."""
    return len(weight.shape) > 1


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
    # First as the product would like it: that tells where its weights lie.
    free = layer.plan_product(product, _forward_shape, (None, None))
    operand = layer.operand(layer.width(product))
    plan = layer.plan_product(product, _forward_shape, (operand, free.inputs[1]))
    made = body.embed("product", _with_weights_in_place(plan))
    tensor, target = layer.units(product.num_units)
    body.rearrange("units", tensor, made, target, in_order=False)
    body.hold("units", target.bytes_by_tile, body.position - 1)


def _with_weights_in_place(plan: OpPlan) -> OpPlan:
    """The plan of a product whose weights stay: only what others send takes memory."""
    moves = {
        step.name.removeprefix("exchange "): step
        for step in plan.steps
        if isinstance(step, Move) and step.reads == _WEIGHTS_ONLY
    }
    temporaries = [
        replace(t, bytes_by_tile=moves[t.name].received_by_tile)
        if t.name in moves
        else t
        for t in plan.temporaries
    ]
    steps = [_sent_once(s) if s in moves.values() else s for s in plan.steps]
    return replace(plan, steps=tuple(steps), temporaries=tuple(temporaries))


def _sent_once(step: PlanStep) -> PlanStep:
    """No more is sent than is received: the rest is where it is used."""
    if not isinstance(step, Move):
        return step
    received = step.received_by_tile
    is_more = step.sent_by_tile.total > received.total
    return replace(step, sent_by_tile=received) if is_more else step


def _add_passes(
    body: PlanBuilder, layer: _Layer, passes: tuple[tuple[str, int], ...]
) -> None:
    for kind, count in passes:
        tensor, mapping = layer.units(count)
        add = add_binary if kind in _BINARY else add_unary
        add(body, kind, tensor, mapping)


def _add_backward(body: PlanBuilder, layer: _Layer) -> None:
    """One step back: gradients of gates, then of what they were made of."""
    kept = layer.request.signature.inputs[layer.first - 1]
    _, saved = layer.units(1 + kept.shape[-1] // layer.sizes[2])
    body.local_copy("slices", saved.bytes_by_tile, layer.dtype)
    body.hold("slices", saved.bytes_by_tile, body.position - 1)
    _add_passes(body, layer, layer.cell.backward)
    for product in layer.cell.products:
        _, gates = layer.units(product.num_units)
        body.hold("gradients of units", gates.bytes_by_tile, body.position - 1)
        free = layer.plan_product(product, _backward_shape, (None, None))
        inputs = gates, free.inputs[1]
        plan = layer.plan_product(product, _backward_shape, inputs)
        back = body.embed("back", _with_weights_in_place(plan))
        _store_gradient(body, layer, product, back)


def _store_gradient(
    body: PlanBuilder, layer: _Layer, product: _Product, back: TileMapping
) -> None:
    """Gradients of input and state, to where these lie."""
    batch, _, _ = layer.sizes
    tensor = TensorType(layer.dtype, (batch, layer.width(product)))
    target = layer.state_like(tensor)
    body.rearrange("operand gradient", tensor, back, target, in_order=False)


def _add_updates(body: PlanBuilder, layer: _Layer) -> TileMapping:
    """A step's share of all weights; gives where the largest gradient lies."""
    made = [_add_update(body, layer, product) for product in layer.cell.products]
    return max(made, key=lambda mapping: mapping.bytes_by_tile.total)


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
