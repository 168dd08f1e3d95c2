"""Operators that draw random numbers."""

from __future__ import annotations

from popple.capture.torch.aten.forms import Lowering, one_op

_KINDS = {
    "rand": "uniform",
    "rand_like": "uniform",
    "uniform": "uniform",
    "randn": "normal",
    "randn_like": "normal",
    "normal": "normal",
    "bernoulli": "bernoulli",
    "randint": "random_integers",
    "randint_like": "random_integers",
    "random": "random_integers",
    "randperm": "permutation",
    "native_dropout": "dropout",
}

LOWERINGS: dict[str, Lowering] = {
    f"aten.{name}": one_op(kind) for name, kind in _KINDS.items()
}
