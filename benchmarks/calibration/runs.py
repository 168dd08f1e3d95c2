"""Runs: a whole model on a system, for inference or with an optimiser.

In: a `Run`, a module with one micro-batch and how it is repeated. Out: what popple
models of it. Several hosts share a system of more chips than one host may hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import popple
import poptorch
from benchmarks.calibration.price import check_known, on_target, refusals

_CHIPS_BY_PROCESS = 64


@dataclass(frozen=True)
class Run:
    """A module, its micro-batch, and how often it runs; no optimiser is inference."""

    module: nn.Module
    inputs: tuple[Tensor, ...]
    accumulation: int = 1
    num_replicas: int = 1
    chips_by_replica: int = 1
    optimizer: str = ""
    memory_proportions: tuple[float, ...] = ()
    partials: torch.dtype = torch.float16
    is_outlined: bool = True
    has_states_off_chip: bool = False
    has_shared_updates: bool = False


def model_run(run: Run, target: str) -> popple.Modelled:
    """Capture, plan and simulate the run on a target."""
    with on_target(target), refusals():
        executor = _executor(run)
        executor.compile(*_batch(run))
        modelled = popple.modelled(executor)
    check_known(modelled.graph.ops)
    return modelled


def _executor(run: Run) -> Any:
    options = _options(run)
    if not run.optimizer:
        return poptorch.inferenceModel(run.module.eval(), options)
    make = getattr(poptorch.optim, run.optimizer)
    momentum = {"momentum": 0.9} if run.optimizer == "SGD" else {}
    optimizer = make(run.module.parameters(), lr=0.1, **momentum)
    return poptorch.trainingModel(run.module, options, optimizer)


def _options(run: Run) -> poptorch.Options:
    options = poptorch.Options().useOfflineIpuTarget()
    options.showCompilationProgressBar(False)
    options.broadcastBuffers(False)
    options._Popart.set("enableOutlining", run.is_outlined)
    options.Precision.setPartialsType(run.partials)
    # A block that returns to an earlier chip is a stage of its own.
    stages = poptorch.PipelinedExecution(poptorch.AutoStage.AutoIncrement)
    options.setExecutionStrategy(stages)
    if run.optimizer:
        options.Training.gradientAccumulation(run.accumulation)
        location = poptorch.TensorLocationSettings()
        location.useOnChipStorage(not run.has_states_off_chip)
        location.useReplicatedTensorSharding(run.has_shared_updates)
        options.TensorLocations.setOptimizerLocation(location)
    options.replicationFactor(_replicas_by_process(run))
    if num_processes(run) > 1:
        options.Distributed.configureProcessId(0, num_processes(run))
    if run.memory_proportions:
        proportions = enumerate(run.memory_proportions)
        options.setAvailableMemoryProportion({f"IPU{i}": p for i, p in proportions})
    return options


def num_processes(run: Run) -> int:
    """Hosts that share the replicas."""
    return -(-run.num_replicas * run.chips_by_replica // _CHIPS_BY_PROCESS)


def _replicas_by_process(run: Run) -> int:
    return run.num_replicas // num_processes(run)


def _batch(run: Run) -> list[Tensor]:
    """The samples of one call: zeros, which take no memory until they are read."""
    count = run.accumulation * _replicas_by_process(run)
    return [
        torch.zeros(count * x.shape[0], *x.shape[1:], dtype=x.dtype) for x in run.inputs
    ]
