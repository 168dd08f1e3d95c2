"""Reductions over dimensions, which the result lacks or has with size 1."""

from popple.graph.attrs import integers
from popple.graph.opdef import OpDef
from popple.graph.signature import Signature

_DIMS = integers("dims", "Dimensions that are reduced.")


def _dims_exist(signature: Signature) -> str:
    rank = len(signature.inputs[0].shape)
    for dim in signature.ints("dims"):
        if not 0 <= dim < max(rank, 1):
            return f"reduces dimension {dim} of {signature.inputs[0]}"
    return ""


_DOCS = {
    "reduce_sum": "Sum.",
    "reduce_mean": "Mean.",
    "reduce_max": "Largest element.",
    "reduce_min": "Smallest element.",
    "reduce_prod": "Product.",
    "reduce_any": "Whether any element holds.",
    "reduce_all": "Whether all elements hold.",
    "reduce_norm": "Euclidean norm.",
    "reduce_log_sum_exp": "Logarithm of the sum of exponentials.",
    "reduce_variance": "Variance.",
    "arg_max": "Index of the largest element.",
    "arg_min": "Index of the smallest element.",
}

OPS = (
    *(
        OpDef(name, "reduce", doc, attrs=(_DIMS,), check=_dims_exist)
        for name, doc in _DOCS.items()
    ),
    OpDef("cumulative_sum", "reduce", "Running sum along `dims`.", attrs=(_DIMS,)),
)
