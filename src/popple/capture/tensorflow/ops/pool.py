"""Pooling over windows and its gradients."""

from __future__ import annotations

from collections.abc import Sequence

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known
from popple.capture.tensorflow.ops.images import Layout, layout_of
from popple.graph import Attr, TensorType


def _attrs(context: OpContext, layout: Layout) -> dict[str, Attr]:
    sizes = context.attr("ksize") or context.ints(1)  # MaxPoolV2 has it as an input
    if sizes is None:
        raise context.error("the size of its windows is not known when compiling")
    return {"kernel": layout.of_field(sizes)}


def _pool(kind: str) -> Rule:
    def lower(context: OpContext) -> Sequence[Known]:
        result = context.result_type()
        layout = layout_of(context, len(result.shape))
        field = layout.first(context, context.name(0))
        made = context.emit_one(
            kind,
            [field],
            layout.type_first(result),
            suffix=".pool",
            attrs=_attrs(context, layout),
        )
        return [layout.last(context, made), *_places(context)]

    return lower


def _places(context: OpContext) -> Sequence[Known]:
    """MaxPoolWithArgmax: the machine finds the places again where they are needed."""
    return [
        context.emit_one("fill", [], context.result_type(index), suffix=".places")
        for index in range(1, len(context.op.outputs))
    ]


def _gradient(kind: str, sources: Sequence[int]) -> Rule:
    """The output gradient, and the field where the largest must be found again."""

    def lower(context: OpContext) -> Sequence[Known]:
        result = context.result_type()
        layout = layout_of(context, len(result.shape))
        names = [layout.first(context, context.name(index)) for index in sources]
        shown = layout.type_first(result)
        attrs = _attrs(context, layout)
        made = context.emit_one(kind, names, shown, suffix=".pool", attrs=attrs)
        return [layout.last(context, made)]

    return lower


def lower_gradient_of_gradient(context: OpContext) -> Sequence[Known]:
    """What the windows picked, out of the gradient's gradient."""
    result: TensorType = context.result_type()
    layout = layout_of(context, len(result.shape))
    field = layout.first(context, context.name(2))
    attrs = _attrs(context, layout)
    shown = layout.type_first(result)
    made = context.emit_one("max_pool", [field], shown, suffix=".pool", attrs=attrs)
    return [layout.last(context, made)]


RULES: dict[str, Rule] = {
    "MaxPool": _pool("max_pool"),
    "MaxPoolV2": _pool("max_pool"),
    "MaxPool3D": _pool("max_pool"),
    "MaxPoolWithArgmax": _pool("max_pool"),
    "AvgPool": _pool("avg_pool"),
    "AvgPool3D": _pool("avg_pool"),
    "MaxPoolGrad": _gradient("max_pool_grad", (2, 0)),
    "MaxPoolGradV2": _gradient("max_pool_grad", (2, 0)),
    "MaxPool3DGrad": _gradient("max_pool_grad", (2, 0)),
    "MaxPoolGradWithArgmax": _gradient("max_pool_grad", (1, 0)),
    "AvgPoolGrad": _gradient("avg_pool_grad", (1,)),
    "AvgPool3DGrad": _gradient("avg_pool_grad", (1,)),
    "MaxPoolGradGrad": lower_gradient_of_gradient,
    "MaxPool3DGradGrad": lower_gradient_of_gradient,
}
