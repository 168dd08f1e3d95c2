"""Where every op of a compiled model was put, for the log.

enablePipelining set to value 1
encoder/MatMul:0 [float32(16, 64), mode(Pipelined), ipu(0), stage(0)]
"""

from __future__ import annotations

from collections.abc import Iterator

from popple.engine.torch.session.step import CompiledStep
from popple.graph import Strategy

from .. import _translate as translate
from .._logging import logger
from .._tracing.strategies import SerialPhasedExecution, _IPhasedExecution
from ..enums import Liveness
from ..options import Options
from .tensor_names import NamedOp, named_ops, type_text

__all__ = ["log_placement"]

# Phases between two of the user's in which tensors travel to memory off the chip.
_STRIDES = {
    Liveness.AlwaysLive: 1,
    Liveness.OffChipAfterFwd: 1,
    Liveness.OffChipAfterFwdNoOverlap: 2,
    Liveness.OffChipAfterEachPhase: 4,
}
_KINDS_OF_TENSORS = ("activation", "weight", "optimizer", "accumulator")


def log_placement(step: CompiledStep, options: Options) -> None:
    """Write what follows from the blocks, and the place of each op."""
    ops = named_ops(step.traced, step.lowered, options._module_namescope_enabled)
    for name, value in _settings(step, ops, options):
        logger.debug("%s set to value %s", name, value)
    for named in ops:
        place = _place(named, options)
        logger.debug("%s [%s, %s]", named.name, type_text(named.type), place)


def _settings(
    step: CompiledStep, ops: list[NamedOp], options: Options
) -> Iterator[tuple[str, object]]:
    """What the blocks and the strategy decide."""
    is_pipelined = translate.core_strategy(options) is Strategy.PIPELINED
    yield "enablePipelining", int(is_pipelined and step.num_chips > 1)
    strategy = options._execution_strategy
    if not isinstance(strategy, _IPhasedExecution):
        return
    yield "executionPhaseSettings.phases", _num_phases(ops, strategy)
    is_serial = isinstance(strategy, SerialPhasedExecution)
    yield "executionPhaseSettings.stages", 1 if is_serial else 2
    for kind in _KINDS_OF_TENSORS:
        if not options.TensorLocations.exists(f"location_{kind}"):
            yield f"location_{kind}", "useOnChipStorage(False)"


def _num_phases(ops: list[NamedOp], strategy: _IPhasedExecution) -> int:
    """Phases up to the backward pass, with those in which tensors travel."""
    stages = [named.op.stage for named in ops]
    last = max(stages, default=0) * _STRIDES[strategy._tensors_liveness]
    if strategy._tensors_liveness is not Liveness.AlwaysLive:
        return last + 4
    return last + (2 if strategy._separate_backward_phase else 1)


def _place(named: NamedOp, options: Options) -> str:
    strategy, op = options._execution_strategy, named.op
    if isinstance(strategy, _IPhasedExecution):
        phase = op.stage * _STRIDES[strategy._tensors_liveness]
        return f"mode(Phased), ipu({op.chip}), phase({phase})"
    if translate.core_strategy(options) is Strategy.SHARDED:
        return f"mode(Sharded), ipu({op.chip})"
    return f"mode(Pipelined), ipu({op.chip}), stage({op.stage})"
