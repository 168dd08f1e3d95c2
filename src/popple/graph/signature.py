"""Signature: everything about an op that decides its plan, as one hashable key."""

from __future__ import annotations

from dataclasses import dataclass

from popple.graph.attrs import Attr
from popple.graph.notes import NO_NOTES, Notes
from popple.graph.types import TensorType
from popple.quick import quick


@quick
@dataclass(frozen=True, slots=True)
class Signature:
    """What decides an op's plan and cost: kind, types, attributes and notes. Hashable.

    Attributes are sorted by name. Those of an op in a graph are complete and of the
    types that its OpDef says.
    """

    kind: str
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    attrs: tuple[tuple[str, Attr], ...] = ()
    notes: Notes = NO_NOTES

    def attr(self, name: str, default: Attr | None = None) -> Attr:
        """The attribute `name`, or `default`."""
        for key, value in self.attrs:
            if key == name:
                return value
        if default is None:
            raise KeyError(name)
        return default

    def ints(self, name: str) -> tuple[int, ...]:
        """The attribute `name` as a tuple of integers, empty if absent."""
        value = self.attr(name, ())
        values = value if isinstance(value, tuple) else (value,)
        return tuple(int(each) for each in values)

    def integer(self, name: str) -> int:
        """The attribute `name`, an integer."""
        return int(self.attr(name))  # pyright: ignore[reportArgumentType]

    def flag(self, name: str) -> bool:
        """The attribute `name`, whether something holds."""
        return bool(self.attr(name))

    def text(self, name: str) -> str:
        """The attribute `name`, a text."""
        return str(self.attr(name))

    def __str__(self) -> str:
        sources = ", ".join(map(str, self.inputs))
        results = ", ".join(map(str, self.outputs))
        return f"{self.kind}({sources}) -> {results}"
