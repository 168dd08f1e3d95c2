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
    # TensorFlow computes the gradient with the loss; on the machine it belongs to the
    # backward pass, or the forward pass would keep it alive.
    behind = replace(context, tag=replace(context.tag, phase=Phase.BACKWARD))
    inner = behind.emit_one(
        f"{kind}_grad", [logs, labels], gradient, suffix=".likelihood"
    )
    outer = behind.emit_one(
        "log_softmax_grad", [inner, logs], gradient, suffix=".gradient", attrs=dim
    )
    return [loss, outer]


def lower_ctc(context: OpContext) -> Sequence[Known]:
    """Logits and labels in one row: the loss of every sequence, gradient of the logits.

    How many labels each sequence has is not known here; they share the row alike.
    """
    logits, labels = context.name(0), context.name(2)
    loss, gradient = context.result_types()
    logs = context.emit_one(
        "log_softmax", [logits], gradient, suffix=".log_softmax", attrs={"dim": 2}
    )
    num_labels = -(-context.type_of(labels).num_elements // max(1, loss.num_elements))
    names = [logs, labels, context.name(3)]
    attrs = {"num_labels": max(1, num_labels)}
    return context.emit("ctc_loss", names, [loss, gradient], attrs=attrs)


RULES: dict[str, Rule] = {
    "SparseSoftmaxCrossEntropyWithLogits": lower_cross_entropy,
    "SoftmaxCrossEntropyWithLogits": lower_cross_entropy,
    "CTCLoss": lower_ctc,
    "CTCLossV2": lower_ctc,
}
