"""Execution strategies: which stage and which IPU a block of the model gets.

A strategy is a table from block names to stages, filled in by the user or, for
`AutoStage`, as blocks are met. `resolve` is what the tracer asks. No strategy
changes results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from popple.errors import suggest

from .._errors import Error, check
from .._logging import logger
from ..enums import AutoStage, Liveness

__all__ = [
    "ParallelPhasedExecution",
    "Phase",
    "PipelinedExecution",
    "SerialPhasedExecution",
    "ShardedExecution",
    "Stage",
    "_IExecutionStrategy",
]

BlockId = str


class Stage:
    """Blocks that run one after another on one IPU."""

    def __init__(self, *block_ids: BlockId) -> None:
        check(
            all(isinstance(block, str) for block in block_ids),
            f"Block IDs must be strings but got {block_ids}.",
        )
        self._blocks = block_ids
        self._stage_id = -1
        self._phase_id = -1
        self._ipu: int | None = None

    @property
    def blocks(self) -> tuple[BlockId, ...]:
        """Names of the blocks in this stage."""
        return self._blocks

    def ipu(self, ipu: int) -> Stage:
        """Run this stage on IPU `ipu`, whatever its blocks say."""
        check(isinstance(ipu, int), f"An IPU number must be an integer, not {ipu!r}.")
        self._ipu = ipu
        return self

    def __repr__(self) -> str:
        names = ", ".join(repr(block) for block in self._blocks)
        return f"Stage({names}, ipu={self._ipu})"


class Phase:
    """Stages that run side by side."""

    def __init__(self, *arg: BlockId | Stage) -> None:
        self.stages: Sequence[Stage] = _stages_of_phase(arg)

    def stage(self, idx: int) -> Stage:
        """The stage at position `idx`."""
        return self.stages[idx]

    def ipus(self, *ipus: int) -> None:
        """Give each stage its IPU, in order."""
        check(
            len(ipus) == len(self.stages),
            f"The phase has {len(self.stages)} stages but {len(ipus)} IPUs were given.",
        )
        for stage, ipu in zip(self.stages, ipus, strict=True):
            stage.ipu(ipu)


def _stages_of_phase(parts: tuple[Any, ...]) -> Sequence[Stage]:
    if all(isinstance(part, Stage) for part in parts):
        return parts
    check(
        all(isinstance(part, str) for part in parts),
        "A phase is made of stages or of block IDs (strings), but got "
        f"{[type(part).__name__ for part in parts]}.",
    )
    return [Stage(*parts)]


class _IExecutionStrategy:
    """Base of all strategies: the table and the rule for the IPU."""

    def __init__(self, block_map: dict[BlockId, Stage]) -> None:
        self._block_map = block_map

    def stage(self, block_id: BlockId) -> Stage:
        """The stage that block `block_id` was listed in."""
        check(
            block_id in self._block_map,
            f"Unknown block {block_id}. {suggest(block_id, self._block_map)}",
        )
        return self._block_map[block_id]

    def resolve(self, user_id: BlockId, ipu_id: int | None) -> tuple[int, int]:
        """Stage and IPU of a block met while tracing.

        The IPU is that of the stage if it has one, else the block's, else the
        number of the stage.
        """
        stage = self._stage_for(user_id, ipu_id)
        return stage._stage_id, self._choose_ipu(stage, ipu_id)

    def expect_ipu(self, user_id: BlockId | None, ipu_id: int | None) -> int:
        """The IPU of a block that is not met yet, as far as it is known; or 0."""
        # Not by `resolve`: strategies make stages there, in the order blocks are met.
        stage = None if user_id is None else self._block_map.get(user_id)
        return (ipu_id or 0) if stage is None else self._choose_ipu(stage, ipu_id)

    def _stage_for(self, user_id: BlockId, ipu_id: int | None) -> Stage:
        check(
            user_id in self._block_map,
            f"Unknown Block '{user_id}'. The strategy lists "
            f"{sorted(self._block_map)}; add the block to it or rename it.",
        )
        return self._block_map[user_id]

    def _choose_ipu(self, stage: Stage, ipu_id: int | None) -> int:
        if stage._ipu is not None:
            return stage._ipu
        return stage._stage_id if ipu_id is None else ipu_id

    def backendOptions(self) -> dict[str, Any]:
        """This strategy as entries of `Options.toDict`."""
        return {}


class PipelinedExecution(_IExecutionStrategy):
    """Stages work on different micro-batches at the same time.

    Arguments: nothing, an `AutoStage`, or one per stage: a `Stage`, a block ID, or
    a list of block IDs. The number of a stage is its position.
    """

    def __init__(self, *args: Any) -> None:
        self._auto_stage = AutoStage.SameAsIpu
        self._next_stage_id = 1
        if len(args) == 1 and isinstance(args[0], AutoStage):
            self._auto_stage, args = args[0], ()
        self._is_listed = bool(args)
        stages = [_as_stage(arg) for arg in args]
        for stage_id, stage in enumerate(stages):
            stage._stage_id = stage_id
        super().__init__(_block_map(stages))

    def _stage_for(self, user_id: BlockId, ipu_id: int | None) -> Stage:
        if self._is_listed:
            return super()._stage_for(user_id, ipu_id)
        if user_id not in self._block_map:
            stage = Stage(user_id)
            stage._stage_id = self._new_stage_id(user_id, ipu_id)
            self._block_map[user_id] = stage
        return self._block_map[user_id]

    def _new_stage_id(self, user_id: BlockId, ipu_id: int | None) -> int:
        if self._auto_stage is AutoStage.SameAsIpu:
            check(
                ipu_id is not None,
                f"poptorch.AutoStage.SameAsIpu needs an IPU for every block, but block "
                f"'{user_id}' has none. Give it an ipu_id or list the stages.",
            )
            assert ipu_id is not None
            return ipu_id
        self._next_stage_id += 1
        return self._next_stage_id - 1

    def backendOptions(self) -> dict[str, Any]:
        """This strategy as entries of `Options.toDict`."""
        return {"execution_mode": 0}


class ShardedExecution(PipelinedExecution):
    """Stages run one after another, each on its IPU; arguments as when pipelined."""

    def backendOptions(self) -> dict[str, Any]:
        """This strategy as entries of `Options.toDict`."""
        return {"execution_mode": 1}


class _IPhasedExecution(_IExecutionStrategy):
    """The model runs phase by phase.

    Arguments, one per phase: a `Phase`, a `Stage`, a block ID, a list of stages, or
    a list of block IDs (they form one stage).
    """

    def __init__(self, *phases: Any) -> None:
        check(
            phases,
            "A phased strategy has no AutoStage: list its phases, for example "
            f'{type(self).__name__}("A", "B").',
        )
        self._tensors_liveness = Liveness.AlwaysLive
        self._separate_backward_phase = False
        self._phases = [_as_phase(phase) for phase in phases]
        super().__init__(_block_map(self._numbered_stages()))

    def _numbered_stages(self) -> Iterable[Stage]:
        for phase_id, phase in enumerate(self._phases):
            for stage_id, stage in enumerate(phase.stages):
                stage._phase_id, stage._stage_id = phase_id, stage_id
                yield stage

    def phase(self, phase: int) -> Phase:
        """The phase at position `phase`."""
        check(
            isinstance(phase, int) and phase >= 0,
            f"A phase is named by its position, 0 or more, not {phase!r}.",
        )
        return self._phases[phase]

    def useSeparateBackwardPhase(self, use: bool = True) -> _IPhasedExecution:
        """Begin the backward pass in a phase of its own."""
        check(isinstance(use, bool), f"Expected a bool, not {use!r}.")
        self._separate_backward_phase = use
        return self

    def resolve(self, user_id: BlockId, ipu_id: int | None) -> tuple[int, int]:
        """Phase and IPU of a block met while tracing."""
        stage = self._stage_for(user_id, ipu_id)
        ipu = self._choose_ipu(stage, ipu_id)
        self._check_ipu(user_id, stage._phase_id, ipu)
        return stage._phase_id, ipu

    def _check_ipu(self, user_id: BlockId, phase_id: int, ipu: int) -> None:
        """Raise Error if a block of phase `phase_id` cannot run on `ipu`."""

    def backendOptions(self) -> dict[str, Any]:
        """This strategy as entries of `Options.toDict`."""
        return {
            "execution_mode": 2,
            "separate_backward_phase": self._separate_backward_phase,
            "tensors_liveness": self._tensors_liveness.value,
        }


class ParallelPhasedExecution(_IPhasedExecution):
    """Even phases run on the even IPUs, odd phases on the odd ones, overlapping."""

    def sendTensorsOffChipAfterFwd(
        self, off_chip: bool = True
    ) -> ParallelPhasedExecution:
        """Move tensors off the chip between forward and backward pass."""
        check(isinstance(off_chip, bool), f"Expected a bool, not {off_chip!r}.")
        off, on = Liveness.OffChipAfterFwd, Liveness.AlwaysLive
        self._tensors_liveness = off if off_chip else on
        return self

    def _choose_ipu(self, stage: Stage, ipu_id: int | None) -> int:
        if stage._ipu is None and ipu_id is None:
            return 2 * stage._stage_id + stage._phase_id % 2
        return super()._choose_ipu(stage, ipu_id)

    def _check_ipu(self, user_id: BlockId, phase_id: int, ipu: int) -> None:
        if phase_id % 2 == ipu % 2:
            return
        parity = "odd" if phase_id % 2 else "even"
        raise Error(
            f"Block '{user_id}' is in phase {phase_id} but on IPU {ipu}: with "
            f"ParallelPhasedExecution {parity} phases run on {parity} IPUs. Choose an "
            f"{parity} IPU with `strategy.phase({phase_id}).ipus(...)`."
        )

    def backendOptions(self) -> dict[str, Any]:
        """This strategy as entries of `Options.toDict`."""
        return {**super().backendOptions(), "serial_phases_execution": False}


class SerialPhasedExecution(_IPhasedExecution):
    """All phases run on the same IPUs, one after another."""

    def setTensorsLiveness(self, liveness: Liveness) -> SerialPhasedExecution:
        """How long tensors stay on the chip."""
        check(
            isinstance(liveness, Liveness),
            f"Expected a poptorch.Liveness, not {liveness!r}.",
        )
        self._tensors_liveness = liveness
        return self

    def backendOptions(self) -> dict[str, Any]:
        """This strategy as entries of `Options.toDict`."""
        return {**super().backendOptions(), "serial_phases_execution": True}


def _as_stage(part: Any) -> Stage:
    if isinstance(part, Stage):
        return part
    names = [part] if isinstance(part, str) else part
    check(
        isinstance(names, (list, tuple)) and all(isinstance(n, str) for n in names),
        f"A stage is a Stage, a block ID or a list of block IDs, not {part!r}.",
    )
    return Stage(*names)


def _as_phase(part: Any) -> Phase:
    if isinstance(part, Phase):
        return part
    return Phase(*part) if isinstance(part, list) else Phase(part)


def _block_map(stages: Iterable[Stage]) -> dict[BlockId, Stage]:
    """Block name -> stage; AssertionError if a block is in two stages."""
    table: dict[BlockId, Stage] = {}
    for stage in stages:
        for block in stage.blocks:
            check(
                block not in table,
                f"Block '{block}' is associated with more than one stage.",
            )
            logger.debug("block %s added to %r", block, stage)
            table[block] = stage
    return table
