"""Lowering of fills and ranges: zeros, ones, full, arange; examples give the shape."""

from __future__ import annotations

from popple.capture.torch.aten.forms import Lowering, emit_one
from popple.capture.torch.builder import NodeContext

_FILLS = (
    "empty",
    "empty_like",
    "empty_strided",
    "full",
    "full_like",
    "zeros",
    "zeros_like",
    "ones",
    "ones_like",
    "new_empty",
    "new_full",
    "new_ones",
    "new_zeros",
    "new_empty_strided",
    "scalar_tensor",
    "fill",
    "zero",
    "eye",
)


def lower_fill(context: NodeContext) -> None:
    """A constant tensor; the in-place form overwrites its argument."""
    # An example only gives its shape; as an input it would be kept alive for this.
    sources = context.inputs()[:1] if context.is_in_place else []
    emit_one(context, "fill", sources=sources)


def lower_iota(context: NodeContext) -> None:
    """Numbers in equal steps."""
    emit_one(context, "iota", sources=[])


LOWERINGS: dict[str, Lowering] = {
    **{f"aten.{name}": lower_fill for name in _FILLS},
    "aten.arange": lower_iota,
    "aten.linspace": lower_iota,
    "aten.logspace": lower_iota,
}
