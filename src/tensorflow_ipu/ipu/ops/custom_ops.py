"""Operations written by the user.

A codelet expression is computed from its Python function. An operation compiled to a
shared library for the device cannot run here; a Python function stands in for it:

    custom_ops.register_python_op("Build", my_function, my_gradient)

`my_function(inputs, attributes)` gets a list of tensors and the string of attributes,
or None, and returns a list of tensors. `my_gradient(gradients, outputs, inputs,
attributes)` returns one gradient, or None, for each input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import tensorflow.compat.v2 as tf

from popple.errors import UsageError

from ..vertex_edsl import PlaceholderVertexExpr
from ._tensors import Gradient, Tensor

Function = Callable[[list[Tensor], str | None], Any]
GradientFunction = Callable[
    [list[Tensor], list[Tensor], list[Tensor], str | None], Sequence[Any]
]


@dataclass(frozen=True)
class _PythonOp:
    """What computes an operation in place of its library."""

    function: Function
    gradient: GradientFunction | None


@dataclass
class _Registry:
    """The Python operations by library, without folder and ending, and name."""

    by_key: dict[tuple[str, str], _PythonOp] = field(default_factory=dict)

    def find(self, library_path: str, op_name: str) -> _PythonOp | None:
        """The operation registered for this library, or for any."""
        library = PurePath(library_path).stem
        exact = self.by_key.get((library, op_name))
        return exact or self.by_key.get(("", op_name))


_REGISTRY = _Registry()


def register_python_op(
    op_name: str,
    function: Function,
    gradient: GradientFunction | None = None,
    library_path: str = "",
) -> None:
    """Let `function` compute the user operation called `op_name`.

    With `library_path` only the operation of that library; libraries share the usual
    names `Build` and `Callback`.
    """
    key = (PurePath(library_path).stem, op_name)
    _REGISTRY.by_key[key] = _PythonOp(function, gradient)


def codelet_expression_op(
    vertex_expression: Callable[..., Any], *args: Tensor
) -> Tensor:
    """A function of numbers applied to tensors element by element.

    The function gets one argument per tensor and may use `+`, `-`, `*`, `abs` and the
    functions of `ipu.vertex_edsl`. The result has the type of the first tensor.
    """
    names = [f"in{i}" for i in range(len(args))]
    expression = vertex_expression(
        *[PlaceholderVertexExpr(name, None) for name in names]
    )
    values = dict(zip(names, args, strict=True))
    return tf.cast(expression.evaluate(values), args[0].dtype)


def precompiled_user_op(
    inputs: Sequence[Tensor],
    library_path: str,
    gp_path: str = "",
    outs: dict[str, Any] | None = None,
    name: str = "UserOp",
    op_name: str = "Build",
    separate_gradients: bool = False,
    inputs_with_gradients: Sequence[int] | None = None,
    attributes: str | None = None,
    gradient_attributes: str | None = None,
) -> list[Tensor]:
    """An operation from a library for the device, computed by a Python function.

    `outs` gives `output_types` and `output_shapes`. The function is the one given to
    `register_python_op`; its gradient gets `gradient_attributes`.
    """
    _check_attributes(attributes=attributes, gradient_attributes=gradient_attributes)
    operation = _Operation(
        library_path,
        op_name,
        outs or {},
        inputs_with_gradients,
        attributes,
        gradient_attributes,
    )
    with tf.name_scope(name):
        return operation.call(inputs)


def cpu_user_operation(
    inputs: Sequence[Tensor],
    library_path: str,
    outs: dict[str, Any] | None = None,
    name: str = "UserOp",
    op_name: str = "Callback",
    separate_gradients: bool = False,
    inputs_with_gradients: Sequence[int] | None = None,
    attributes: str | None = None,
    gradient_attributes: str | None = None,
) -> list[Tensor]:
    """An operation from a library for the host, computed by a Python function."""
    return precompiled_user_op(
        inputs,
        library_path,
        outs=outs,
        name=name,
        op_name=op_name,
        separate_gradients=separate_gradients,
        inputs_with_gradients=inputs_with_gradients,
        attributes=attributes,
        gradient_attributes=gradient_attributes,
    )


def _check_attributes(**strings: str | None) -> None:
    for name, value in strings.items():
        if value and not isinstance(value, str):
            raise ValueError(
                f"Expected {name} to be a 'str' type, but was {type(value)}."
            )


@dataclass(frozen=True)
class _Operation:
    """One use of a user operation."""

    library_path: str
    op_name: str
    outs: dict[str, Any]
    inputs_with_gradients: Sequence[int] | None
    attributes: str | None
    gradient_attributes: str | None

    def call(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs of the Python function, checked."""
        op = self._python_op()

        @tf.custom_gradient
        def apply(*values: Tensor) -> tuple[list[Tensor], Gradient]:
            outputs = self._checked(op.function(list(values), self.attributes))

            def gradient(*gradients: Tensor) -> list[Any]:
                return self._gradients(op, list(gradients), outputs, list(values))

            return outputs, gradient

        tensors = [tf.convert_to_tensor(value) for value in inputs]
        return list(apply(*tensors))

    def _python_op(self) -> _PythonOp:
        op = _REGISTRY.find(self.library_path, self.op_name)
        if op is None:
            raise UsageError(
                f"the user operation {self.op_name!r} of {self.library_path!r} is "
                "compiled for the IPU's own libraries and cannot run here.",
                remedy=(
                    "Give a Python function that computes it: ipu.custom_ops."
                    f"register_python_op({self.op_name!r}, function, gradient)."
                ),
            )
        return op

    def _checked(self, outputs: Any) -> list[Tensor]:
        """The outputs as tensors of the declared types and shapes."""
        found = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
        types = self.outs.get("output_types", [])
        shapes = self.outs.get("output_shapes", [])
        if len(found) != len(types) or len(found) != len(shapes):
            raise UsageError(
                f"the Python function for {self.op_name!r} returned {len(found)} "
                f"tensors, and `outs` declares {len(types)} types and {len(shapes)} "
                "shapes."
            )
        return [
            tf.ensure_shape(tf.convert_to_tensor(value, dtype), shape)
            for value, dtype, shape in zip(found, types, shapes, strict=True)
        ]

    def _gradients(
        self,
        op: _PythonOp,
        gradients: list[Tensor],
        outputs: list[Tensor],
        inputs: list[Tensor],
    ) -> list[Any]:
        """One gradient per input; None where none was asked for."""
        if op.gradient is None:
            raise UsageError(
                f"the user operation {self.op_name!r} has no gradient.",
                remedy="Pass one as the third argument of register_python_op.",
            )
        found = op.gradient(gradients, outputs, inputs, self.gradient_attributes)
        wanted = self.inputs_with_gradients
        return [
            g if wanted is None or i in wanted else None for i, g in enumerate(found)
        ]
