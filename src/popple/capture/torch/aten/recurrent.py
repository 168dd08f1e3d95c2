"""Lowering of LSTM and GRU layers, as `popple.capture.torch.recurrent` traces them."""

from __future__ import annotations

import operator
from typing import Any

from torch.fx import Node

from popple.capture.recurrent import kept_type
from popple.capture.torch.aten.forms import Lowering
from popple.capture.torch.builder import NodeContext
from popple.graph import Attr
from popple.marks import RECURRENT, RECURRENT_BACKWARD


def lower_recurrent(context: NodeContext) -> None:
    """The layer; what its gradient needs is a result if there is a gradient."""
    *types, _ = context.result_types()
    # In the trace this result is an empty tensor that carries torch's tape; on the
    # machine it is what each step keeps for the backward pass.
    if _is_read(context.node, len(types)):
        types.append(kept_type(str(context.args[3]), types[0]))
    names: list[Any] = context.emit(
        "recurrent", context.inputs(), types, attrs=_attrs(context.args[1:4])
    )
    empty = len(context.result_types()) - len(names)
    context.finish([*names, *[None] * empty])


def lower_recurrent_backward(context: NodeContext) -> None:
    """The gradients of everything the layer read."""
    attrs = _attrs(context.args[3:6])
    types = context.result_types()
    names = context.emit("recurrent_grad", context.inputs(), types, attrs=attrs)
    context.finish_all(names)


def _attrs(arguments: Any) -> dict[str, Attr]:
    states, _, kind = arguments
    return {"cell": str(kind), "num_states": len(states)}


def _is_read(node: Node, index: int) -> bool:
    """Whether something reads one of the node's results."""
    items = (user for user in node.users if user.target is operator.getitem)
    return any(item.args[1] == index and item.users for item in items)


LOWERINGS: dict[str, Lowering] = {
    RECURRENT: lower_recurrent,
    RECURRENT_BACKWARD: lower_recurrent_backward,
}
