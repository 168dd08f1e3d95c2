"""Traffic beyond a chip: host streams, other chips, stashes, off-chip memory."""

from popple.graph.attrs import integer
from popple.graph.opdef import OpDef, same_shape

OPS = (
    OpDef("stream_in", "copy", "A tensor from the host.", arity=(0, 0)),
    OpDef("stream_out", "copy", "A tensor to the host.", num_outputs=0),
    OpDef(
        "remote_load",
        "copy",
        "A tensor from off-chip memory, laid out like the input if there is one.",
        arity=(0, 1),
    ),
    OpDef("remote_store", "copy", "A tensor to off-chip memory.", num_outputs=0),
    OpDef(
        "chip_copy",
        "copy",
        "A tensor copied from another chip to the op's chip.",
        attrs=(integer("source", "The chip that is copied from."),),
        check=same_shape,
    ),
    OpDef(
        "stash",
        "copy",
        "Push an activation to a ring, whose first dimension are its entries.",
        arity=(2, 2),
    ),
    OpDef("restore", "copy", "Pop the oldest activation from a ring."),
)
