"""What is known about a tensor while a program is walked.

A tensor is a value of the Graph (its name), a constant (an array, known when
compiling), a resource (a variable, an iterator, a queue), a list of tensors, what a
recurrent layer keeps for its gradient, something in a branch that is not taken, or
None: something the machine has no part in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from popple.graph import Notes


@dataclass(frozen=True)
class Resource:
    """A variable, an iterator or a queue, by a name that no other has."""

    name: str
    is_trained: bool = False


@dataclass(frozen=True)
class TensorList:
    """A TensorArray whose entries are known: loops over it are walked in full."""

    items: tuple[Known, ...]

    def with_item(self, index: int, item: Known) -> TensorList:
        """The list with one entry replaced; it grows if it is too short."""
        missing = max(0, index + 1 - len(self.items))
        items = [*self.items, *(None,) * missing]
        items[index] = item
        return replace(self, items=tuple(items))


@dataclass(frozen=True)
class KeptLayer:
    """What a recurrent layer keeps for its gradient.

    `value` holds it; `inputs` are those of the layer's op, `arguments` names those of
    the function that the program calls, `notes` are those on the gradient's op.
    """

    value: str
    inputs: tuple[str, ...]
    arguments: tuple[str, ...]
    cell: str
    num_states: int
    notes: Notes


@dataclass(frozen=True)
class NotTaken:
    """A tensor in an old-style branch that is not taken."""


Known: TypeAlias = (
    "str | np.ndarray[Any, Any] | Resource | TensorList | KeptLayer | NotTaken | None"
)
