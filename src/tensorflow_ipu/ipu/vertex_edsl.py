"""Expressions for elementwise codelets, built from Python functions.

A function applied to placeholders gives an expression: a tree that can be written as
the text of a codelet (`lower`) or computed on tensors (`evaluate`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

import tensorflow.compat.v2 as tf


class BaseType(IntEnum):
    """The element types an expression can have."""

    Unknown = 0
    Int16 = 1
    Int32 = 2
    Float16 = 3
    Float32 = 4
    Sequence = 5


class Type:
    """The type of an expression."""

    def __init__(self, type: BaseType) -> None:
        self._type = type

    def getType(self) -> Any:
        """The kind of type."""
        return self._type

    def getElementType(self) -> Any:
        """The type of one element."""
        return self.getType()


class Unknown(Type):
    """Not known yet."""

    def __init__(self) -> None:
        super().__init__(BaseType.Unknown)


class Int16(Type):
    """Integers of 16 bits."""

    def __init__(self) -> None:
        super().__init__(BaseType.Int16)


class Int32(Type):
    """Integers of 32 bits."""

    def __init__(self) -> None:
        super().__init__(BaseType.Int32)


class Float16(Type):
    """Half precision."""

    def __init__(self) -> None:
        super().__init__(BaseType.Float16)


class Float32(Type):
    """Single precision."""

    def __init__(self) -> None:
        super().__init__(BaseType.Float32)


class Sequence(Type):
    """Several elements of one type."""

    def __init__(self, element_type: Type) -> None:
        super().__init__(BaseType.Sequence)
        self._element_type = element_type

    def getElementType(self) -> Any:
        """The type of one element."""
        return self._element_type.getElementType()


class DefaultNameSource:
    """Numbers for the names of local variables."""

    def __init__(self) -> None:
        self._next = 0

    def GetNextName(self) -> int:
        """A number not given before."""
        self._next += 1
        return self._next - 1


class VertexExpression:
    """An expression; Python's operators make larger ones of it."""

    def __init__(self, type: Any) -> None:
        self._type = type

    def __abs__(self) -> VertexExpression:
        return UnaryFunctionExpr("std::abs", self)

    def __add__(self, other: Any) -> VertexExpression:
        return BinaryExpr("+", self, _expression(other))

    def __sub__(self, other: Any) -> VertexExpression:
        return BinaryExpr("-", self, _expression(other))

    def __mul__(self, other: Any) -> VertexExpression:
        return BinaryExpr("*", self, _expression(other))

    def __radd__(self, other: Any) -> VertexExpression:
        return _expression(other) + self

    def __rsub__(self, other: Any) -> VertexExpression:
        return _expression(other) - self

    def __rmul__(self, other: Any) -> VertexExpression:
        return _expression(other) * self

    def __neg__(self) -> VertexExpression:
        return BinaryExpr("-", ConstantVertexExpr(0), self)

    def __invert__(self) -> VertexExpression:
        return -self

    def __pos__(self) -> VertexExpression:
        return self

    def getType(self) -> Any:
        """The type of the result."""
        return self._type

    def lower(self, source: DefaultNameSource) -> str:
        """The text of this expression in a codelet."""
        raise NotImplementedError

    def evaluate(self, values: Mapping[str, Any]) -> tf.Tensor:
        """The value, with the placeholders' tensors by name."""
        raise NotImplementedError


def _expression(value: Any) -> VertexExpression:
    return value if isinstance(value, VertexExpression) else ConstantVertexExpr(value)


class ConstantVertexExpr(VertexExpression):
    """A number."""

    def __init__(self, val: float) -> None:
        if not isinstance(val, int | float):
            raise NotImplementedError(f"{val!r} is neither an int nor a float")
        super().__init__(Int32() if isinstance(val, int) else Float32())
        self._val = val

    def __str__(self) -> str:
        return str(self._val)

    def lower(self, source: DefaultNameSource) -> str:
        """The number in brackets."""
        return f"({self._val})"

    def evaluate(self, values: Mapping[str, Any]) -> tf.Tensor:
        """The number, which takes the type of what it meets."""
        return self._val


def constant(value: float) -> ConstantVertexExpr:
    """A number as an expression."""
    return ConstantVertexExpr(value)


class PlaceholderVertexExpr(VertexExpression):
    """An input or a local variable."""

    def __init__(self, name: str, type: Any) -> None:
        super().__init__(type)
        self._name = name

    def __str__(self) -> str:
        return str(self._name)

    def lower(self, source: DefaultNameSource) -> str:
        """Its name."""
        return self._name

    def evaluate(self, values: Mapping[str, Any]) -> tf.Tensor:
        """Its tensor."""
        return values[self._name]


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: tf.equal(a, b),
    "!=": lambda a, b: tf.not_equal(a, b),
}

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": tf.abs,
    "atan2": tf.atan2,
    "ceil": tf.math.ceil,
    "cos": tf.cos,
    "exp": tf.exp,
    "fabs": tf.abs,
    "floor": tf.floor,
    "fmax": tf.maximum,
    "fmin": tf.minimum,
    "fmod": tf.math.mod,
    "log": tf.math.log,
    "max": tf.maximum,
    "min": tf.minimum,
    "pow": tf.pow,
    "sin": tf.sin,
    "sqrt": tf.sqrt,
    "tan": tf.tan,
    "tanh": tf.tanh,
}


