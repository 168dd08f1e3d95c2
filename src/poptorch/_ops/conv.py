"""`MultiConv`: convolutions that do not depend on each other, run side by side."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.fx import Node

from popple.graph import DType, Notes
from popple.graph import MultiConv as Group

from .._errors import Error, check
from .._tracing.trace import find_trace
from ..enums import MultiConvPlanType

if TYPE_CHECKING:
    from popple.capture.torch import ActiveTrace

__all__ = ["MultiConv"]

Value = TypeVar("Value")

_CONVOLUTION = torch.ops.aten.convolution.default
_PARTIALS = {torch.float32: DType.F32, torch.float16: DType.F16}

# The trace in which a MultiConv is open, and the node before the first inside it.
_open: ContextVar[tuple[ActiveTrace, Node | None] | None] = ContextVar(
    "open_multi_conv", default=None
)


class MultiConv:
    """`with MultiConv():` the convolutions inside are planned together.

    Options that speak of each convolution take one value for all, or one for each in
    the order they run. Values of the results do not depend on any of them.
    """

    def __init__(self) -> None:
        self._available_memory_proportions: Sequence[float] | None = None
        self._partials_types: Sequence[DType] | None = None
        self._plan_type: MultiConvPlanType | None = None
        self._per_conv_reserved_tiles: int | None = None
        self._cycle_back_off: float | None = None
        self._enable_conv_ditherings: Sequence[bool] | None = None

    def availableMemoryProportions(self, value: float | list[float]) -> MultiConv:
        """Share of a tile's memory that each convolution may use for itself."""
        message = "Invalid available memory proportion!"
        self._available_memory_proportions = _per_conv(value, float, message)
        return self

    def partialsTypes(self, value: torch.dtype | list[torch.dtype]) -> MultiConv:
        """Type of each convolution's partial sums: torch.float or torch.half."""
        types = value if isinstance(value, (list, tuple)) else [value]
        if not all(dtype in _PARTIALS for dtype in types):
            raise ValueError(
                "Invalid partials types. Expecting torch.float or torch.half"
            )
        self._partials_types = [_PARTIALS[dtype] for dtype in types]
        return self

    def enableConvDithering(self, value: bool | list[bool]) -> MultiConv:
        """Whether convolutions begin on different tiles, to spread their memory."""
        values = value if isinstance(value, (list, tuple)) or value is None else [value]
        if values is not None and not all(isinstance(v, bool) for v in values):
            raise ValueError("enableConvDithering takes a bool or a list of bools")
        self._enable_conv_ditherings = values
        return self

    def planType(self, value: MultiConvPlanType) -> MultiConv:
        """Whether convolutions run at the same time or one after the other."""
        is_known = value is None or isinstance(value, MultiConvPlanType)
        check(is_known, "Invalid plan type!")
        self._plan_type = value
        return self

    def perConvReservedTiles(self, value: int) -> MultiConv:
        """Tiles that each convolution has at least."""
        check(isinstance(value, int), "The number of reserved tiles must be an int.")
        self._per_conv_reserved_tiles = value
        return self

    def cycleBackOff(self, value: float) -> MultiConv:
        """How much slower than the fastest plan a plan may be, from 0 to 1."""
        check(isinstance(value, float), "The cycle back-off must be a float.")
        self._cycle_back_off = value
        return self

    def __enter__(self) -> None:
        trace = find_trace()
        if trace is None:
            return
        opened = _open.get()
        if opened is not None and opened[0] is trace:
            raise Error("Nested poptorch.MultiConv is not supported.")
        _open.set((trace, trace.newest_node()))

    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        opened = _open.get()
        if opened is None:
            return
        _open.set(None)
        if value is None:
            trace, before = opened
            self._plan(trace.nodes_after(before))

    def _plan(self, nodes: list[Node]) -> None:
        from popple.capture.torch import note_node

        convolutions = [node for node in nodes if _is_convolution(node)]
        if not convolutions:
            raise Error(
                "Unexpected end_multi_conv: there is no convolution inside a "
                "poptorch.MultiConv."
            )
        memory = _paired(
            convolutions, self._available_memory_proportions, "memory_proportion"
        )
        partials = _paired(convolutions, self._partials_types, "partials")
        for node, share in memory:
            note_node(node, Notes(memory_proportion=share))
        for node, dtype in partials:
            note_node(node, Notes(partials=dtype))
        if self._plan_type is not MultiConvPlanType.Serial:
            for node in convolutions:
                note_node(node, self._group(convolutions[0]))

    def _group(self, first: Node) -> Notes:
        """What the convolutions that run side by side have in common."""
        tiles, back_off = self._per_conv_reserved_tiles, self._cycle_back_off
        return Notes(multi_conv=Group(first.name, tiles, back_off))


def _is_convolution(node: Node) -> bool:
    """A convolution that is not a transposed one."""
    return node.target is _CONVOLUTION and not node.args[6]


def _paired(
    nodes: list[Node], values: Sequence[Value] | None, name: str
) -> list[tuple[Node, Value]]:
    if values is None:
        return []
    if len(values) == 1:
        values = [values[0]] * len(nodes)
    if len(values) != len(nodes):
        raise Error(
            f"A poptorch.MultiConv has {len(nodes)} convolutions and {len(values)} "
            f"values of {name}: give one for each, or one for all."
        )
    return list(zip(nodes, values, strict=True))


def _per_conv(value: Any, kind: type[Value], message: str) -> Sequence[Value] | None:
    """One value, or one for each convolution, as a sequence."""
    if value is None:
        return None
    values = value if isinstance(value, (list, tuple)) else (value,)
    check(values and all(isinstance(v, kind) for v in values), message)
    return values
