"""Lowering of max and average pooling, adaptive forms included."""

from __future__ import annotations

from popple.capture.torch.aten.forms import AttrsOf, Lowering, one_op
from popple.capture.torch.builder import NodeContext
from popple.graph import Attr


def _kernel_at(index: int, rank: int) -> AttrsOf:
    def attrs(context: NodeContext) -> dict[str, Attr]:
        kernel = context.args[index]
        size = kernel if isinstance(kernel, (list, tuple)) else [kernel]
        # torch lets one number stand for all dimensions.
        return {"kernel": tuple(size) if len(size) == rank else tuple(size) * rank}

    return attrs


def _adaptive(rank: int) -> AttrsOf:
    def attrs(context: NodeContext) -> dict[str, Attr]:
        field = context.type_of(context.inputs()[0]).shape[-rank:]
        result = context.result_types()[0].shape[-rank:]
        pairs = zip(field, result, strict=True)
        # Windows of adaptive pooling may differ by one element; the model takes one
        # size for all. In the gradient, field and result are exchanged.
        return {"kernel": tuple(max(a, b) // max(min(a, b), 1) for a, b in pairs)}

    return attrs


def _max_pool(rank: int) -> dict[str, Lowering]:
    """Values and indices: the machine finds the place again in the backward pass."""
    attrs_of = _kernel_at(1, rank)

    def lower(context: NodeContext) -> None:
        values, indices = context.result_types()
        attrs = attrs_of(context)
        source = context.inputs()[0]
        names = context.emit("max_pool", [source], [values], attrs=attrs)
        # Only torch's gradient reads them; without other readers they are removed as
        # dead.
        names += context.emit("fill", [], [indices], suffix=".indices")
        context.finish_all(names)

    def lower_backward(context: NodeContext) -> None:
        gradient, source = context.args[:2]
        attrs = _kernel_at(2, rank)(context)
        types = context.result_types()
        context.finish_all(
            context.emit("max_pool_grad", [gradient, source], types, attrs=attrs)
        )

    name = f"aten.max_pool{rank}d_with_indices"
    return {name: lower, f"{name}_backward": lower_backward}


LOWERINGS: dict[str, Lowering] = {
    **_max_pool(2),
    **_max_pool(3),
    "aten.avg_pool2d": one_op("avg_pool", _kernel_at(1, 2)),
    "aten.avg_pool3d": one_op("avg_pool", _kernel_at(1, 3)),
    "aten.avg_pool2d_backward": one_op("avg_pool_grad", _kernel_at(2, 2)),
    "aten.avg_pool3d_backward": one_op("avg_pool_grad", _kernel_at(2, 3)),
    "aten._adaptive_avg_pool2d": one_op("avg_pool", _adaptive(2)),
    "aten._adaptive_avg_pool3d": one_op("avg_pool", _adaptive(3)),
    "aten._adaptive_avg_pool2d_backward": one_op("avg_pool_grad", _adaptive(2)),
    "aten._adaptive_avg_pool3d_backward": one_op("avg_pool_grad", _adaptive(3)),
}
