"""Connectionist temporal classification, as `popple.capture.torch.ctc` traces it."""

from __future__ import annotations

from popple.capture.torch.aten.forms import Lowering
from popple.capture.torch.builder import NodeContext
from popple.graph import TensorType
from popple.marks import CTC, CTC_BACKWARD


def lower_ctc(context: NodeContext) -> None:
    """The losses and, in place of torch's table, the gradient that is made with them.

    The machine has no use for the table: what it keeps for the backward pass is the
    gradient of every chance.
    """
    chances = context.args[0]
    losses = context.result_types()[0]
    types = [losses, context.type_of(chances)]
    context.finish_all(context.emit("ctc_loss", context.inputs(), types))


def lower_ctc_backward(context: NodeContext) -> None:
    """The gradient is there; it is scaled by that of each loss."""
    # torch passes its table here: in the Graph it is the gradient of every chance.
    gradient, found = context.args[0], context.args[6]
    (result,) = context.result_types()
    each = TensorType(result.dtype, (1, result.shape[1], 1))
    name = context.builder.name_of(gradient)
    (scale,) = context.emit("reshape", [name], [each], suffix=".each", storage=name)
    context.finish_all(context.emit("mul", [found, scale], [result]))


LOWERINGS: dict[str, Lowering] = {
    CTC: lower_ctc,
    CTC_BACKWARD: lower_ctc_backward,
}
