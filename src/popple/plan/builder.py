"""PlanBuilder: collects the steps of one plan and the memory they need, in order.

Rules create one, add compute and exchange phases built from the codelet formulas, and
finish it into an OpPlan. Memory is either held over steps that are known by number, or
begun at the step that fills it and ended at the one that reads it last. A loop holds
the peak of its body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from popple.graph import DType, TensorType
from popple.plan.codelets.rates import multi_codelet
from popple.plan.codelets.shape import copy_cycles, shuffle_cycles
from popple.plan.mapping import elements_by_tile, linear_mapping
from popple.plan.opplan import (
    Compute,
    Loop,
    Move,
    OpPlan,
    PlanRequest,
    PlanStep,
    Temporary,
    TileMapping,
)
from popple.program import (
    Category,
    Codelet,
    TileVector,
    VertexGroup,
    add_all,
    combine,
    maximum_of,
)
from popple.target import Chip
from popple.units import ceil_div

Formula = Callable[[int], int]
"""A number for a tile, from the number of elements on it."""

ORDERED_PIECE_BYTES = 256
"""Bytes of one message between tiles whose elements keep their order: 64 words, what
one send instruction moves."""
SHUFFLED_PIECE_BYTES = 32
"""Bytes of one message when neighbours are separated; assumed."""


def vertices(
    codelet: Codelet,
    sizes: TileVector,
    cycles: Formula,
    flops: Formula | None = None,
    num_edges: int = 2,
) -> VertexGroup:
    """One vertex on every tile that holds something, timed by what it holds."""
    return VertexGroup(
        codelet,
        # A tile without elements has no vertex, so neither code nor state of it.
        sizes.map(lambda size: int(size > 0)),
        sizes.map(lambda size: cycles(size) if size else 0),
        _nonzero(sizes.map(flops)) if flops else None,
        num_edges,
    )


def _nonzero(vector: TileVector) -> TileVector | None:
    return None if vector.is_zero else vector


def pieces(received: TileVector, piece_bytes: int) -> TileVector:
    """Messages that bring the bytes received, each of `piece_bytes`."""
    return received.map(lambda num_bytes: ceil_div(num_bytes, piece_bytes))


class PlanBuilder:
    """Steps and temporaries of a plan under construction."""

    def __init__(self, request: PlanRequest, rule: str) -> None:
        self.request = request
        self.rule = rule
        self.steps: list[PlanStep] = []
        self.flops = 0
        self._temporaries: list[Temporary] = []
        self._begun: dict[str, int] = {}  # positions of temporaries begun by name
        self._choice: list[tuple[str, str]] = []

    @property
    def chip(self) -> Chip:
        """The chip planned for."""
        return self.request.target.chip

    @property
    def num_workers(self) -> int:
        """Hardware threads of a tile."""
        return self.chip.num_workers

    @property
    def position(self) -> int:
        """Index of the next step."""
        return len(self.steps)

    def linear(self, tensor: TensorType) -> TileMapping:
        """The default mapping of a tensor on this chip."""
        return linear_mapping(tensor, self.chip)

    def input_mapping(self, index: int) -> TileMapping:
        """Where an input lies; linear if nobody has laid it out."""
        # Asked before a wish is granted, a rule plans as if the default were.
        given = self.request.inputs[index]
        return given or self.linear(self.request.signature.inputs[index])

    @property
    def temporaries(self) -> tuple[Temporary, ...]:
        """Memory that the steps so far need."""
        return tuple(self._temporaries)

    def part(self) -> PlanBuilder:
        """A builder for steps of the same plan, such as the body of a loop."""
        return PlanBuilder(self.request, self.rule)

    def note(self, key: str, text: object) -> None:
        """Remember a fact about the choice made."""
        self._choice.append((key, str(text)))

    def add(self, step: PlanStep) -> int:
        """Add a step; gives its index."""
        self.steps.append(step)
        return self.position - 1

    def compute(
        self, name: str, *groups: VertexGroup, reads: tuple[int, ...] | None = None
    ) -> int:
        """Add a compute phase, which reads some inputs or all; gives its index."""
        self.flops += sum(_total_flops(group) for group in groups)
        return self.add(Compute(name, groups, reads))

    def elementwise(
        self,
        name: str,
        codelet: Codelet,
        mapping: TileMapping,
        tensor: TensorType,
        cycles: Formula,
        flops_per_element: int = 1,
        num_edges: int = 3,
    ) -> int:
        """Add a pass over all elements of `tensor` where they lie."""
        # Work on integers is no floating-point operation.
        per_element = flops_per_element * tensor.dtype.is_float
        sizes = elements_by_tile(mapping, tensor)
        group = vertices(
            codelet, sizes, cycles, lambda size: per_element * size, num_edges
        )
        return self.compute(name, group)

    def move(
        self,
        name: str,
        sent: TileVector,
        received: TileVector,
        piece_bytes: int = ORDERED_PIECE_BYTES,
        is_shared: bool = False,
    ) -> int:
        """Add an exchange phase; gives its index."""
        # What arrives decides: a receiver needs an instruction for every message.
        messages = pieces(received, piece_bytes)
        return self.add(Move(name, sent, received, messages, is_shared))

    def move_all(
        self,
        name: str,
        parts: Iterable[tuple[TileVector, TileVector]],
        piece_bytes: int = ORDERED_PIECE_BYTES,
    ) -> int:
        """Add one exchange phase for several (sent, received) pairs."""
        pairs = list(parts)
        tiles = self.request.num_tiles
        sent = add_all((sent for sent, _ in pairs), tiles)
        received = add_all((received for _, received in pairs), tiles)
        return self.move(name, sent, received, piece_bytes)

    def rearrange(
        self,
        name: str,
        tensor: TensorType,
        source: TileMapping,
        result: TileMapping,
        in_order: bool | None = None,
    ) -> None:
        """Bring `tensor` from one mapping to another: exchange, then an on-tile copy.

        Elements in one flat order arrive in runs and are copied at the memcpy rate;
        others arrive in small pieces and are put in order one by one.
        """
        ordered = source.layout.is_ordered_as(result.layout)
        ordered = ordered if in_order is None else in_order
        received = result.bytes_by_tile
        # Elements that do not stay neighbours arrive in messages of their own.
        piece = ORDERED_PIECE_BYTES if ordered else SHUFFLED_PIECE_BYTES
        first = self.position
        if source != result:
            self.move(f"{name}/exchange", source.bytes_by_tile, received, piece)
        self.local_copy(f"{name}/copy", received, tensor.dtype, ordered)
        # The copy reads what has arrived, so both are in memory.
        if source != result:
            self.hold(f"{name}/message", received, first, category=Category.MESSAGE)

    def local_copy(
        self, name: str, num_bytes: TileVector, dtype: DType, in_order: bool = True
    ) -> int:
        """Add an on-tile copy; gives its index."""
        kind = "poplar::Memcpy" if in_order else "poplar::Rearrange"
        rate = self.chip.memcpy_bytes_per_cycle
        if in_order:
            group = vertices(
                multi_codelet(kind, dtype, 200),
                num_bytes,
                lambda n: copy_cycles(n, rate),
            )
        else:
            size = dtype.num_bytes
            group = vertices(
                multi_codelet(kind, dtype, 260, 24),
                num_bytes,
                lambda n: shuffle_cycles(n, size),
            )
        return self.compute(name, group)

    def hold(
        self,
        name: str,
        bytes_by_tile: TileVector,
        first: int,
        last: int | None = None,
        category: Category = Category.VARIABLE,
        is_gathered: bool = False,
    ) -> None:
        """Occupy memory from step `first` to `last`, by default the latest step."""
        end = self.position - 1 if last is None else last
        temporary = Temporary(
            name,
            bytes_by_tile,
            first,
            end,
            category=category,
            is_gathered=is_gathered,
        )
        self._temporaries.append(temporary)

    def begin(
        self, name: str, bytes_by_tile: TileVector, is_interleaved: bool = False
    ) -> None:
        """Occupy memory that the latest step fills, until it is ended."""
        self._begin(name, bytes_by_tile, max(0, self.position - 1), is_interleaved)

    def begin_next(self, name: str, bytes_by_tile: TileVector) -> None:
        """Occupy memory that the next step fills, until it is ended."""
        self._begin(name, bytes_by_tile, self.position, is_interleaved=False)

    def end(self, name: str) -> None:
        """The latest step is the last to read it; unknown names are not in memory."""
        if name in self._begun:
            found = self._temporaries[self._begun[name]]
            # Memory that is ended in the step that begins it is live in that step.
            last = max(found.first, self.position - 1)
            self._temporaries[self._begun[name]] = replace(found, last=last)

    def mark_operand(self, name: str, number: int) -> None:
        """It shares no memory element with what is written while it is read."""
        if name in self._begun:
            found = self._temporaries[self._begun[name]]
            self._temporaries[self._begun[name]] = replace(found, operand=number)

    def _begin(
        self, name: str, bytes_by_tile: TileVector, first: int, is_interleaved: bool
    ) -> None:
        if bytes_by_tile.is_zero:
            return
        temporary = Temporary(name, bytes_by_tile, first, first, is_interleaved)
        if name in self._begun:
            # What is rearranged again takes the place of what it was before.
            self._temporaries[self._begun[name]] = temporary
        else:
            self._begun[name] = len(self._temporaries)
            self._temporaries.append(temporary)

    def embed(self, name: str, plan: OpPlan) -> TileMapping:
        """Add the steps of another plan; gives where its first result lies."""
        # Temporaries of the other plan count its steps from 0.
        first = self.position
        self.steps += [_embedded(name, step) for step in plan.steps]
        self._temporaries += [
            replace(
                t, name=f"{name}/{t.name}", first=first + t.first, last=first + t.last
            )
            for t in plan.temporaries
        ]
        self.flops += plan.flops
        return plan.outputs[0]

    def repeat(
        self, name: str, count: int, body: PlanBuilder, interleaved: str = ""
    ) -> None:
        """Add a loop around the steps of `body`, with the memory of its peak.

        What lies in interleaved memory may have a name of its own.
        """
        at = self.position
        # What has a place of its own has a peak of its own, which need not fall
        # together with others.
        for place in ((False, False), (True, False), (False, True)):
            held = [t for t in body.temporaries if _place_of(t) == place]
            if held:
                peak = _peak_bytes(held, body.position)
                own = interleaved or name if place[0] else name
                peaked = Temporary(own, peak, at, at, place[0], is_gathered=place[1])
                self._temporaries.append(peaked)
        self.add(Loop(count, tuple(body.steps)))
        self.flops += count * body.flops

    def finish(
        self,
        outputs: Iterable[TileMapping],
        inputs: tuple[TileMapping | None, ...] = (),
        flops: int | None = None,
        runners_up: tuple[tuple[str, int], ...] = (),
        is_memory_bound: bool = False,
        is_interleaved: bool = False,
    ) -> OpPlan:
        """The plan."""
        return OpPlan(
            self.rule,
            tuple(outputs),
            tuple(self.steps),
            inputs,
            tuple(self._temporaries),
            self.flops if flops is None else flops,
            tuple(self._choice),
            runners_up,
            is_memory_bound,
            is_interleaved,
        )


def _place_of(temporary: Temporary) -> tuple[bool, bool]:
    """Whether it is interleaved, and whether copies gather it."""
    return temporary.is_interleaved, temporary.is_gathered


def _peak_bytes(temporaries: Sequence[Temporary], num_steps: int) -> TileVector:
    """Tile by tile the most that is live at one of the steps."""
    num_tiles = len(temporaries[0].bytes_by_tile)
    # Step by step: what lives at different steps may share memory.
    live = [
        [t.bytes_by_tile for t in temporaries if t.first <= step <= t.last]
        for step in range(num_steps)
    ]
    return maximum_of([add_all(vectors, num_tiles) for vectors in live])


def _embedded(name: str, step: PlanStep) -> PlanStep:
    """A step of another op's plan: which inputs it reads is not told here."""
    if isinstance(step, Compute | Move):
        return replace(step, name=f"{name}/{step.name}", reads=None)
    return step


def _total_flops(group: VertexGroup) -> int:
    if group.flops_by_tile is None:
        return 0
    product = combine(
        lambda values: values[0] * values[1],
        [group.count_by_tile, group.flops_by_tile],
    )
    return product.total
