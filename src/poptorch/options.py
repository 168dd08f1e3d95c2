"""Everything a user can set about how a model is compiled and run.

`Options` is the root; its groups are `Training`, `Precision`, `TensorLocations`,
`Distributed`, `Jit` and `_Popart`. Setters return the object they belong to, so
calls can be chained; values are read back as attributes. `option_names` lists
every setter, for whoever must account for all of them.
"""

from __future__ import annotations

import copy
import inspect
import os
from typing import Any

import torch

from ._errors import ConfigFileError, check
from ._logging import logger
from ._model.progress import ProgressBar
from ._ops.scope import Attribute
from ._options.base import check_type
from ._options.files import apply_file, apply_json
from ._options.former import with_former_arguments
from ._options.groups import (
    _DistributedOptions,
    _JitOptions,
    _PopartOptions,
    _PrecisionOptions,
    _TrainingOptions,
)
from ._options.locations import TensorLocationSettings, _TensorLocationOptions
from ._options.notices import noting
from ._options.root import _SimpleOptions
from ._tracing.strategies import (
    ParallelPhasedExecution,
    Phase,
    PipelinedExecution,
    SerialPhasedExecution,
    ShardedExecution,
    Stage,
    _IExecutionStrategy,
)
from .enums import CommGroupType, ConnectionType, OutputMode

__all__ = [
    "Attribute",
    "ConfigFileError",
    "Options",
    "ParallelPhasedExecution",
    "Phase",
    "PipelinedExecution",
    "SerialPhasedExecution",
    "ShardedExecution",
    "Stage",
    "TensorLocationSettings",
    "_DistributedOptions",
    "option_names",
]


class Options(_SimpleOptions):
    """The options of one model or loader, frozen once it is in use."""

    def __init__(self) -> None:
        self._popart = _PopartOptions()
        self._jit = _JitOptions()
        self._precision = _PrecisionOptions(self._popart)
        self._training = _TrainingOptions(self._popart)
        self._distributed = _DistributedOptions()
        self._tensor_locations = _TensorLocationOptions()
        self._progress_bar = ProgressBar()
        self._module_namescope_enabled = True
        super().__init__(
            input_group_size=1,
            input_cgt=CommGroupType.Consecutive,
            anchored_tensors={},
            output_mode=OutputMode.Default,
            output_return_period=1,
            available_memory_proportion={},
        )
        self._execution_strategy: _IExecutionStrategy = PipelinedExecution()
        self._load_environment()

    def _load_environment(self) -> None:
        cache = os.environ.get("POPTORCH_CACHE_DIR", "")
        if cache:
            logger.info("POPTORCH_CACHE_DIR sets the executable cache to %s", cache)
            self.enableExecutableCaching(cache)
        self.from_json(os.environ.get("POPTORCH_DEFAULT_OPTIONS", "{}"))

    def appendToLocationExcludes(self, *excludes: str) -> Options:
        """Add to the list of `sourceLocationExcludes`."""
        self.sourceLocationExcludes([*self._source_location_excludes, *excludes])
        return self

    def disableModuleNamescope(self) -> Options:
        """Name ops without the modules they are in."""
        self._module_namescope_enabled = False
        return self

    def setExecutionStrategy(self, strategy: _IExecutionStrategy) -> Options:
        """Choose how blocks are spread over IPUs."""
        check_type("execution strategy", strategy, _IExecutionStrategy)
        self._execution_strategy = strategy
        return self

    def setAvailableMemoryProportion(
        self, available_memory_proportion: dict[str, float]
    ) -> Options:
        """Share of tile memory that temporary data may use: {"IPU0": 0.5}."""
        shares = available_memory_proportion.items()
        by_ipu = {_ipu_number(key): share for key, share in shares}
        self.set(available_memory_proportion=by_ipu)
        return self

    def inputReplicaGrouping(
        self, input_group_size: int, input_group_type: CommGroupType
    ) -> Options:
        """Let groups of replicas read the same input; set replicationFactor first."""
        if input_group_type == CommGroupType.NoGrouping:
            input_group_size, input_group_type = 1, CommGroupType.Consecutive
        _check_grouping(input_group_size, input_group_type, self.replication_factor)
        self.set(input_group_size=input_group_size, input_cgt=input_group_type)
        return self

    def enableExecutableCaching(self, path: str | None) -> Options:
        """Keep compiled models under `path` and use them again; None: do not."""
        if path is not None:
            self._popart._put("cachePath", path)
        self._popart._put("enableEngineCaching", path is not None)
        return self

    def useOfflineIpuTarget(self, ipu_version: int = 2) -> Options:
        """Only compile, for an IPU of version 1, 2 or 21."""
        self.connectionType(ConnectionType.Never)
        self.createOrSet(ipu_version=ipu_version)
        return self

    @with_former_arguments
    def anchorTensor(
        self,
        short_name: str,
        long_name: str,
        output_mode: OutputMode | None = None,
        output_return_period: int = 1,
    ) -> None:
        """Keep the tensor `long_name`, to be read as `short_name` after a call."""
        period = output_return_period if output_mode == OutputMode.EveryN else 1
        anchor = [long_name, output_mode is None, output_mode, period]
        self.anchored_tensors[short_name] = anchor

    @with_former_arguments
    def outputMode(
        self, output_mode: OutputMode, output_return_period: int | None = None
    ) -> Options:
        """Which outputs a call returns; `output_return_period` is the N of EveryN."""
        check_type("output_mode", output_mode, OutputMode)
        if output_mode == OutputMode.EveryN:
            check(
                output_return_period and output_return_period > 0,
                "OutputMode.EveryN needs output_return_period, a positive integer.",
            )
        elif output_return_period:
            logger.info("output_return_period is ignored with %s", output_mode)
        self.set(output_mode=output_mode)
        self.set(output_return_period=output_return_period or 1)
        return self

    def defaultOutputMode(self) -> bool:
        """Whether the output mode is still left to the kind of model."""
        return self.output_mode == OutputMode.Default

    def randomSeed(self, random_seed: int) -> Options:
        """Seed the device's random numbers, and torch's on the host."""
        check_type("random_seed", random_seed, int)
        self.createOrSet(random_seed=random_seed)
        torch.manual_seed(random_seed)
        return self

    def enableProfiling(self, profile_dir: str | None = None) -> Options:
        """Write a report under `profile_dir` (default: the current directory)."""
        environment = os.environ.get("POPLAR_ENGINE_OPTIONS", "")
        if "autoReport." in environment or "debug.allowOutOfMemory" in environment:
            logger.warning(
                "POPLAR_ENGINE_OPTIONS is set and wins over enableProfiling()."
            )
        engine = dict(self._popart.options.get("engineOptions", {}))
        engine["debug.allowOutOfMemory"] = "true"
        engine["autoReport.directory"] = profile_dir or "."
        engine["autoReport.all"] = "true"
        self._popart.setEngineOptions(engine)
        return self

    def loadFromFile(self, filepath: str) -> Options:
        """Call the setters a file lists, one per line, without `options.`."""
        apply_file(self, filepath, option_names())
        return self

    def from_json(self, string: str) -> Options:
        """Call the setters a JSON object names: {"deviceIterations": 4}."""
        apply_json(self, string, option_names())
        return self

    def toDict(self) -> dict[str, Any]:
        """All values in one dict, as the backend wants them."""
        check(
            not self.defaultOutputMode(),
            "An output mode must be picked before options are serialised.",
        )
        values = {**self._execution_strategy.backendOptions(), **self._popart.options}
        groups = (self._training, self._distributed, self._tensor_locations)
        for group in (super(), *groups):
            values = group.update(values)
        if self._show_compilation_progress_bar:
            values["compilation_progress_bar_fn"] = self._progress_bar
        return values

    def clone(self) -> Options:
        """A copy that can be changed."""
        return copy.deepcopy(self)

    @property
    def Training(self) -> _TrainingOptions:
        """Options that only matter when training."""
        return self._training

    @property
    def Precision(self) -> _PrecisionOptions:
        """Number formats."""
        return self._precision

    @property
    def TensorLocations(self) -> _TensorLocationOptions:
        """Where tensors live."""
        return self._tensor_locations

    @property
    def Distributed(self) -> _DistributedOptions:
        """Which of how many processes this is."""
        return self._distributed

    @property
    def Jit(self) -> _JitOptions:
        """Nothing any more."""
        return self._jit

    @property
    def _Popart(self) -> _PopartOptions:
        """Values by the backend's own names."""
        return self._popart

    def _repr_items(self) -> list[str]:
        groups = [f"{name}={getattr(self, name)!r}" for name in _GROUPS]
        return super()._repr_items() + groups


