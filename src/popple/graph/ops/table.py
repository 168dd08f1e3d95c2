"""The op table assembled from its families."""

from __future__ import annotations

from popple.errors import GraphError, suggest
from popple.graph.opdef import OpDef
from popple.graph.ops import (
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

FAMILIES: dict[str, tuple[OpDef, ...]] = {
    "matmul": matmul.OPS,
    "conv": conv.OPS,
    "elementwise": elementwise.OPS,
    "reduce": reduce.OPS,
    "norm": norm.OPS,
    "softmax": softmax.OPS,
    "pool": pool.OPS,
    "gather": gather.OPS,
    "shape": shape.OPS,
    "random": random.OPS,
    "cast": cast.OPS,
    "fill": fill.OPS,
    "loss": loss.OPS,
    "ctc": ctc.OPS,
    "update": update.OPS,
    "sort": sort.OPS,
    "recurrent": recurrent.OPS,
    "solve": solve.OPS,
    "copy": copy.OPS,
    "collective": collective.OPS,
    "control": control.OPS,
    "generic": generic.OPS,
}

OPS: dict[str, OpDef] = {op.name: op for ops in FAMILIES.values() for op in ops}


def find_op(kind: str) -> OpDef | None:
    """The table's entry for `kind`, if there is one."""
    return OPS.get(kind)


def get_op(kind: str) -> OpDef:
    """The table's entry for `kind`."""
    if (op := OPS.get(kind)) is None:
        raise GraphError(f"there is no op {kind!r}.", remedy=suggest(kind, OPS))
    return op
