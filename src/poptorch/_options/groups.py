"""The option groups a user reaches through `Options`: one class per group.

`_TrainingOptions`, `_PrecisionOptions`, `_DistributedOptions` and `_JitOptions` are
`Options.Training` and so on; `_PopartOptions`, at `Options._Popart`, holds the values
the backend reads and some of the others write to.
"""

from __future__ import annotations

import os
from typing import Any

import torch

from .._errors import check
from .._logging import logger
from ..enums import MeanReductionStrategy, ReductionType
from .base import Freezable, OptionsDict, OptionSpec, Store, positive, setter
from .notices import note_backend_name

__all__ = [
    "_DistributedOptions",
    "_JitOptions",
    "_PopartOptions",
    "_PrecisionOptions",
    "_TrainingOptions",
]


class _PopartOptions(Freezable):
    """Values by the backend's own names, unchecked until a model is compiled."""

    def __init__(self) -> None:
        self._is_frozen = False
        self.options: dict[str, Any] = {
            "instrumentWithHardwareCycleCounter": False,
            "rearrangeAnchorsOnHost": False,
        }

    def set(self, key: str, value: Any) -> _PopartOptions:
        """Set the backend's option `key`; enumerations are given as integers."""
        note_backend_name(key)
        return self._put(key, value)

    def _put(self, key: str, value: Any) -> _PopartOptions:
        """Set what an option of another name stands for."""
        self.checkIsFrozen()
        self.options[key] = value
        return self

    def setEngineOptions(self, engine_options: dict[str, str]) -> _PopartOptions:
        """Set the options of the engine, by name."""
        return self._put("engineOptions", engine_options)

    def setPatterns(self, patterns: dict[str, bool], level: int = 2) -> _PopartOptions:
        """Switch graph rewrites on and off, on top of those of `level`."""
        check(isinstance(level, int), "The pattern level must be an integer.")
        check(isinstance(patterns, dict), "Patterns must be a dict of name: bool.")
        self._put("patterns_level", level)
        return self._put("patterns", patterns)

    def __repr__(self) -> str:
        body = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f"{type(self).__name__}({body})"


class _JitOptions(OptionsDict):
    """A group without effect, kept for old programs."""

    def traceModel(self, trace_model: bool) -> _JitOptions:
        """Deprecated: False is the only value that works, and the default."""
        logger.warning(
            "[Deprecated] options.Jit.traceModel() has no effect: models are never "
            "compiled by the TorchScript tracer. Remove the call."
        )
        if trace_model:
            raise ValueError(
                "options.Jit.traceModel(True) is no longer supported. Remove the call."
            )
        return self


_PARTIALS_NAMES = {torch.float32: "float", torch.float16: "half"}


class _PrecisionOptions(OptionsDict):
    """Number formats and what happens when they overflow."""

    def __init__(self, popart_options: _PopartOptions) -> None:
        self._popart = popart_options
        super().__init__()

    enableFloatingPointExceptions = setter(
        OptionSpec(
            "enableFloatingPointChecks",
            "Raise an Error when a call divides by zero, overflows or makes a NaN.",
            accepts=bool,
            store=Store.BACKEND,
            argument="enabled",
        )
    )
    enableStochasticRounding = setter(
        OptionSpec(
            "enableStochasticRounding",
            "Round to float16 up or down at random, so that the mean is kept.",
            store=Store.BACKEND,
            argument="enabled",
        )
    )

    def setPartialsType(self, dtype: torch.dtype) -> _PrecisionOptions:
        """Format of partial sums in products and convolutions: float or half."""
        if dtype not in _PARTIALS_NAMES:
            raise ValueError(
                f"setPartialsType takes torch.float or torch.half, not {dtype}"
            )
        name = _PARTIALS_NAMES[dtype]
        self._popart._put("partialsTypeMatMuls", name)
        self._popart._put("convolutionOptions", {"partialsType": name})
        return self

    def halfFloatCasting(self, half_float_casting: Any) -> _PrecisionOptions:
        """Deprecated: half mixed with float becomes float, as in PyTorch."""
        logger.warning(
            "[Deprecated] options.Precision.halfFloatCasting(%s) has no effect: half "
            "mixed with float becomes float, as in PyTorch. Remove the call.",
            half_float_casting,
        )
        return self

    def runningStatisticsAlwaysFloat(self, value: bool) -> _PrecisionOptions:
        """Deprecated: running statistics keep the format of their buffers."""
        if not isinstance(value, bool):
            raise ValueError("runningStatisticsAlwaysFloat takes a bool")
        logger.warning(
            "[Deprecated] options.Precision.runningStatisticsAlwaysFloat() has no "
            "effect: statistics keep the type of their buffers. Remove the call."
        )
        return self


