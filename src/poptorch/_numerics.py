"""Which of the machine's float16 arithmetic a model computes with.

Stochastic rounding is an option of the program. Partial sums in float16, which
programs ask for to save memory, and NaN on overflow slow the host down and are for
studies of precision: `popple run --numerics` asks for them, through the environment
variable POPPLE_NUMERICS: a list of names separated by commas, or `all`.
"""

from __future__ import annotations

import os
from dataclasses import fields

from popple.engine.torch import Numerics
from popple.errors import suggest

from ._errors import Error
from .options import Options

__all__ = ["machine_numerics"]

_NAMES = {f.name.replace("_", "-"): f.name for f in fields(Numerics)[:-1]}


def machine_numerics(options: Options) -> Numerics:
    """What the options and the environment ask for."""
    names = set(_asked_for(os.environ.get("POPPLE_NUMERICS", "")))
    if options._Popart.options.get("enableStochasticRounding"):
        names.add("stochastic_rounding")
    seed = options._values.get("random_seed") or 0
    return Numerics(**dict.fromkeys(names, True), seed=seed)


def _asked_for(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if "all" in names:
        return list(_NAMES.values())
    for name in names:
        if name not in _NAMES:
            raise Error(
                f"POPPLE_NUMERICS names {name!r}. {suggest(name, [*_NAMES, 'all'])}"
            )
    return [_NAMES[name] for name in names]
