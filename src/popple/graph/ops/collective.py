"""Op table: collectives between replicas."""

from popple.graph.attrs import integer
from popple.graph.opdef import OpDef

_REPLICAS = integer("replicas", "Size of the group that takes part.")

OPS = (
    OpDef(
        "all_reduce",
        "collective",
        "Sum over replicas, on every replica.",
        attrs=(_REPLICAS,),
    ),
    OpDef(
        "reduce_scatter",
        "collective",
        "Sum over replicas, each keeping one part, laid out as a share read with it.",
        arity=(1, 2),
        attrs=(_REPLICAS,),
    ),
    OpDef(
        "all_gather",
        "collective",
        "Parts of all replicas, on every replica.",
        attrs=(_REPLICAS,),
    ),
    OpDef(
        "take_share",
        "collective",
        "The part of a tensor that a replica updates.",
        attrs=(_REPLICAS,),
    ),
)
