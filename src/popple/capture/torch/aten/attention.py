"""Lowering of fused attention: the machine computes products and a softmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch.fx import Node

from popple.capture.torch.aten.forms import Lowering
from popple.capture.torch.builder import NodeContext
from popple.graph import TensorType


@dataclass(frozen=True)
class _Attention:
    """Operands of one attention: names of values of shape [..., tokens, width].

    Keys and values that several heads share are repeated to the queries' heads.
    """

    context: NodeContext
    query: str
    key: str
    value: str
    mask: Node | None
    has_dropout: bool

    def type_of(self, name: str) -> TensorType:
        return self.context.builder.values[name].type

    @property
    def scores(self) -> TensorType:
        """Type of the products of queries and keys."""
        query, key = self.type_of(self.query), self.type_of(self.key)
        return TensorType(query.dtype, (*query.shape[:-1], key.shape[-2]))

    @property
    def dim(self) -> dict[str, int]:
        """The dimension that softmax runs over."""
        return {"dim": len(self.scores.shape) - 1}

    def emit(self, kind: str, inputs: list[str], result: TensorType, part: str) -> str:
        attrs = self.dim if "softmax" in kind else None
        (name,) = self.context.emit(
            kind, inputs, [result], suffix=f".{part}", attrs=attrs
        )
        return name

    def turned(self, name: str, part: str) -> str:
        """The last two dimensions exchanged, a view."""
        *batch, rows, cols = self.type_of(name).shape
        result = TensorType(self.type_of(name).dtype, (*batch, cols, rows))
        order = (*range(len(batch)), len(batch) + 1, len(batch))
        (view,) = self.context.emit(
            "permute",
            [name],
            [result],
            suffix=f".{part}",
            storage=name,
            attrs={"order": order},
        )
        return view

    def weights(self) -> str:
        """softmax(q k' / sqrt(d) + mask)."""
        scores = self.scores
        sources = [self.query, self.turned(self.key, "key")]
        found = self.emit("matmul", sources, scores, "scores")
        found = self.emit("mul", [found], scores, "scale")
        if self.mask is not None:
            mask = self.context.builder.name_of(self.mask)
            found = self.emit("add", [found, mask], scores, "mask")
        return self.emit("softmax", [found], scores, "softmax")

    def dropped(self, name: str, part: str) -> str:
        """Scores without those that dropout drops, the same ones in both passes."""
        if not self.has_dropout:
            return name
        return self.emit("dropout", [name], self.scores, part)


def _arguments(context: NodeContext) -> dict[str, Any]:
    """The operator's arguments by name: each device has an order of its own."""
    names = [each.name for each in context.node.target._schema.arguments]  # pyright: ignore
    return dict(zip(names, context.args, strict=False)) | dict(context.node.kwargs)


def _attention(context: NodeContext) -> _Attention:
    given = _arguments(context)
    query = given["query"]
    heads = context.type_of(query).shape[:-2]
    return _Attention(
        context,
        context.builder.name_of(query),
        _repeated(context, given["key"], heads, "keys"),
        _repeated(context, given["value"], heads, "values"),
        given.get("attn_mask", given.get("attn_bias")),
        given.get("dropout_p", 0.0) > 0,
    )


def _repeated(
    context: NodeContext, source: Node, heads: tuple[int, ...], part: str
) -> str:
    kind = context.type_of(source)
    if kind.shape[:-2] == heads:
        return context.builder.name_of(source)
    result = TensorType(kind.dtype, (*heads, *kind.shape[-2:]))
    # The products take one matrix for each head, so shared ones are really repeated.
    return context.emit("tile", [source], [result], suffix=f".{part}")[0]


def lower_attention(context: NodeContext) -> None:
    """softmax(q k' / sqrt(d) + mask) v."""
    attention = _attention(context)
    weights = attention.dropped(attention.weights(), "dropout")
    results = context.result_types()
    (out,) = context.emit("matmul", [weights, attention.value], results[:1])
    # Sums, lengths and seeds exist for the fused backward operator only.
    extra = [
        context.emit("fill", [], [kind], suffix=f".state{index}")[0]
        for index, kind in enumerate(results[1:])
    ]
    context.finish_all([out, *extra])


def lower_attention_backward(context: NodeContext) -> None:
    """Gradients of q, k, v, recomputing the attention weights as fused kernels do."""
    own = _attention(context)
    gradient = context.builder.name_of(context.args[0])
    # Fused operators keep no weights of the size tokens by tokens: that is their point.
    weights, scores = own.weights(), own.scores
    query, key, value = (own.type_of(n) for n in (own.query, own.key, own.value))
    sources = [own.turned(own.dropped(weights, "dropout"), "weights"), gradient]
    d_value = own.emit("matmul", sources, value, "dvalue")
    sources = [gradient, own.turned(own.value, "value")]
    d_weights = own.emit("matmul", sources, scores, "dweights")
    d_weights = own.dropped(d_weights, "ddropout")
    d_scores = own.emit("softmax_grad", [d_weights, weights], scores, "dsoftmax")
    d_mask, d_scores = d_scores, own.emit("mul", [d_scores], scores, "dscale")
    d_query = own.emit("matmul", [d_scores, own.key], query, "dquery")
    sources = [own.turned(d_scores, "dscores"), own.query]
    d_key = own.emit("matmul", sources, key, "dkey")
    names = [d_query, _summed(own, d_key, 1), _summed(own, d_value, 2)]
    names += [_mask_gradient(own, d_mask, t) for t in context.result_types()[3:]]
    context.finish_all(names)


def _mask_gradient(own: _Attention, gradient: str, wanted: TensorType) -> str:
    """The gradient of the scores added up over what shared a part of the mask."""
    shape = own.scores.shape
    given = (1,) * (len(shape) - len(wanted.shape)) + wanted.shape
    dims = tuple(d for d, size in enumerate(shape) if size != given[d])
    if not dims:
        return gradient
    return own.context.emit(
        "reduce_sum", [gradient], [wanted], suffix=".dmask", attrs={"dims": dims}
    )[0]


def _summed(own: _Attention, gradient: str, index: int) -> str:
    """The gradient added up over the heads that shared a key or value."""
    wanted = own.context.result_types()[index]
    found = own.type_of(gradient)
    if found.shape == wanted.shape:
        return gradient
    # Heads that share a key follow each other, so they are one dimension of a view.
    times = found.num_elements // wanted.num_elements
    groups = (*wanted.shape[:-2], times, *wanted.shape[-2:])
    grouped = TensorType(found.dtype, groups)
    (view,) = own.context.emit(
        "reshape", [gradient], [grouped], suffix=f".groups{index}", storage=gradient
    )
    (name,) = own.context.emit(
        "reduce_sum",
        [view],
        [wanted],
        suffix=f".sum{index}",
        attrs={"dims": (len(groups) - 3,)},
    )
    return name


# What the frameworks' devices run: its cost on the machine is the same.
_FUSED = (
    "flash_attention_for_cpu",
    "flash_attention",
    "efficient_attention",
    "cudnn_attention",
)

LOWERINGS: dict[str, Lowering] = {
    **{f"aten._scaled_dot_product_{name}": lower_attention for name in _FUSED},
    **{
        f"aten._scaled_dot_product_{name}_backward": lower_attention_backward
        for name in _FUSED
    },
}
