"""All rules in one table, and the generic one for ops without an entry."""

from __future__ import annotations

from popple.capture.tensorflow.context import Rule
from popple.capture.tensorflow.ops import (
    arrays,
    conv,
    copy,
    elementwise,
    fill,
    gather,
    lists,
    loss,
    matmul,
    norm,
    optionals,
    pool,
    random,
    reduce,
    shape,
    softmax,
    solve,
    sort,
    update,
)
from popple.capture.tensorflow.ops.forms import lower_generic

RULES: dict[str, Rule] = {
    **elementwise.RULES,
    **matmul.RULES,
    **conv.RULES,
    **reduce.RULES,
    **norm.RULES,
    **softmax.RULES,
    **pool.RULES,
    **gather.RULES,
    **shape.RULES,
    **random.RULES,
    **fill.RULES,
    **loss.RULES,
    **sort.RULES,
    **solve.RULES,
    **lists.RULES,
    **arrays.RULES,
    **optionals.RULES,
    **copy.RULES,
    **update.RULES,
}


def find_rule(kind: str) -> Rule:
    """The rule of a TensorFlow op type; the generic one if there is no entry."""
    return RULES.get(kind, lower_generic)
