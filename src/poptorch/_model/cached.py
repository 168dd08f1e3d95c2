"""The executable cache of a model: found before tracing where that can be told.

    key known      the step is read; the model is neither traced nor planned
    key unknown    the model is traced and looked up by its Graph; it is not planned

What was compiled is kept for the next run, if tracing had no effect on the program:
a forward that changes something besides its results would not do so when it is not run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from popple.capture.torch.stored_values import NotStorable
from popple.engine.torch.session import CompiledStep, StepRequest
from popple.engine.torch.session.kept import has_step, pack_step, read_compiled
from popple.errors import DamagedFileError
from popple.session import CostRequest, ExecutableCache, KeptProgram
from popple.session.fingerprint import Unknown
from popple.session.kept import graph_key, graph_part

from .._logging import logger
from .program_key import ProgramKey

__all__ = ["CachedModel"]


class CachedModel:
    """A model's place in the cache `directory`; `found` is its key, if it has one."""

    def __init__(
        self, directory: Path, name: str, found: tuple[ProgramKey, str] | None
    ) -> None:
        self._cache = ExecutableCache(directory)
        self._description = {"framework": "poptorch", "name": name}
        self._key = found
        self._program = None if found is None else self._open(found[1])
        self._is_read = False

    def _open(self, key: str) -> KeptProgram:
        return KeptProgram(self._cache, key, self._description)

    def find_step(self, request: StepRequest) -> CompiledStep | None:
        """The step of an earlier run, if it is there and sound."""
        program = self._program
        if program is None or program.archive is None or not has_step(program.archive):
            return None
        try:
            step = read_compiled(program.archive, request)
            if request.batch_plan.replicas > 1:
                # Replicas are checked for what they share: damage is told now.
                step.traced  # noqa: B018
        except DamagedFileError as error:
            logger.warning("%s The model is compiled again.", error)
            program.forget()
            return None
        self._is_read = True
        return step

    def keep(self, step: CompiledStep, ask: Callable[[], CostRequest]) -> KeptProgram:
        """Keep a step that was compiled; where its cost is kept."""
        if self._is_read:
            assert self._program is not None
            return self._program
        if self._program is not None and self._is_unchanged():
            try:
                parts = pack_step(step)
            except NotStorable as error:
                logger.debug("The model is traced in every run: %s.", error)
            else:
                self._program.add({**parts, **graph_part(step.lowered.graph)})
                return self._program
        asked = ask()
        key = graph_key(asked.graph, asked.options, asked.target)
        program = self._open(key)
        if program.archive is None:
            program.add(graph_part(asked.graph))
        return program

    def _is_unchanged(self) -> bool:
        """Whether the program is what it was before it was traced."""
        assert self._key is not None
        key, value = self._key
        try:
            is_same = key.compute() == value
        except Unknown:
            is_same = False
        if not is_same:
            logger.debug(
                "The model is traced in every run: its forward changes the program."
            )
        return is_same
