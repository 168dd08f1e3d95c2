"""OpContext: one TensorFlow op being lowered, as rules see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from popple.capture.tensorflow.builder import GraphBuilder, Order, inverse, reorder
from popple.capture.tensorflow.effects import Effects
from popple.capture.tensorflow.framework import (
    Array,
    Operation,
    ShapedInput,
    find_attr,
    handle_data,
    infer_shapes,
    static_shape,
)
from popple.capture.tensorflow.known import Known, Resource
from popple.capture.tensorflow.tags import Tag
from popple.capture.tensorflow.types import is_on_machine, tensor_type
from popple.errors import CaptureError
from popple.graph import NO_NOTES, Attr, Notes, Op, Phase, TensorType
from popple.marks import HALF_PRODUCT

_STATIC = "Give static shapes: for data sets, batch(..., drop_remainder=True)."


@dataclass(frozen=True)
class OpContext:
    """An op with what is known about its inputs, and where to write what it becomes."""

    builder: GraphBuilder
    effects: Effects
    op: Operation
    tag: Tag
    inputs: tuple[Known, ...]

    @property
    def kind(self) -> str:
        """TensorFlow's name of the op."""
        return self.op.type

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute of the op; strings come as text."""
        value = find_attr(self.op, name)
        if isinstance(value, bytes):
            return value.decode()
        return default if value is None else value

    def constant(self, index: int) -> Array | None:
        """The value of an input if it is known when compiling."""
        known = self.inputs[index] if index < len(self.inputs) else None
        return known if isinstance(known, np.ndarray) else None

    def ints(self, index: int) -> tuple[int, ...] | None:
        """The integers of an input if they are known when compiling."""
        found = self.constant(index)
        return None if found is None else tuple(int(v) for v in found.reshape(-1))

    def is_value(self, index: int) -> bool:
        """Whether an input is a tensor that is not known when compiling."""
        return index < len(self.inputs) and isinstance(self.inputs[index], str)

    def resource(self, index: int) -> Resource:
        """The variable, iterator or queue that an input is."""
        found = self.inputs[index]
        if isinstance(found, Resource):
            return found
        raise self.error(f"input {index} is not a variable")

    def name(self, index: int) -> str:
        """The value of an input; a constant becomes one."""
        known, dtype = self.inputs[index], self.op.inputs[index].dtype
        if known is None and is_on_machine(dtype):
            raise self.error(f"the shape of input {index} is not known", _STATIC)
        return self.name_of(known, f"{self.tag.name}.input{index}")

    def name_of(self, known: Known, name: str) -> str:
        """The value of something known."""
        if isinstance(known, np.ndarray):
            return self.builder.constant(name, known)
        if isinstance(known, str):
            return known
        raise self.error("one of its inputs is not a tensor of numbers")

    def names(self) -> list[str]:
        """The values of all inputs that are tensors of numbers."""
        return [
            self.name(index)
            for index, known in enumerate(self.inputs)
            if isinstance(known, (str, np.ndarray))
        ]

    def type_of(self, name: str) -> TensorType:
        """The type of a value."""
        return self.builder.type_of(name)

    def input_type(self, index: int) -> TensorType:
        """The type of an input."""
        known = self.inputs[index]
        if isinstance(known, np.ndarray):
            return tensor_type(known.dtype, known.shape)
        return self.type_of(known if isinstance(known, str) else self.name(index))

    def handle_type(self, index: int) -> TensorType:
        """The type of the variable that an input is the handle of."""
        found = self.effects.find_type(self.resource(index))
        if found is None and (held := handle_data(self.op.inputs[index])):
            found = tensor_type(*held)
        if found is None:
            raise self.error("the shape of a variable is not known when compiling")
        return found

    @cached_property
    def found_types(self) -> tuple[TensorType | None, ...]:
        """Types of the results; None for those that are no numbers or unknown."""
        shapes = [static_shape(output) for output in self.op.outputs]
        # Asked again only where needed, since it builds a graph. Arguments and loops
        # that are known by now may settle what was open when the program was traced.
        if None in shapes and any(is_on_machine(o.dtype) for o in self.op.outputs):
            shapes = infer_shapes(self.op, [self._shape_of(k) for k in self.inputs])
        # A product in single precision that stands for one in half.
        is_half = self.attr(HALF_PRODUCT) is not None
        return tuple(
            tensor_type("float16" if is_half else output.dtype, shape)
            if shape is not None and is_on_machine(output.dtype)
            else None
            for output, shape in zip(self.op.outputs, shapes, strict=True)
        )

    def result_type(self, index: int = 0) -> TensorType:
        """The type of a result, which must be known."""
        if (found := self.found_types[index]) is not None:
            return found
        raise self.error("the shape of its result is not known", _STATIC)

    def result_types(self) -> list[TensorType]:
        """The types of all results."""
        return [self.result_type(index) for index in range(len(self.op.outputs))]

    def _shape_of(self, known: Known) -> ShapedInput:
        if isinstance(known, str):
            return self.type_of(known).shape
        return known if isinstance(known, np.ndarray) else None

    def emit(
        self,
        kind: str,
        inputs: Sequence[str],
        types: Sequence[TensorType],
        *,
        suffix: str = "",
        storage: str = "",
        attrs: Mapping[str, Attr] | None = None,
        notes: Notes = NO_NOTES,
    ) -> list[str]:
        """Append an op of the Graph; the names of its outputs."""
        op = replace(self._op(kind, inputs, suffix, attrs or {}), notes=notes)
        return self.builder.emit(op, types, storage, self.tag.mark)

    def emit_one(
        self,
        kind: str,
        inputs: Sequence[str],
        result: TensorType,
        *,
        suffix: str = "",
        storage: str = "",
        attrs: Mapping[str, Attr] | None = None,
        notes: Notes = NO_NOTES,
    ) -> str:
        """Append an op with one output; its name."""
        (name,) = self.emit(
            kind,
            inputs,
            [result],
            suffix=suffix,
            storage=storage,
            attrs=attrs,
            notes=notes,
        )
        return name

    def reshape(self, name: str, shape: Sequence[int], suffix: str = "") -> str:
        """The value in another shape: a view, or the value itself."""
        kind = self.type_of(name)
        if kind.shape == tuple(shape):
            return name
        shown = TensorType(kind.dtype, tuple(shape))
        return self.emit_one("reshape", [name], shown, suffix=suffix, storage=name)

    def permute(self, name: str, order: Order, suffix: str = ".permuted") -> str:
        """The value with its dimensions in another order: a view, or its source."""
        op = self._op("permute", [name], suffix, {})
        return self.builder.permute(name, order, op, self.tag.mark)

    def source_order(self, name: str, rank: int) -> Order | None:
        """The order in which a value shows its source, if it only permutes one."""
        _, order = self.builder.permuted.get(name, ("", ()))
        return order if len(order) == rank else None

    def in_order(self, name: str, order: Order) -> str:
        """What a value is before its dimensions were put in `order`.

        Smaller values that broadcast are shaped to broadcast against that.
        """
        shape = self.type_of(name).shape
        if len(shape) == len(order):
            return self.permute(name, inverse(order))
        wide = (*(1,) * (len(order) - len(shape)), *shape)
        moved = reorder(wide, inverse(order))
        # A vector needs no permutation, a reshape aligns it; matrices need both.
        if sum(dim > 1 for dim in shape) > 1:
            return self.permute(self.reshape(name, wide, ".wide"), inverse(order))
        first = next((i for i, dim in enumerate(moved) if dim > 1), len(moved))
        return self.reshape(name, moved[first:], ".aligned")

    def _op(
        self, kind: str, inputs: Sequence[str], suffix: str, attrs: Mapping[str, Attr]
    ) -> Op:
        tag = self.tag
        return Op(
            name=tag.name + suffix,
            kind=kind,
            inputs=tuple(inputs),
            outputs=(),
            attrs=dict(attrs),
            phase=tag.phase or Phase.FORWARD,
            module=tag.module,
            line=tag.line,
        )

    def error(self, what: str, remedy: str = "") -> CaptureError:
        """An error about this op."""
        return CaptureError(
            f"{self.kind} {self.op.name}: {what}.",
            where=self.tag.line,
            remedy=remedy,
        )


Rule: TypeAlias = Callable[[OpContext], Sequence[Known]]
"""Writes what an op becomes and tells what its outputs are."""
