"""What a compiled model can be asked for besides running: costs, times, names, files.

The base of PoplarExecutor; it has no state of its own.
"""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch

from popple.errors import suggest

from ._arguments.args import BoundArgs
from ._device import is_ipu_model
from ._errors import Error, check
from ._logging import logger
from ._model.counters import CallTimes, Latency, PerfCounters
from ._model.saving import (
    Description,
    Exported,
    SavedModel,
    examples_of,
    plain_arguments,
    read_model,
    save_path,
)
from .options import Options

if TYPE_CHECKING:
    from ._compiled_model import CompiledModel
    from ._model.compilation import Link
    from ._modelling import ModelledCost

__all__ = ["ExecutorServices"]


class ExecutorServices(ABC):
    """Questions about a compiled model; the executor itself holds the answers."""

    model: Any
    _options: Options
    _optimizer: torch.optim.Optimizer | None
    _training: bool
    _poptorch_version: str
    _link: Link
    _compiled: CompiledModel | None
    _cost: ModelledCost | None

    @abstractmethod
    def _get_compiled(self) -> CompiledModel:
        """The compiled model; Error if there is none."""

    @abstractmethod
    def _compile(self, bound: BoundArgs) -> CompiledModel:
        """Compile for these arguments."""

    @abstractmethod
    def _sync_to_host(self) -> None:
        """Bring what the device has changed to the host."""

    @abstractmethod
    def isAttachedToDevice(self) -> bool:
        """Whether the model holds its IPUs."""

    @abstractmethod
    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile for these arguments without running."""

    @abstractmethod
    def destroy(self) -> None:
        """Forget the compiled model."""

    @property
    def _executable(self) -> CompiledModel | None:
        """What programs look at to know whether the model is compiled."""
        return self._compiled

    # -- what is inside

    def getTensorNames(self) -> list[str]:
        """Names of all tensors that can be anchored."""
        from ._model.compilation import tensor_names

        check(self._compiled is not None, "The model must be compiled first.")
        return tensor_names(self._get_compiled().step, self._link)

    def _debugGetPopartIR(self) -> str:
        """The ops of the forward pass as JSON, by the original's names."""
        ops = [
            {"name": named.name, "type": named.kind, "inputs": list(named.op.inputs)}
            for named in self._get_compiled().step.ops
        ]
        return json.dumps({"maingraph": ops})

    def getAnchoredTensor(self, short_name: str) -> torch.Tensor:
        """What the newest call left in an anchored tensor."""
        anchored = {} if self._compiled is None else self._compiled.anchored
        check(
            short_name in anchored,
            f"No tensor was anchored as {short_name}, or the model has not run. "
            f"{suggest(short_name, anchored)}",
        )
        return anchored[short_name]

    # -- when things happened

    def getPerfCounters(self) -> PerfCounters:
        """Times of the newest call, in seconds, by event and tensor."""
        if self._compiled is None:
            return self._times().counters(0, 0)
        traced = self._compiled.step.traced
        return self._times().counters(traced.num_inputs, traced.num_outputs)

    def getHostIpuLatency(self) -> Latency:
        """Least, greatest and average time to send an input, in seconds."""
        return self._times().host_to_ipu()

    def getComputeLatency(self) -> Latency:
        """Least, greatest and average time from input to output, in seconds."""
        return self._times().compute()

    def getIpuHostLatency(self) -> Latency:
        """Least, greatest and average time to fetch an output, in seconds."""
        return self._times().ipu_to_host()

    def getLatency(self) -> Latency:
        """Least, greatest and average time of a round trip, in seconds."""
        return self._times().round_trip()

    def _times(self) -> CallTimes:
        return CallTimes() if self._compiled is None else self._compiled.times

    # -- random numbers

    @property
    def rng_state(self) -> list[int]:
        """Seed and state of the device's random numbers."""
        return self._get_compiled().random.read()

    @rng_state.setter
    def rng_state(self, state: list[int]) -> None:
        compiled = self._get_compiled()
        compiled.random.write(state)
        if self.isAttachedToDevice():
            compiled.random.send()

    # -- files

    def save(
        self, filename: str, export_model: bool = True, save_rng_state: bool = True
    ) -> None:
        """Write the compiled model to a file, with the module unless told otherwise.

        `poptorch.load` gives back a file with the module; one without is for
        `loadExecutable` of a model wrapped again.
        """
        compiled = self._get_compiled()
        state = self.rng_state if save_rng_state else []
        arguments = examples_of(compiled.arguments)
        exported = None
        if export_model:
            self._sync_to_host()
            parts = (self.model, self._options, self._optimizer)
            exported = Exported(*parts, arguments)
        saved = SavedModel(
            Description(self._poptorch_version, self._training, state),
            plain_arguments(arguments),
            exported,
        )
        saved.write(save_path(filename))

    def __getstate__(self) -> dict[str, Any]:
        """Models are saved in files of their own once they are compiled."""
        if self._compiled is not None:
            raise Error(
                "A compiled model cannot be pickled. Use model.save(file) and "
                "poptorch.load(file), or pickle model.model, the module."
            )
        return dict(self.__dict__)

    def compileAndExport(
        self, filename: str, *args: Any, export_model: bool = True, **kwargs: Any
    ) -> None:
        """Compile for these arguments and write the model to a file."""
        self.compile(*args, **kwargs)
        self.save(filename, export_model)

    def loadExecutable(self, filename: str) -> None:
        """Compile as a file of `save` or `compileAndExport` says."""
        try:
            saved = read_model(filename, self._poptorch_version, with_model=False)
        except ValueError as error:
            raise Error(f"Invalid file {filename}: {error}") from error
        if saved.arguments is None:
            raise Error(
                f"{filename} was compiled for arguments of the program's own types, "
                "which only poptorch.load() can read."
            )
        self._compile_for(saved.arguments)

    def _compile_for(self, arguments: BoundArgs) -> None:
        """Compile anew for arguments that were saved."""
        self.destroy()
        self._compile(arguments)

    # -- what it costs

    def cycleCount(self) -> int:
        """Cycles of one call, as the model of the IPU has them."""
        self._check_cycle_counter()
        if not self._counts_cycles:
            raise Error(
                "Cycle count logging is disabled. Please set option logCycleCount to "
                "True to enable."
            )
        if self._cost is None or self._compiled is None or not self._compiled.has_run:
            raise Error(
                "Please run the model at least once before obtaining cycle count."
            )
        return self._cost.cycles()

    @property
    def _counts_cycles(self) -> bool:
        options = self._options._Popart.options
        return bool(options.get("instrumentWithHardwareCycleCounter"))

    def _check_cycle_counter(self) -> None:
        """Error if cycles are to be counted where there are none."""
        if self._counts_cycles and is_ipu_model(self._options):
            raise Error("Cycle count logging is only supported on actual IPU hardware.")

    def _log_cycles(self) -> None:
        """Write the cycles of a call to the log, if they are counted."""
        if self._counts_cycles and logger.isEnabledFor(logging.DEBUG):
            logger.debug("Total number of IPU cycles: %d", self.cycleCount())

    def compilationTime(self) -> timedelta:
        """How long compiling took."""
        if self._cost is None:
            raise Error("Please compile the model before obtaining compilation time.")
        if not self._options._show_compilation_progress_bar:
            raise Error(
                "Please set showCompilationProgressBar option to obtain compilation "
                "time."
            )
        return self._cost.compilation_time

    def __popple__(self) -> Any:
        """The model of this program on its IPUs, for `popple.modelled(executor)`."""
        self._get_compiled()
        assert self._cost is not None
        return self._cost.modelled()
