"""Pooling windows over the field dimensions."""

from popple.graph.attrs import integers
from popple.graph.opdef import OpDef

_KERNEL = integers("kernel", "Size of a window in each field dimension.")

OPS = (
    OpDef("max_pool", "pool", "Largest of a window.", attrs=(_KERNEL,)),
    OpDef("avg_pool", "pool", "Mean of a window.", attrs=(_KERNEL,)),
    OpDef(
        "max_pool_grad",
        "pool",
        "Gradient of max_pool from output gradient and input.",
        arity=(2, 3),
        attrs=(_KERNEL,),
    ),
    OpDef(
        "avg_pool_grad",
        "pool",
        "Gradient of avg_pool.",
        arity=(1, 2),
        attrs=(_KERNEL,),
    ),
)
