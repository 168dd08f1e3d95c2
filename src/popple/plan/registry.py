"""The registry: op kind to rule, assembled from the families."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from popple.errors import PlanError, suggest
from popple.plan.opplan import Rule
from popple.plan.rules import (
    cast,
    collective,
    control,
    conv,
    copy,
    ctc,
    elementwise,
    fill,
    gather,
    generic,
    loss,
    matmul,
    norm,
    pool,
    random,
    recurrent,
    reduce,
    shape,
    softmax,
    solve,
    sort,
    update,
)

FAMILY_RULES: Mapping[str, Mapping[str, Rule]] = MappingProxyType(
    {
        "matmul": matmul.RULES,
        "conv": conv.RULES,
        "elementwise": elementwise.RULES,
        "reduce": reduce.RULES,
        "norm": norm.RULES,
        "softmax": softmax.RULES,
        "pool": pool.RULES,
        "gather": gather.RULES,
        "shape": shape.RULES,
        "random": random.RULES,
        "cast": cast.RULES,
        "fill": fill.RULES,
        "loss": loss.RULES,
        "ctc": ctc.RULES,
        "update": update.RULES,
        "sort": sort.RULES,
        "recurrent": recurrent.RULES,
        "solve": solve.RULES,
        "copy": copy.RULES,
        "collective": collective.RULES,
        "control": control.RULES,
        "generic": generic.RULES,
    }
)
# Kinds belong to one family each: `graph/ops` has the same files.
RULES: Mapping[str, Rule] = MappingProxyType(
    {kind: rule for rules in FAMILY_RULES.values() for kind, rule in rules.items()}
)


def get_rule(kind: str) -> Rule:
    """The rule for ops of one kind."""
    if (rule := RULES.get(kind)) is None:
        raise PlanError(
            f"there is no plan rule for {kind!r}.", remedy=suggest(kind, RULES)
        )
    return rule


@cache
def describe_rule(kind: str) -> str:
    """How ops of one kind are planned: the sentence its rule begins with."""
    # Reports explain an op with this line, so it is written for users.
    return (inspect.getdoc(get_rule(kind)) or "").partition("\n")[0]