def _ipu_number(key: str) -> int:
    check(
        key.startswith("IPU") and key[3:].isdigit(),
        f'Memory proportions are given as {{"IPU0": 0.5}}. Invalid key: {key}',
    )
    return int(key[3:])


def _check_grouping(size: int, kind: CommGroupType, replicas: int) -> None:
    if kind == CommGroupType.All:
        raise ValueError("input_group_type cannot be CommGroupType.All")
    if size > replicas:
        raise ValueError(
            f"input_group_size ({size}) cannot be larger than replication_factor "
            f"({replicas}). Call replicationFactor first."
        )
    if replicas % size:
        raise ValueError(
            f"input_group_size ({size}) must be a factor of replication_factor "
            f"({replicas})."
        )


_GROUPS: dict[str, type] = {
    "Training": _TrainingOptions,
    "Precision": _PrecisionOptions,
    "TensorLocations": _TensorLocationOptions,
    "Distributed": _DistributedOptions,
    "Jit": _JitOptions,
    "_Popart": _PopartOptions,
}
# What Options itself defines, what it inherits, and each group.
for _owner, _prefix in (
    (Options, ""),
    (_SimpleOptions, ""),
    *((_cls, f"{_name}.") for _name, _cls in _GROUPS.items()),
):
    noting(_owner, _prefix)
_NOT_SETTERS = {"clone", "defaultOutputMode", "from_json", "loadFromFile", "toDict"}


def option_names() -> tuple[str, ...]:
    """Every public setter: "deviceIterations", "Training.gradientAccumulation", ..."""
    root = _methods(_SimpleOptions) + _methods(Options)
    nested = [
        f"{group}.{name}" for group, cls in _GROUPS.items() for name in _methods(cls)
    ]
    return tuple(name for name in root + nested if name not in _NOT_SETTERS)


def _methods(cls: type) -> list[str]:
    """Names of the public methods written in the body of `cls`."""
    return [
        name
        for name, member in vars(cls).items()
        if inspect.isfunction(member) and not name.startswith("_")
    ]