class _TrainingOptions(OptionsDict):
    """Options that only matter when training."""

    def __init__(self, popart_options: _PopartOptions) -> None:
        self._popart = popart_options
        super().__init__(accumulation_and_replication_reduction_type=ReductionType.Mean)

    gradientAccumulation = setter(
        OptionSpec(
            "gradient_accumulation",
            "Micro-batches whose gradients are added up before one weight update.",
            default=1,
            complain=positive,
        )
    )
    setMeanAccumulationAndReplicationReductionStrategy = setter(
        OptionSpec(
            "meanAccumulationAndReplicationReductionStrategy",
            "When a mean over gradients divides; changes rounding only.",
            default=MeanReductionStrategy.Post,
            argument="mean_reduction_strategy",
        )
    )
    setAutomaticLossScaling = setter(
        OptionSpec(
            "automaticLossScalingSettings.enabled",
            "Adapt the loss scale while training, from the optimiser's value on.",
            store=Store.BACKEND,
            argument="enabled",
        )
    )
    setConvolutionDithering = setter(
        OptionSpec(
            "convolutionOptions",
            "Start different convolutions on different tiles, to balance memory.",
            store=Store.BACKEND,
            argument="enabled",
            stored=lambda enabled: {"enableConvDithering": enabled},
        )
    )

    def accumulationAndReplicationReductionType(
        self, reduction_type: ReductionType
    ) -> _TrainingOptions:
        """Whether gradients of micro-batches and replicas are averaged or added."""
        is_reduction = isinstance(reduction_type, ReductionType)
        if not is_reduction or reduction_type is ReductionType.NoReduction:
            raise ValueError(
                "accumulationAndReplicationReductionType must be set to "
                "poptorch.ReductionType.Mean or poptorch.ReductionType.Sum, not "
                f"{reduction_type!r}"
            )
        self.set(accumulation_and_replication_reduction_type=reduction_type)
        return self


class _DistributedOptions(OptionsDict):
    """Which of how many processes this one is."""

    def __init__(self) -> None:
        super().__init__(
            num_distributed_processes=1, distributed_process_id=0, ipuof_configs={}
        )
        self.setEnvVarNames("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")

    def disable(self) -> _DistributedOptions:
        """Run alone, whatever the environment says."""
        return self.configureProcessId(0, 1)

    def setEnvVarNames(
        self, var_num_processes: str, var_process_id: str
    ) -> _DistributedOptions:
        """Read the number of processes and the own number from the environment."""
        return self.configureProcessId(
            int(os.environ.get(var_process_id, "0")),
            int(os.environ.get(var_num_processes, "1")),
        )

    def configureProcessId(
        self, process_id: int, num_processes: int
    ) -> _DistributedOptions:
        """Say that this is process `process_id` of `num_processes`."""
        self.set(
            distributed_process_id=process_id, num_distributed_processes=num_processes
        )
        return self

    @property
    def processId(self) -> int:
        """Number of this process, from 0."""
        return self.distributed_process_id

    @property
    def numProcesses(self) -> int:
        """How many processes there are."""
        return self.num_distributed_processes
