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
from benchmarks.calibration.model_case import check_known, on_target, refusals

_CHIPS_BY_PROCESS = 64
_RECOMPUTE_ALL = 4
"""All but checkpoints: a number of PopART's RecomputationType"""


@dataclass(frozen=True)
class Run:
    """A module, its micro-batch, and how often it runs; no optimiser is inference.

    Sums of gradients have the type `accumulator`, states of the optimiser `moments`.
    With I/O tiles a call brings so many batches, of which one arrives while another is
    computed.
    """

    module: nn.Module
    inputs: tuple[Tensor, ...]
    accumulation: int = 1
    num_replicas: int = 1
    chips_by_replica: int = 1
    optimizer: str = ""
    accumulator: torch.dtype = torch.float16
    moments: tuple[torch.dtype, torch.dtype] = (torch.float32, torch.float32)
    memory_proportions: tuple[float, ...] = ()
    partials: torch.dtype = torch.float16
    is_outlined: bool = True
    has_states_off_chip: bool = False
    has_shared_updates: bool = False
    num_io_tiles: int = 0
    batches_by_call: int = 32
    has_merged_collectives: bool = False
    is_recomputed: bool = False
    has_wide_loads: bool = False
    has_stable_norms: bool = False
    has_passes_apart: bool = False


class Overlapped(nn.Module):
    """A module whose batches arrive and leave while others are computed."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, *inputs: Tensor) -> Any:
        """What the module gives."""
        mode = poptorch.OverlapMode.OverlapDeviceIterationLoop
        result = self.body(*poptorch.set_overlap_for_input(list(inputs), mode))
        return poptorch.set_overlap_for_output(result, mode)


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
        module = run.module.eval()
        module = Overlapped(module) if run.num_io_tiles else module
        return poptorch.inferenceModel(module, options)
    return poptorch.trainingModel(run.module, options, _optimizer(run))


def _optimizer(run: Run) -> torch.optim.Optimizer:
    make = getattr(poptorch.optim, run.optimizer)
    parameters = run.module.parameters()
    first, second = run.moments
    if run.optimizer == "SGD":
        kinds = {"accum_type": run.accumulator, "velocity_accum_type": first}
        return make(parameters, lr=0.1, momentum=0.9, use_combined_accum=False, **kinds)
    return make(
        parameters,
        lr=0.1,
        accum_type=run.accumulator,
        first_order_momentum_accum_type=first,
        second_order_momentum_accum_type=second,
    )


def _options(run: Run) -> poptorch.Options:
    options = poptorch.Options().useOfflineIpuTarget()
    options.showCompilationProgressBar(False)
    options.broadcastBuffers(False)
    options._Popart.set("enableOutlining", run.is_outlined)
    if run.has_merged_collectives:
        merged = "replicatedCollectivesSettings.mergeAllReduceCollectives"
        options._Popart.set(merged, True)
    if run.has_wide_loads:
        wide = {"use128BitConvUnitLoad": "true"}
        options._Popart.set("matmulOptions", wide)
    options._Popart.set("enableStableNorm", run.has_stable_norms)
    options._Popart.set("enableFullyConnectedPass", not run.has_passes_apart)
    if run.is_recomputed:
        options._Popart.set("autoRecomputation", _RECOMPUTE_ALL)
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
    if run.num_io_tiles:
        options.setExecutionStrategy(poptorch.ShardedExecution())
        options.TensorLocations.numIOTiles(run.num_io_tiles)
        options.deviceIterations(run.batches_by_call)
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
    count *= run.batches_by_call if run.num_io_tiles else 1
    return [
        torch.zeros(count * x.shape[0], *x.shape[1:], dtype=x.dtype) for x in run.inputs
    ]
