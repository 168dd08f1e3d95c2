"""OpDef: one entry of the op table (name, family, arity, attributes), shared checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from popple.errors import GraphError
from popple.graph.attrs import AttrDef, Schema
from popple.graph.signature import Signature

Check = Callable[[Signature], str]
"""Returns what is wrong with a signature, or an empty string."""


def accept(_: Signature) -> str:
    """The check of ops whose types have no rule beyond their arity."""
    return ""


@dataclass(frozen=True)
class OpDef:
    """Name, family and legality of one kind of op.

    `arity` bounds the number of inputs (None: no upper bound). A view's outputs
    share memory with its first input and cost nothing. `attrs` are all attributes that
    its ops may have; `schema` checks them.
    """

    name: str
    family: str
    doc: str
    arity: tuple[int, int | None] = (1, 1)
    num_outputs: int | None = 1
    attrs: tuple[AttrDef, ...] = ()
    is_view: bool = False
    check: Check = accept
    schema: Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Made once: every op of the kind is held against it.
        object.__setattr__(self, "schema", Schema(self.attrs))
        low, high = self.arity
        if low < 0 or (high is not None and high < low):
            raise GraphError(f"op {self.name}: arity {self.arity} is empty.")

    def complaint(self, signature: Signature) -> str:
        """What is wrong with the operands of this use of the op, or an empty string.

        Its attributes were checked when the op was made.
        """
        low, high = self.arity
        given = len(signature.inputs)
        if given < low or (high is not None and given > high):
            wanted = str(low) if low == high else f"{low} to {high or 'any number'}"
            return f"takes {wanted} inputs, got {given}"
        if self.num_outputs is not None and len(signature.outputs) != self.num_outputs:
            return f"has {self.num_outputs} outputs, got {len(signature.outputs)}"
        return self.check(signature)


def same_elements(signature: Signature) -> str:
    """Input and output hold equally many elements."""
    source, result = signature.inputs[0], signature.outputs[0]
    if source.num_elements != result.num_elements:
        return f"keeps the number of elements, but {source} became {result}"
    return ""


def same_shape(signature: Signature) -> str:
    """First input and output have one shape."""
    source, result = signature.inputs[0], signature.outputs[0]
    if source.shape != result.shape:
        return f"keeps the shape, but {source} became {result}"
    return ""


def broadcasts(signature: Signature) -> str:
    """The output shape is the NumPy broadcast of all input shapes."""
    result = signature.outputs[0].shape
    for source in signature.inputs:
        if not _broadcasts_to(source.shape, result):
            return f"cannot broadcast {source} to {signature.outputs[0]}"
    return ""


def _broadcasts_to(shape: tuple[int, ...], result: tuple[int, ...]) -> bool:
    if len(shape) > len(result):
        return False
    tail = result[len(result) - len(shape) :]
    return all(dim in (1, full) for dim, full in zip(shape, tail, strict=True))
