"""Variables: reads, writes, and the optimisers' ops.

An optimiser's op is not written to the Graph here: which weight has which gradient is
noted, and the passes of `place` write accumulators, sums over replicas and updates.
"""

from __future__ import annotations

from collections.abc import Sequence

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.framework import is_trainable, operand_names
from popple.capture.tensorflow.known import Known, Resource
from popple.capture.tensorflow.ops.gather import add_rows
from popple.graph import get_op

# Optimiser: op of the Graph and number of state tensors.
_OPTIMISERS = {
    "GradientDescent": ("sgd_update", 0),
    "ProximalGradientDescent": ("sgd_update", 0),
    "Momentum": ("momentum_update", 1),
    "KerasMomentum": ("momentum_update", 1),
    "AddSign": ("momentum_update", 1),
    "PowerSign": ("momentum_update", 1),
    "Adagrad": ("rmsprop_update", 1),
    "AdagradV2": ("rmsprop_update", 1),
    "ProximalAdagrad": ("rmsprop_update", 1),
    "AdagradDA": ("rmsprop_update", 2),
    "Adadelta": ("rmsprop_update", 2),
    "Ftrl": ("rmsprop_update", 2),
    "FtrlV2": ("rmsprop_update", 2),
    "RMSProp": ("rmsprop_update", 2),
    "CenteredRMSProp": ("rmsprop_update", 3),
    "Adam": ("adam_update", 2),
    "AdaMax": ("adam_update", 2),
    "AdamWithAmsgrad": ("adam_update", 2),
}
_DENSE_ONLY = frozenset(
    {"AdaMax", "Adam", "AdamWithAmsgrad", "AddSign", "GradientDescent", "PowerSign"}
)
_GRADIENT_NAMES = frozenset({"grad", "delta"})
_SCATTERS = {
    "ResourceScatterAdd": "scatter_add",
    "ResourceScatterSub": "scatter_add",
    "ResourceScatterMul": "scatter_add",
    "ResourceScatterMax": "scatter_add",
    "ResourceScatterMin": "scatter_add",
    "ResourceScatterUpdate": "scatter",
    "ResourceScatterNdAdd": "scatter_add",
    "ResourceScatterNdSub": "scatter_add",
    "ResourceScatterNdUpdate": "scatter",
}


def lower_handle(context: OpContext) -> Sequence[Known]:
    """The handle of a variable of an old-style graph."""
    name = context.attr("shared_name") or context.op.name
    return [Resource(name, is_trainable(context.op))]


def lower_read(context: OpContext) -> Sequence[Known]:
    """The variable as it is now."""
    return [context.effects.read(context.resource(0), context.result_type())]


def lower_assign(context: OpContext) -> Sequence[Known]:
    """A new value in the variable's memory.

    A normalisation writes its statistics where they belong, without another copy.
    """
    value = context.name(1)
    held = context.effects.read(context.resource(0), context.type_of(value))
    maker = context.builder.find_maker(value)
    if maker is not None and get_op(maker.kind).family == "norm":
        return []
    written = context.emit_one(
        "update_slice", [held, value], context.type_of(held), storage=held
    )
    context.effects.write(context.resource(0), written)
    return []


def _assign_with(kind: str) -> Rule:
    def lower(context: OpContext) -> Sequence[Known]:
        """The variable plus or minus a value, in place."""
        operand = context.input_type(1)
        held = context.effects.read(context.resource(0), operand)
        result = context.type_of(held)
        names = [held, *([context.name(1)] if context.is_value(1) else [])]
        written = context.emit_one(kind, names, result, storage=held)
        context.effects.write(context.resource(0), written)
        return []

    return lower


def _apply(kind: str, num_states: int) -> Rule:
    def lower(context: OpContext) -> Sequence[Known]:
        """The gradient is what the variable will be updated with."""
        gradient = context.name(_places(context, _GRADIENT_NAMES)[0])
        context.effects.read(context.resource(0), context.type_of(gradient))
        context.effects.update(context.resource(0), kind, num_states, gradient)
        return []

    return lower


def _apply_sparse(kind: str, num_states: int) -> Rule:
    def lower(context: OpContext) -> Sequence[Known]:
        """The rows of the gradient and their places are added up first."""
        rows = context.name(_places(context, _GRADIENT_NAMES)[0])
        indices = context.name(_places(context, frozenset({"indices"}))[0])
        table = context.handle_type(0)
        context.effects.read(context.resource(0), table)
        dense = add_rows(context, indices, rows, table, "scatter_add")
        context.effects.update(context.resource(0), kind, num_states, dense)
        return []

    return lower


def _places(context: OpContext, names: frozenset[str]) -> list[int]:
    """Where inputs with these names are among an op's inputs."""
    operands = enumerate(operand_names(context.op))
    return [index for index, name in operands if name in names]


def _scatter(kind: str) -> Rule:
    def lower(context: OpContext) -> Sequence[Known]:
        """Rows of a variable changed in place."""
        table = context.handle_type(0)
        held = context.effects.read(context.resource(0), table)
        names = [held, context.name(1), context.name(2)]
        written = context.emit_one(kind, names, table, storage=held)
        context.effects.write(context.resource(0), written)
        return []

    return lower


RULES: dict[str, Rule] = {
    **{
        f"ResourceApply{name}": _apply(kind, num_states)
        for name, (kind, num_states) in _OPTIMISERS.items()
    },
    **{
        f"ResourceSparseApply{name}": _apply_sparse(kind, num_states)
        for name, (kind, num_states) in _OPTIMISERS.items()
        if name not in _DENSE_ONLY
    },
    **{name: _scatter(kind) for name, kind in _SCATTERS.items()},
    "AssignAddVariableOp": _assign_with("add"),
    "AssignSubVariableOp": _assign_with("sub"),
    "AssignVariableOp": lower_assign,
    "ReadVariableOp": lower_read,
    "VarHandleOp": lower_handle,
}
