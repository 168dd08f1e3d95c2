"""Outline repeated layers: equal stretches of ops become calls of one function.

In: a graph whose order is final. Out: the same work, with a function for what repeats.
Ops are compared by what they do and by how far back their operands were made, so that
two stretches are equal only if data flow through them alike; weights and activations
from outside are arguments. Layers follow each other, so repetition is looked for at
fixed distances: the distance at which most ops agree is the length of a layer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from popple.graph import Graph, Op, Phase, Role, Value, functions_of, get_op

_Token = Hashable
"""Equal for ops that do the same with operands made at the same distances"""

_MAX_DISTANCE = 4096


@dataclass(frozen=True)
class Outline:
    """Makes functions of stretches of at least `min_ops` ops that repeat.

    A function has memory of its own, and its code exists once. Ops that overwrite
    memory from outside, and copies between chips, stay where they are.
    """

    min_ops: int = 8

    def apply(self, graph: Graph) -> Graph:
        """The graph with calls in place of what repeats."""
        outliner = _Outliner(graph)
        for part in _parts(graph):
            outliner.add(part, self.min_ops)
        return outliner.finish()


def _parts(graph: Graph) -> Iterator[list[Op]]:
    """Runs of ops that one function can take in: of one chip, stage and phase."""

    def key(op: Op) -> tuple[object, ...]:
        is_fixed = op.phase is Phase.UPDATE or not _can_move(graph, op)
        return (op.chip, op.stage, op.phase, is_fixed)

    for _, run in groupby(graph.ops, key):
        yield list(run)


def _can_move(graph: Graph, op: Op) -> bool:
    """Whether an op only computes results of its own, on its own chip."""
    if get_op(op.kind).family in ("copy", "collective") or functions_of(op):
        return False
    owners = (graph.root(name) for name in op.outputs)
    is_view = get_op(op.kind).is_view
    return is_view or all(owner in op.outputs for owner in owners)


class _Outliner:
    """The graph being rewritten, part by part."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._ops: list[Op] = []
        self._values = dict(graph.values)
        self._functions = dict(graph.functions)
        self._named: dict[_Shape, str] = {}
        self._readers = _LastReaders(graph)

    def add(self, part: list[Op], min_ops: int) -> None:
        """Append the ops of a part, repeated stretches as calls."""
        tokens = _tokens(self._graph, part)
        begin = 0
        for first, length, count in _find_repeats(tokens, min_ops):
            if first < begin:
                continue
            stretches = [
                part[first + i * length : first + (i + 1) * length]
                for i in range(count)
            ]
            shapes = [self._shape_of(stretch) for stretch in stretches]
            # Results that only some of them are asked for make other functions.
            (shape, _), *_ = Counter(shapes).most_common(1)
            if shapes.count(shape) < 2:
                continue
            self._ops += part[begin:first]
            for stretch, found in zip(stretches, shapes, strict=True):
                self._ops += [self._call(stretch)] if found == shape else stretch
            begin = first + count * length
        self._ops += part[begin:]

    def finish(self) -> Graph:
        """The rewritten graph."""
        return replace(
            self._graph,
            ops=tuple(self._ops),
            values=self._values,
            functions=self._functions,
        )

    def _shape_of(self, stretch: Sequence[Op]) -> _Shape:
        """Equal for stretches that one function can stand for."""
        inputs, outputs = self._boundary(stretch)
        places = _places_of(stretch)
        numbers = {name: index for index, name in enumerate(inputs)}
        reads = tuple(
            tuple(
                places.get(name, ("given", numbers.get(name, -1))) for name in op.inputs
            )
            for op in stretch
        )
        kinds = tuple(self._graph.signature(op) for op in stretch)
        return kinds, reads, tuple(places[name] for name in outputs)

    def _boundary(self, stretch: Sequence[Op]) -> tuple[list[str], list[str]]:
        """Values that a stretch reads from outside, and those that are read after it.

        A view of something from outside is taken inside; what it looks at is given.
        """
        made = {name for op in stretch for name in op.outputs}
        reads = (name for op in stretch for name in op.inputs)
        inputs = list(dict.fromkeys(name for name in reads if name not in made))
        last = stretch[-1].name
        outputs = [
            name
            for op in stretch
            for name in op.outputs
            if self._readers.is_read_after(name, last)
        ]
        return inputs, outputs

    def _call(self, stretch: Sequence[Op]) -> Op:
        inputs, outputs = self._boundary(stretch)
        shape = self._shape_of(stretch)
        if shape not in self._named:
            self._named[shape] = self._define(stretch, inputs, outputs)
        first = stretch[0]
        for name in outputs:
            self._values[name] = replace(self._values[name], storage="")
        return replace(
            first.beside(
                f"{first.name}.call",
                "call",
                tuple(inputs),
                tuple(outputs),
                {"function": self._named[shape]},
            ),
            module=_common_module(stretch),
        )

    def _define(
        self, stretch: Sequence[Op], inputs: Sequence[str], outputs: Sequence[str]
    ) -> str:
        """A function that does what the stretch does."""
        name = f"outlined{len(self._functions)}"
        values = {
            given: Value(given, self._graph.type_of(given), Role.ARGUMENT)
            for given in inputs
        }
        for op in stretch:
            values |= {made: self._graph.values[made] for made in op.outputs}
        for made, value in values.items():
            if value.storage and value.storage not in values:
                # Its owner is outside: the argument that it views owns it here.
                owner = next(i for i in inputs if self._shares(i, value.storage))
                values[made] = replace(value, storage=owner)
        ops = tuple(op.with_place(0, 0) for op in stretch)
        self._functions[name] = Graph(name, values, ops, tuple(outputs))
        return name

    def _shares(self, name: str, owner: str) -> bool:
        return self._graph.root(name) == self._graph.root(owner)


