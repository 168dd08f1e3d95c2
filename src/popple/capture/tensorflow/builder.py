"""GraphBuilder: the Graph as it grows, op by op.

Rules write with an OpContext (`context.py`); this file holds what all of them share:
values, ops, constants, and permuted views. TensorFlow's images have channels last, the
Graph's second. Permutations are views and cost nothing, but the Graph is easier to
read and plan without them: a permutation of a permutation looks at the source, and one
that undoes another is the source itself.

A builder for a function has the builder around it: ops of the function may name values
from there, which become the function's arguments when it is done.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from popple.capture.tensorflow.types import tensor_type
from popple.graph import Graph, Op, Role, TensorType, Value

Order = tuple[int, ...]

# What a function is not given but has itself.
_OF_FUNCTIONS = frozenset({Role.ARGUMENT, Role.CONSTANT})


def inverse(order: Order) -> Order:
    """The order that undoes an order."""
    return tuple(order.index(dim) for dim in range(len(order)))


def reorder(shape: Sequence[int], order: Order) -> tuple[int, ...]:
    """A shape with its dimensions in another order."""
    return tuple(shape[dim] for dim in order)


@dataclass(frozen=True)
class Mark:
    """Where an op was put: pipeline stage and chip, None where nobody said.

    `depth` counts the program's own loops around it.
    """

    stage: int | None = None
    chip: int | None = None
    depth: int = 0


@dataclass
class GraphBuilder:
    """Values and ops so far.

    `marks` says for each op where it was put. `permuted` maps views that only permute
    to the value they look at and the order of its dimensions. `outer` is the builder
    around that of a function; `functions` are those of all builders of a program,
    `forms` tells those that may be shared by what they do.
    """

    values: dict[str, Value] = field(default_factory=dict[str, Value])
    ops: list[Op] = field(default_factory=list[Op])
    marks: list[Mark] = field(default_factory=list[Mark])
    permuted: dict[str, tuple[str, Order]] = field(default_factory=dict[str, Any])
    outer: GraphBuilder | None = None
    functions: dict[str, Graph] = field(default_factory=dict[str, Graph])
    forms: dict[Hashable, str] = field(default_factory=dict[Hashable, str])
    _makers: dict[str, int] = field(default_factory=dict[str, int])
    _constants: dict[int, tuple[Any, str]] = field(default_factory=dict[int, Any])
    _used: dict[str, int] = field(default_factory=dict[str, int])
    _views: dict[tuple[str, Order], str] = field(default_factory=dict[Any, str])

    def inner(self) -> GraphBuilder:
        """A builder for a function of the same program.

        Names are unique among all builders, so that one means the same in a function
        as around it. Views of values from around are made anew inside.
        """
        return GraphBuilder(
            permuted=dict(self.permuted),
            outer=self,
            functions=self.functions,
            forms=self.forms,
            _used=self._used,
        )

    @property
    def outermost(self) -> GraphBuilder:
        """The builder of the main graph."""
        return self if self.outer is None else self.outer.outermost

    def find(self, name: str) -> Value:
        """A value of this builder or of one around it."""
        if name in self.values or self.outer is None:
            return self.values[name]
        return self.outer.find(name)

    def type_of(self, name: str) -> TensorType:
        """The type of a value of this builder or of one around it."""
        return self.find(name).type

    def declare(self, name: str, kind: TensorType, role: Role) -> str:
        """A value that exists before the first op; its name.

        Streams, weights and states belong to the main graph; functions are given them.
        """
        home = self if role in _OF_FUNCTIONS else self.outermost
        unique = self._unused(name)
        home.values[unique] = Value(unique, kind, role)
        return unique

    def constant(self, name: str, array: np.ndarray[Any, Any]) -> str:
        """A value known when compiling; one array is one value."""
        if id(array) not in self._constants:
            kind = tensor_type(array.dtype, array.shape)
            made = self.declare(name, kind, Role.CONSTANT)
            self._constants[id(array)] = (array, made)  # holds on to the array
        return self._constants[id(array)][1]

    def find_maker(self, name: str) -> Op | None:
        """The op that makes a value, if an op does."""
        index = self._makers.get(name)
        if index is None:
            return None if self.outer is None else self.outer.find_maker(name)
        return self.ops[index]

    def keep(self, name: str) -> None:
        """Mark the op that makes a value: the value is not computed again."""
        index = self._makers.get(name)
        if index is not None:
            op = self.ops[index]
            self.ops[index] = replace(op, notes=replace(op.notes, is_checkpoint=True))

    def emit(
        self, op: Op, types: Sequence[TensorType], storage: str, mark: Mark
    ) -> list[str]:
        """Append an op whose outputs have these types; their names."""
        name = self._unused(op.name)
        outputs = [name] if len(types) == 1 else self._numbered(name, len(types))
        for output, kind in zip(outputs, types, strict=True):
            self.values[output] = Value(output, kind, Role.ACTIVATION, storage)
            self._makers[output] = len(self.ops)
        self.ops.append(replace(op, name=name, outputs=tuple(outputs)))
        self.marks.append(mark)
        return outputs

    def permute(self, name: str, order: Order, op: Op, mark: Mark) -> str:
        """The value with its dimensions in another order: a view of its source."""
        # Orders are composed, so that a chain of views always looks at its first
        # source.
        source, before = self.permuted.get(name, (name, tuple(range(len(order)))))
        order = tuple(before[dim] for dim in order)
        if order == tuple(range(len(order))):
            return source
        if (source, order) not in self._views:
            kind = self.type_of(source)
            shown = TensorType(kind.dtype, reorder(kind.shape, order))
            view = replace(op, kind="permute", inputs=(source,), attrs={"order": order})
            (made,) = self.emit(view, [shown], source, mark)
            self._views[source, order] = made
            self.permuted[made] = (source, order)
        return self._views[source, order]

    def _numbered(self, name: str, count: int) -> list[str]:
        return [self._unused(f"{name}.{index}") for index in range(count)]

    def _unused(self, name: str) -> str:
        """The name, numbered if there was such a name before."""
        name = name.replace(" ", "_")
        found = name
        while found in self._used:
            self._used[name] += 1
            found = f"{name}.{self._used[name]}"
        self._used[found] = 0
        return found
