"""Views, which are free, and rearrangements, which move data."""

from popple.graph.attrs import AttrDef, integer, integers
from popple.graph.opdef import OpDef, same_elements

_ORDER = integers(
    "order",
    "The dimension of the input that each of the result is; reversed if left out.",
    is_optional=True,
)
# A slice whose place is not known when compiling, or that has strides, says neither.
_PLACE = (
    integer("dim", "The dimension that is cut.", is_optional=True),
    integer("start", "Where in it the part begins.", is_optional=True),
)
_DIMS = integers("dims", "Dimensions that are moved.", is_optional=True)


def _view(name: str, doc: str, *attrs: AttrDef) -> OpDef:
    return OpDef(name, "shape", doc, attrs=attrs, is_view=True)


OPS = (
    OpDef(
        "reshape",
        "shape",
        "Same elements, other shape.",
        is_view=True,
        check=same_elements,
    ),
    OpDef(
        "permute",
        "shape",
        "Dimensions in another order.",
        attrs=(_ORDER,),
        is_view=True,
        check=same_elements,
    ),
    _view("slice", "Part of a tensor.", *_PLACE),
    _view("broadcast", "Repeated along dimensions without copying."),
    _view("diagonal", "The elements with equal indices."),
    OpDef("copy", "shape", "Elements in another order of memory."),
    OpDef(
        "concat",
        "shape",
        "Tensors joined along a dimension, an old or a new one.",
        arity=(1, None),
        attrs=(integer("dim", "The dimension of the result."),),
    ),
    OpDef("pad", "shape", "A tensor with a border."),
    OpDef("tile", "shape", "Repeated along dimensions."),
    OpDef("flip", "shape", "Elements in reverse order.", attrs=(_DIMS,)),
    OpDef("roll", "shape", "Elements rotated along dimensions.", attrs=(_DIMS,)),
    OpDef("resize", "shape", "Field dimensions scaled by interpolation."),
    OpDef("triangle", "shape", "Zero above or below a diagonal."),
    OpDef("update_slice", "shape", "A tensor with one part replaced.", arity=(2, 2)),
)
