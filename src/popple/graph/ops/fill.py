"""Op table: fills and ranges, tensors made without operands."""

from popple.graph.opdef import OpDef

OPS = (
    OpDef("fill", "fill", "Every element one constant.", arity=(0, 1)),
    OpDef("iota", "fill", "Numbers in equal steps.", arity=(0, 0)),
)
