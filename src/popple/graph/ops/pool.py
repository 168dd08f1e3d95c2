"""Pooling windows of size `kernel` over the field dimensions."""

from popple.graph.opdef import OpDef

OPS = (
    OpDef("max_pool", "pool", "Largest of a window.", attrs=("kernel",)),
    OpDef("avg_pool", "pool", "Mean of a window.", attrs=("kernel",)),
    OpDef(
        "max_pool_grad",
        "pool",
        "Gradient of max_pool from output gradient and input.",
        arity=(2, 3),
        attrs=("kernel",),
    ),
    OpDef(
        "avg_pool_grad",
        "pool",
        "Gradient of avg_pool.",
        arity=(1, 2),
        attrs=("kernel",),
    ),
)
