"""What a compiled model can be asked for besides running: costs, times, names, files.

The base of PoplarExecutor; it has no state of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import Any

import torch

from popple.errors import suggest

from ._compile import CompiledStep
from ._compiled_model import CompiledModel
from ._counters import CallTimes, Latency, PerfCounters
from ._device import is_ipu_model
from ._errors import Error, check
from ._modelling import ModelledCost
from ._tensor_names import UPDATED
from .options import Options

__all__ = ["ExecutorServices"]


class ExecutorServices(ABC):
    """Questions about a compiled model; the executor itself holds the answers."""

    _options: Options
    _compiled: CompiledModel | None
    _cost: ModelledCost | None

    @abstractmethod
    def _get_compiled(self) -> CompiledModel:
        """The compiled model; Error if there is none."""

    @abstractmethod
    def isAttachedToDevice(self) -> bool:
        """Whether the model holds its IPUs."""

    # -- what is inside

    def getTensorNames(self) -> list[str]:
        """Names of all tensors that can be anchored."""
        check(self._compiled is not None, "The model must be compiled first.")
        return self._tensors_of(self._get_compiled().step)

    def _tensors_of(self, step: CompiledStep) -> list[str]:
        """Tensors of the step, and weights after their update."""
        return [*step.tensors, *(f"{UPDATED}{name}" for name in step.traced.trainable)]

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

    # -- what it costs

    def cycleCount(self) -> int:
        """Cycles of one call, as the model of the IPU has them."""
        if is_ipu_model(self._options):
            raise Error("Cycle count logging is only supported on actual IPU hardware.")
        if not self._options._Popart.options.get("instrumentWithHardwareCycleCounter"):
            raise Error(
                "Cycle count logging is disabled. Please set option logCycleCount to "
                "True to enable."
            )
        if self._cost is None or self._compiled is None or not self._compiled.has_run:
            raise Error(
                "Please run the model at least once before obtaining cycle count."
            )
        return self._cost.modelled().simulation.cost.cycles

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
