"""Lowering of random number operators and dropout."""

from __future__ import annotations

from popple.capture.torch.aten.forms import Lowering, emit_one, one_op
from popple.capture.torch.builder import NodeContext

# Distributions without a generator on the machine get the one they are made from.
_KINDS = {
    "rand": "uniform",
    "rand_like": "uniform",
    "uniform": "uniform",
    "exponential": "uniform",
    "geometric": "uniform",
    "cauchy": "uniform",
    "randn": "normal",
    "randn_like": "normal",
    "log_normal": "normal",
    "bernoulli": "bernoulli",
    "randint": "random_integers",
    "randint_like": "random_integers",
    "random": "random_integers",
    "randperm": "permutation",
    "native_dropout": "dropout",
}


def lower_normal(context: NodeContext) -> None:
    """Normal numbers; tensors of means and deviations cost no more than numbers."""
    emit_one(context, "normal", sources=context.inputs()[:1])


LOWERINGS: dict[str, Lowering] = {
    **{f"aten.{name}": one_op(kind) for name, kind in _KINDS.items()},
    "aten.normal": lower_normal,
}
