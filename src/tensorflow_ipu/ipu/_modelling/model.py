"""From a traced program to its modelled cost: captured, placed, planned, simulated.

Here and in `op_options` settings of TensorFlow programs become options of the core.
Those that are not here have no part in the cost: prefetching and buffer depths of
feeds, orders of scheduling, merging of copies.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.python.platform import tf_logging as logging

from popple import pipeline
from popple.capture.tensorflow import LoweredProgram, LowerRequest, lower_program
from popple.graph import DType, Role, Strategy
from popple.options import MemoryOptions, ModelOptions, UpdateOptions
from popple.plan import IoOptions, Overlap, PlanOptions
from popple.target import Target

from .. import _device
from ..ops._pipeline.schedules import PipelineSchedule
from .op_options import with_options
from .program_settings import ProgramSettings
from .xla_names import name_compute_sets

_ELEMENT_BYTES = 4

__all__ = ["model", "model_options", "write_report"]


def model(request: LowerRequest, settings: ProgramSettings) -> pipeline.Modelled:
    """Graph, program and simulation of one run."""
    lowered = lower_program(request)
    for note in lowered.notes:
        logging.info(f"{request.name}: {note}")
    system = _device.system(settings.ordinal)
    num_ipus = lowered.graph.execution.num_chips
    target = Target(system, num_ipus, settings.num_replicas)
    configured = _device.get_options(settings.ordinal)
    options = model_options(lowered, settings, configured)
    graph = with_options(lowered.graph, configured, lowered.stage_options)
    return pipeline.model_graph(graph, target, options)


def write_report(
    modelled: pipeline.Modelled, directory: Path, num_runs: int = 1
) -> Path:
    """Write profile.pop and its companions, with so many runs."""
    return pipeline.write_report(
        modelled,
        directory,
        framework="tensorflow",
        framework_version=tf.__version__,
        num_runs=num_runs,
        name_compute_set=name_compute_sets(modelled.graph),
    )


def model_options(
    lowered: LoweredProgram, settings: ProgramSettings, configured: Any
) -> ModelOptions:
    """How the captured graph is repeated, placed and planned.

    `configured` are the device's IpuOptions.
    """
    is_sequential = lowered.schedule == PipelineSchedule.Sequential
    is_overlapped = lowered.num_stages > 1 and not is_sequential
    recompute = settings.recompute
    if recompute is None:
        recompute = configured.speed_size_config.allow_recompute
    return ModelOptions(
        strategy=Strategy.PIPELINED if is_overlapped else Strategy.SHARDED,
        accumulation=lowered.accumulation,
        replicas=settings.num_replicas,
        device_iterations=max(1, lowered.num_trips // lowered.accumulation),
        micro_batch=lowered.micro_batch,
        recompute=recompute,
        merged_bytes=configured.max_cross_replica_sum_buffer_size,
        interleaved=lowered.schedule == PipelineSchedule.Interleaved,
        update=_update_options(lowered, settings.accumulator_dtype),
        memory=_memory_options(lowered.off_chip, configured),
        plan=_plan_options(configured, lowered.num_stages > 1),
    )


def _update_options(lowered: LoweredProgram, dtype: Any) -> UpdateOptions | None:
    if lowered.update is None:
        return None
    kind, num_states = lowered.update
    own = _type_of_weights(lowered)
    return UpdateOptions(
        kind=kind,
        num_states=num_states,
        gradients=lowered.gradients,
        state_dtype=own,
        accumulator_dtype=own if dtype is None else _core_dtype(dtype),
    )


def _memory_options(off_chip: frozenset[str], configured: Any) -> MemoryOptions:
    """What pipelines say about tensors off the chip; small ones stay."""
    least = configured.minimum_remote_tensor_size // _ELEMENT_BYTES

    def limit(word: str) -> int | None:
        return least if word in off_chip else None

    return MemoryOptions(
        weights_off_chip=limit("weights"),
        states_off_chip=limit("states"),
        accumulators_off_chip=limit("accumulators"),
        stashes_off_chip=limit("stashes"),
        shared_updates=limit("shared"),
    )


def _type_of_weights(lowered: LoweredProgram) -> DType:
    """The element type that most elements of weights have."""
    sizes: Counter[DType] = Counter()
    for weight in lowered.graph.with_role(Role.WEIGHT):
        sizes[weight.type.dtype] += weight.type.num_elements
    return max(sizes, key=lambda kind: sizes[kind], default=DType.F32)


def _core_dtype(dtype: Any) -> DType:
    return DType.F16 if tf.as_dtype(dtype) == tf.float16 else DType.F32


def _plan_options(configured: Any, is_pipeline: bool) -> PlanOptions:
    """What the configuration says about all ops; `op_options` is about some."""
    return PlanOptions(
        outline=not configured.speed_size_config.disable_graph_outlining,
        io=_io_options(configured, is_pipeline),
    )


def _io_options(configured: Any, is_pipeline: bool) -> IoOptions:
    """Pipelines have their feeds on I/O tiles, where ops are placed there at all."""
    is_beside = configured.place_ops_on_io_tiles and is_pipeline
    overlap = Overlap.MICRO_BATCHES if is_beside else Overlap.NONE
    return IoOptions(configured.num_io_tiles, overlap)
