"""PopLibs' log lines: one for every op that is planned, by the library it belongs to.

INFO names the op with its shapes and the rule that planned it, DEBUG what the rule
chose, TRACE the plans it did not take and the tiles of the results.
"""

from __future__ import annotations

import logging

from popple.graph import Op, Signature, get_op
from popple.logs import TRACE, get_logger
from popple.plan.opplan import OpPlan, TileMapping

LIBRARY_OF_FAMILY = {
    "conv": "POPLIN",
    "matmul": "POPLIN",
    "solve": "POPLIN",
    "ctc": "POPNN",
    "loss": "POPNN",
    "norm": "POPNN",
    "pool": "POPNN",
    "recurrent": "POPNN",
    "softmax": "POPNN",
    "random": "POPRAND",
    "control": "POPUTIL",
    "copy": "POPUTIL",
    "shape": "POPUTIL",
}
"""The library that has a family's ops; all others are in popops."""
_OTHERS = "POPOPS"


def log_plan(op: Op, signature: Signature, plan: OpPlan) -> None:
    """Log what was planned for an op, as far as someone wants to see it."""
    library = LIBRARY_OF_FAMILY.get(get_op(signature.kind).family, _OTHERS)
    log = get_logger("poplibs", library)
    if not log.isEnabledFor(logging.INFO):
        return
    log.info("%s::%s %s", library.lower(), _render_call(op, signature), plan.rule)
    if log.isEnabledFor(logging.DEBUG):
        _log_choice(log, op, plan)
    if log.isEnabledFor(TRACE):
        for name, mapping in zip(op.outputs, plan.outputs, strict=True):
            _log_tiles(log, name, mapping)


def _render_call(op: Op, signature: Signature) -> str:
    place = f" ({op.line})" if op.line else ""
    return f"{signature} name={op.name}{place}, planned by the rule"


def _log_choice(log: logging.Logger, op: Op, plan: OpPlan) -> None:
    for what, chosen in plan.choice:
        log.debug("%s: %s: %s", op.name, what, chosen)
    if plan.is_memory_bound:
        log.debug(
            "%s: a faster plan needs more temporary memory than "
            "availableMemoryProportion allows",
            op.name,
        )
    for name, cycles in plan.runners_up:
        log.log(TRACE, "%s: not taken: %s, %d cycles", op.name, name, cycles)


def _log_tiles(log: logging.Logger, name: str, mapping: TileMapping) -> None:
    """The tiles of a result: equal neighbours on one line, as there are thousands."""
    first = 0
    for count, num_bytes in mapping.bytes_by_tile.runs:
        if num_bytes:
            last = first + count - 1
            log.log(TRACE, "%s: tiles %d to %d: %d bytes", name, first, last, num_bytes)
        first += count
