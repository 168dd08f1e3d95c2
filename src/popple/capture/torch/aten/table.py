"""TABLE: the lowering of every aten operator; the generic one for all others."""

from __future__ import annotations

from popple.capture.torch.aten import (
    annotation,
    attention,
    conv,
    ctc,
    elementwise,
    fill,
    gather,
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
)
from popple.capture.torch.aten.forms import Lowering, lower_generic
from popple.marks import operator_name

TABLE: dict[str, Lowering] = {
    **elementwise.LOWERINGS,
    **matmul.LOWERINGS,
    **conv.LOWERINGS,
    **reduce.LOWERINGS,
    **norm.LOWERINGS,
    **softmax.LOWERINGS,
    **attention.LOWERINGS,
    **pool.LOWERINGS,
    **gather.LOWERINGS,
    **shape.LOWERINGS,
    **random.LOWERINGS,
    **fill.LOWERINGS,
    **loss.LOWERINGS,
    **ctc.LOWERINGS,
    **sort.LOWERINGS,
    **recurrent.LOWERINGS,
    **solve.LOWERINGS,
    **annotation.LOWERINGS,
}


def find_lowering(operator: str) -> Lowering:
    """The lowering of `aten.name.overload`; the generic one if there is no entry."""
    base = operator_name(operator)
    # `copy_` has an entry of its own; other in-place forms share that of the plain one.
    found = TABLE.get(base) or TABLE.get(base.removesuffix("_"))
    return found or lower_generic
