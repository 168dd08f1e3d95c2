"""Softmax and log-softmax, along the last dimension."""

from __future__ import annotations

from collections.abc import Sequence

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known


def _softmax(kind: str) -> Rule:
    def lower(context: OpContext) -> Sequence[Known]:
        result = context.result_type()
        attrs = {"dim": max(len(result.shape) - 1, 0)}
        return [context.emit_one(kind, [context.name(0)], result, attrs=attrs)]

    return lower


RULES: dict[str, Rule] = {
    "Softmax": _softmax("softmax"),
    "LogSoftmax": _softmax("log_softmax"),
}
