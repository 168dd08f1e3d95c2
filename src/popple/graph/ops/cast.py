"""Op table: casts between element types."""

from popple.graph.opdef import OpDef, same_shape

OPS = (OpDef("cast", "cast", "Same numbers, other element type.", check=same_shape),)
