"""Views, which are free, and rearrangements, which move data."""

from popple.graph.opdef import OpDef, same_elements

_VIEWS = {
    "reshape": "Same elements, other shape.",
    "permute": "Dimensions in the order `order`.",
}
_PARTS = {
    "slice": "Part of a tensor.",
    "broadcast": "Repeated along dimensions without copying.",
    "diagonal": "The elements with equal indices.",
}

OPS = (
    *(
        OpDef(name, "shape", doc, is_view=True, check=same_elements)
        for name, doc in _VIEWS.items()
    ),
    *(OpDef(name, "shape", doc, is_view=True) for name, doc in _PARTS.items()),
    OpDef("copy", "shape", "Elements in another order of memory."),
    OpDef("concat", "shape", "Tensors joined along `dim`.", arity=(1, None)),
    OpDef("pad", "shape", "A tensor with a border."),
    OpDef("tile", "shape", "Repeated along dimensions."),
    OpDef("flip", "shape", "Elements of `dims` in reverse order."),
    OpDef("roll", "shape", "Elements rotated along `dims`."),
    OpDef("resize", "shape", "Field dimensions scaled by interpolation."),
    OpDef("triangle", "shape", "Zero above or below a diagonal."),
    OpDef("update_slice", "shape", "A tensor with one part replaced.", arity=(2, 2)),
)