_Shape = tuple[Hashable, Hashable, Hashable]
"""Signatures of a stretch, where each op reads from, and which results are asked for"""


def _places_of(stretch: Sequence[Op]) -> dict[str, tuple[int, int]]:
    """(op, result) of every value that a stretch makes."""
    return {
        name: (index, number)
        for index, op in enumerate(stretch)
        for number, name in enumerate(op.outputs)
    }


class _LastReaders:
    """Until where every value is read."""

    def __init__(self, graph: Graph) -> None:
        self._position = {op.name: index for index, op in enumerate(graph.ops)}
        self._last: dict[str, int] = {}
        for index, op in enumerate(graph.ops):
            self._last.update((name, index) for name in op.inputs)
        end = len(graph.ops)
        self._last.update((name, end) for name in graph.outputs)

    def is_read_after(self, name: str, op: str) -> bool:
        """Whether something behind the op reads a value."""
        return self._last.get(name, -1) > self._position[op]


def _tokens(graph: Graph, ops: Sequence[Op]) -> list[_Token]:
    """What each op does, and how many ops ago its operands were made."""
    made: dict[str, tuple[int, int]] = {}
    tokens: list[_Token] = []
    for index, op in enumerate(ops):
        distances = tuple(
            (index - made[name][0], made[name][1]) if name in made else None
            for name in op.inputs
        )
        # What was made long ago comes from another layer: where does not matter.
        near = tuple(d if d and d[0] <= _MAX_DISTANCE else None for d in distances)
        tokens.append((graph.signature(op), near))
        made.update((name, (index, i)) for i, name in enumerate(op.outputs))
    return tokens


def _find_repeats(
    tokens: Sequence[_Token], min_ops: int
) -> Iterator[tuple[int, int, int]]:
    """(first op, ops of a stretch, stretches) of what repeats, in order.

    Operands made in the stretch before are at the same distance in all stretches but
    the first, so that one need not agree: what it reads is given to all of them.
    """
    numbers: dict[_Token, int] = {}
    plain = [numbers.setdefault(token, len(numbers)) for token in tokens]
    begin = 0
    while (found := _find_repeat(plain, begin, min_ops)) is not None:
        yield found
        first, length, count = found
        begin = first + length * count


def _find_repeat(
    tokens: Sequence[int], begin: int, min_ops: int
) -> tuple[int, int, int] | None:
    """The repetition from `begin` on that covers most ops, the shortest of those."""
    best: tuple[int, int, int] | None = None
    best_size = 0
    distances = _likely_distances(tokens, begin, min_ops)
    for length in distances:
        for first, size in _agreeing_runs(tokens, begin, length):
            count = size // length + 1
            if count >= 2 and count * length > best_size:
                best, best_size = (first, length, count), count * length
    return best


def _likely_distances(
    tokens: Sequence[int], begin: int, min_ops: int, most: int = 16
) -> list[int]:
    """Distances at which equal ops follow each other most often, short ones first."""
    last: dict[int, int] = {}
    seen: Counter[int] = Counter()
    for index in range(begin, len(tokens)):
        token = tokens[index]
        if token in last and index - last[token] >= min_ops:
            seen[index - last[token]] += 1
        last[token] = index
    return sorted(distance for distance, _ in seen.most_common(most))


def _agreeing_runs(
    tokens: Sequence[int], begin: int, distance: int
) -> Iterator[tuple[int, int]]:
    """(first op, ops) of runs in which every op equals the one `distance` later."""
    size = 0
    for index in range(begin, len(tokens) - distance):
        if tokens[index] == tokens[index + distance]:
            size += 1
            continue
        if size >= distance:
            yield index - size, size
        size = 0
    if size >= distance:
        yield len(tokens) - distance - size, size


def _common_module(stretch: Sequence[Op]) -> str:
    """The module that all ops of a stretch are in."""
    paths = [op.module.split(".") for op in stretch if op.module]
    common = [
        p for p, *others in zip(*paths, strict=False) if all(o == p for o in others)
    ]
    return ".".join(common)