def _function(op: str) -> Callable[..., Any]:
    name = op.rpartition("::")[2]
    if name not in _FUNCTIONS:
        known = ", ".join(_FUNCTIONS)
        raise NotImplementedError(f"{op!r} cannot be computed here; {known} can")
    return _FUNCTIONS[name]


class BinaryExpr(VertexExpression):
    """An operator between two expressions."""

    def __init__(self, op: str, lhs: VertexExpression, rhs: VertexExpression) -> None:
        super().__init__(lhs.getType())
        self._op = op
        self._lhs = lhs
        self._rhs = rhs

    def __str__(self) -> str:
        return f"({self._lhs}{self._op}{self._rhs})"

    def lower(self, source: DefaultNameSource) -> str:
        """The operator between its operands' texts."""
        return f"({self._lhs.lower(source)}{self._op}{self._rhs.lower(source)})"

    def evaluate(self, values: Mapping[str, Any]) -> tf.Tensor:
        """The operator applied."""
        if self._op not in _BINARY:
            raise NotImplementedError(f"the operator {self._op!r} cannot be computed")
        return _BINARY[self._op](self._lhs.evaluate(values), self._rhs.evaluate(values))


class BinaryFunctionExpr(VertexExpression):
    """A function of two expressions."""

    def __init__(self, op: str, lhs: VertexExpression, rhs: VertexExpression) -> None:
        super().__init__(lhs.getType())
        self._op = op
        self._lhs = lhs
        self._rhs = rhs

    def __str__(self) -> str:
        return f"({self._op}({self._lhs},{self._rhs}))"

    def lower(self, source: DefaultNameSource) -> str:
        """The call."""
        return f"({self._op}({self._lhs.lower(source)},{self._rhs.lower(source)}))"

    def evaluate(self, values: Mapping[str, Any]) -> tf.Tensor:
        """The function applied."""
        return _function(self._op)(
            self._lhs.evaluate(values), self._rhs.evaluate(values)
        )


class UnaryFunctionExpr(VertexExpression):
    """A function of one expression."""

    def __init__(self, op: str, lhs: VertexExpression) -> None:
        super().__init__(lhs.getType())
        self._op = op
        self._lhs = lhs

    def __str__(self) -> str:
        return f"({self._op}({self._lhs}) )"

    def lower(self, source: DefaultNameSource) -> str:
        """The call."""
        return f"({self._op}({self._lhs.lower(source)}) )"

    def evaluate(self, values: Mapping[str, Any]) -> tf.Tensor:
        """The function applied."""
        return _function(self._op)(self._lhs.evaluate(values))


class LetVertexExpr(VertexExpression):
    """An expression in which another one, computed once, has a name."""

    def __init__(
        self, expr: VertexExpression, f: Callable[[VertexExpression], Any]
    ) -> None:
        super().__init__(f(expr).getType())
        self._expr = expr
        self._f = f

    def __str__(self) -> str:
        return f"(let x={self._expr} in {self._f(PlaceholderVertexExpr('x', None))})"

    def lower(self, source: DefaultNameSource) -> str:
        """A lambda that holds the named value."""
        name = f"var{source.GetNextName()}"
        value = self._expr.lower(source)
        body = self._f(PlaceholderVertexExpr(name, None)).lower(source)
        return f"[&, {name}={value}]{{return {body};}}()"

    def evaluate(self, values: Mapping[str, Any]) -> tf.Tensor:
        """The outer expression, with the named value among its inputs."""
        name = f"let{len(values)}"
        inner = {**values, name: self._expr.evaluate(values)}
        return self._f(PlaceholderVertexExpr(name, None)).evaluate(inner)


def let(expr: VertexExpression, f: Callable[[VertexExpression], Any]) -> LetVertexExpr:
    """`f` of `expr`, with `expr` computed once."""
    return LetVertexExpr(expr, f)


class Conditional(VertexExpression):
    """One of two expressions."""

    def __init__(
        self, pred: VertexExpression, a: VertexExpression, b: VertexExpression
    ) -> None:
        super().__init__(a.getType())
        self._pred = pred
        self._a = a
        self._b = b

    def __str__(self) -> str:
        return f"(if ({self._pred}) then ({self._a}) else ({self._b}))"

    def lower(self, source: DefaultNameSource) -> str:
        """The conditional operator."""
        pred, a, b = (e.lower(source) for e in (self._pred, self._a, self._b))
        return f"(({pred}) ? ({a}) : ({b}))"

    def evaluate(self, values: Mapping[str, Any]) -> tf.Tensor:
        """The first where the predicate is not zero, else the second."""
        pred, a, b = (e.evaluate(values) for e in (self._pred, self._a, self._b))
        return tf.where(tf.cast(pred, tf.bool), a, b)


def condition(
    pred: VertexExpression, a: VertexExpression, b: VertexExpression
) -> Conditional:
    """`a` where `pred` holds, else `b`."""
    return Conditional(pred, a, b)
