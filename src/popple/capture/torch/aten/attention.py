"""Fused attention, taken apart: the machine computes it as products and a softmax."""

from __future__ import annotations

from typing import Any

from popple.capture.torch.aten.forms import Lowering
from popple.capture.torch.builder import NodeContext
from popple.graph import TensorType


def _scores_type(context: NodeContext, query: Any, key: Any) -> TensorType:
    left, right = context.type_of(query), context.type_of(key)
    return TensorType(left.dtype, (*left.shape[:-1], right.shape[-2]))


def _transposed(context: NodeContext, source: Any, suffix: str) -> str:
    """The source with its last two dimensions exchanged, a view."""
    if isinstance(source, str):
        name, kind = source, context.builder.values[source].type
    else:
        name, kind = context.builder.name_of(source), context.type_of(source)
    *batch, rows, cols = kind.shape
    result = TensorType(kind.dtype, (*batch, cols, rows))
    order = (*range(len(batch)), len(batch) + 1, len(batch))
    return context.emit(
        "permute", [name], [result], suffix=suffix, storage=name, order=order
    )[0]


def lower_attention(context: NodeContext) -> None:
    """softmax(q k' / sqrt(d) + mask) v; the mask is added if there is one."""
    query, key, value = context.args[:3]
    mask = context.node.kwargs.get("attn_mask")
    scores = _scores_type(context, query, key)
    turned = _transposed(context, key, ".key")
    (product,) = context.emit("matmul", [query, turned], [scores], suffix=".scores")
    (scaled,) = context.emit("mul", [product], [scores], suffix=".scale")
    if mask is not None:
        (scaled,) = context.emit("add", [scaled, mask], [scores], suffix=".mask")
    dim = len(scores.shape) - 1
    (weights,) = context.emit(
        "softmax", [scaled], [scores], suffix=".softmax", dim=dim
    )
    results = context.result_types()
    (out,) = context.emit("matmul", [weights, value], results[:1])
    # The other results (log-sum-exp, random state) exist for the fused backward only.
    extra = [
        context.emit("fill", [], [kind], suffix=f".state{index}")[0]
        for index, kind in enumerate(results[1:])
    ]
    context.finish_all([out, *extra])


def lower_attention_backward(context: NodeContext) -> None:
    """Gradients of q, k, v, recomputing the attention weights as fused kernels do."""
    gradient, query, key, value = context.args[:4]
    scores = _scores_type(context, query, key)
    turned_key = _transposed(context, key, ".key")
    turned_value = _transposed(context, value, ".value")
    dim = len(scores.shape) - 1
    (product,) = context.emit("matmul", [query, turned_key], [scores], suffix=".scores")
    (weights,) = context.emit(
        "softmax", [product], [scores], suffix=".softmax", dim=dim
    )
    turned_weights = _transposed(context, weights, ".weights")
    value_type, key_type = context.type_of(value), context.type_of(key)
    (d_value,) = context.emit(
        "matmul", [turned_weights, gradient], [value_type], suffix=".dv"
    )
    (d_weights,) = context.emit(
        "matmul", [gradient, turned_value], [scores], suffix=".dweights"
    )
    (d_scores,) = context.emit(
        "softmax_grad", [d_weights, weights], [scores], suffix=".dscores", dim=dim
    )
    query_type = context.type_of(query)
    (d_query,) = context.emit("matmul", [d_scores, key], [query_type], suffix=".dq")
    turned_scores = _transposed(context, d_scores, ".turned")
    (d_key,) = context.emit(
        "matmul", [turned_scores, query], [key_type], suffix=".dk"
    )
    context.finish_all([d_query, d_key, d_value])


LOWERINGS: dict[str, Lowering] = {
    "aten._scaled_dot_product_flash_attention_for_cpu": lower_attention,
    "aten._scaled_dot_product_flash_attention_for_cpu_backward": (
        lower_attention_backward
    ),
    "aten._scaled_dot_product_flash_attention": lower_attention,
    "aten._scaled_dot_product_efficient_attention": lower_attention,
}
