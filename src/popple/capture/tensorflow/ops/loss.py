"""Losses that TensorFlow keeps whole: each gives its gradient beside its value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known
from popple.graph import Phase


def lower_cross_entropy(context: OpContext) -> Sequence[Known]:
    """Logits and labels (indices or probabilities): losses, gradient of the logits.

    The gradient is what log-softmax and the likelihood's gradients make of it; it
    costs nothing if nobody reads it.
    """
    logits, labels = context.name(0), context.name(1)
    losses, gradient = context.result_types()
    dim = {"dim": max(len(gradient.shape) - 1, 0)}
    logs = context.emit_one(
        "log_softmax", [logits], gradient, suffix=".log_softmax", attrs=dim
    )
    kind = "nll_loss" if context.kind.startswith("Sparse") else "kl_div_loss"
    loss = context.emit_one(kind, [logs, labels], losses)
    behind = replace(context, tag=replace(context.tag, phase=Phase.BACKWARD))
    inner = behind.emit_one(
        f"{kind}_grad", [logs, labels], gradient, suffix=".likelihood"
    )
    outer = behind.emit_one(
        "log_softmax_grad", [inner, logs], gradient, suffix=".gradient", attrs=dim
    )
    return [loss, outer]


def lower_ctc(context: OpContext) -> Sequence[Known]:
    """Logits and labels: the loss of every sequence, gradient of the logits."""
    names = context.names()[:2]
    loss, gradient = context.result_types()
    value = context.emit_one("ctc_loss", names, loss)
    behind = replace(context, tag=replace(context.tag, phase=Phase.BACKWARD))
    found = behind.emit_one("ctc_loss_grad", names, gradient, suffix=".gradient")
    return [value, found]


RULES: dict[str, Rule] = {
    "SparseSoftmaxCrossEntropyWithLogits": lower_cross_entropy,
    "SoftmaxCrossEntropyWithLogits": lower_cross_entropy,
    "CTCLoss": lower_ctc,
    "CTCLossV2": lower_ctc,
}
