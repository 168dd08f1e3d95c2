"""Exchange between replicas; `replicas` is the size of the group."""

from popple.graph.opdef import OpDef

OPS = (
    OpDef(
        "all_reduce",
        "collective",
        "Sum over replicas, on every replica.",
        attrs=("replicas",),
    ),
    OpDef(
        "reduce_scatter",
        "collective",
        "Sum over replicas, each keeping one part.",
        attrs=("replicas",),
    ),
    OpDef(
        "all_gather",
        "collective",
        "Parts of all replicas, on every replica.",
        attrs=("replicas",),
    ),
    OpDef(
        "take_share",
        "collective",
        "The part of a tensor that a replica updates.",
        attrs=("replicas",),
    ),
)
