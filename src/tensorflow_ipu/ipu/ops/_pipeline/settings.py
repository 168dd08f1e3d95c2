"""The arguments of a pipeline, checked."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from tensorflow.compiler.plugin.poplar.driver import pipeline_config_pb2

from tensorflow_ipu._translate import REFUSED, note_without_effect, off_chip_words
from tensorflow_ipu._types import Message

from ...gradient_accumulation import GradientAccumulationReductionMethod
from ...ipu_infeed_queue import IPUInfeedQueue
from ...ipu_outfeed_queue import IPUOutfeedMode, IPUOutfeedQueue
from .._tensors import flat_list
from ..op_util import check_offload
from .schedules import PipelineSchedule, RecomputationMode

_LOG = logging.getLogger("tensorflow")
_SUM = GradientAccumulationReductionMethod.SUM

# Arguments that change neither what a pipeline computes nor how it is modelled.
_UNUSED = (
    "recomputation_mode",
    "replicated_weight_sharding",
    "weight_update_poplar_options",
)

ALL_DEVICES = -1
"""In a device mapping: the stage is on no IPU in particular."""


class PipelineStageOptions:
    """Options for convolutions, matrix products and slices in one stage.

    They go before those of the device's configuration and change no value.
    """

    def __init__(
        self,
        convolution_options: dict[str, str] | None = None,
        matmul_options: dict[str, str] | None = None,
        slice_options: dict[str, str] | None = None,
    ) -> None:
        self._proto = pipeline_config_pb2.PipelineStagePoplarConfig()
        given = {
            "convolution_options": convolution_options,
            "matmul_options": matmul_options,
            "slice_options": slice_options,
        }
        for name, options in given.items():
            if options and not isinstance(options, dict):
                raise TypeError(f"PipelineStageOptions.{name} must be dictionary.")
            for key, value in (options or {}).items():
                getattr(self._proto, name).add(option=key, value=value)

    def get_proto(self) -> Message:
        """The options as the message that the device's compiler takes."""
        return self._proto

    def by_kind(self) -> dict[str, dict[str, str]]:
        """Names and values, for each kind of op."""
        kinds = ("convolution_options", "matmul_options", "slice_options")
        return {
            kind: {item.option: item.value for item in getattr(self._proto, kind)}
            for kind in kinds
        }


@dataclass(frozen=True)
class Settings:
    """What one pipeline computes, and how; see `pipelining_ops.pipeline`.

    `count` is how many batches make one weight update, an int or an int32 scalar;
    a stage is a function, or a list of functions that run side by side.
    """

    stages: Sequence[Any]
    count: Any
    repeat_count: int
    batch_serialization_iterations: int
    reduction_method: GradientAccumulationReductionMethod
    gradient_accumulation_dtype: Any
    accumulate_captured_gradients: bool
    infeed_queue: Any
    outfeed_queue: Any
    optimizer_function: Callable[..., Any] | None
    device_mapping: Sequence[Any]
    schedule: PipelineSchedule
    recomputation_mode: RecomputationMode
    outfeed_loss: bool
    outfeed_mask: Sequence[Any] | None
    accumulate_outfeed: bool
    accumulate_outfeed_dtype: Any
    name: str
    off_chip: str = ""
    stage_options: str = ""

    def __post_init__(self) -> None:
        self._check_queues()
        if len(self.stages) < 2:
            raise ValueError("Pipeline requires at least two computational stages.")
        self._check_devices()
        self._check_outfeed()

    @property
    def training(self) -> bool:
        """Whether there is an optimiser."""
        return self.optimizer_function is not None

    @property
    def num_ipus(self) -> int:
        """IPUs that the pipeline spans: the largest number used, and one."""
        return max([*flat_list(self.device_mapping), 0]) + 1

    def _check_queues(self) -> None:
        infeed, outfeed = self.infeed_queue, self.outfeed_queue
        if infeed is not None and not isinstance(infeed, IPUInfeedQueue):
            raise TypeError(
                f"infeed_queue is not an IPUInfeedQueue, but {type(infeed).__name__}."
            )
        if outfeed is not None and not isinstance(outfeed, IPUOutfeedQueue):
            raise TypeError(
                "outfeed_queue is not an IPUOutfeedQueue, but "
                f"{type(outfeed).__name__}."
            )

    def _check_devices(self) -> None:
        mapping = self.device_mapping
        if not isinstance(mapping, list | tuple):
            raise TypeError(
                "The device_mapping argument needs to be a list or tuple of IPUs, not "
                f"{type(mapping).__name__}."
            )
        if len(mapping) != len(self.stages):
            raise ValueError(
                "Each stage must be mapped to an IPU: device_mapping has "
                f"{len(mapping)} entries for {len(self.stages)} stages."
            )
        flat = flat_list(mapping)
        interleaved = self.schedule is PipelineSchedule.Interleaved
        if interleaved and self.training and len(flat) != len(set(flat)):
            raise NotImplementedError(
                "The pipelining schedule 'Interleaved' does not support multiple "
                "pipeline stages on the same device for training graphs. Use another "
                "schedule."
            )
        if self.batch_serialization_iterations > 1 and len(set(flat)) != 1:
            raise NotImplementedError(
                "batch serialization runs all stages in turn: they must be mapped to a "
                f"single IPU, not to {len(set(flat))}."
            )

    def _check_outfeed(self) -> None:
        for name in ("outfeed_mask", "outfeed_loss"):
            if getattr(self, name) and not self.training:
                raise ValueError(
                    f"An optimizer_function must be provided when {name} is set."
                )
        if self.outfeed_loss and self.outfeed_mask:
            raise ValueError(
                "`outfeed_loss` and `outfeed_mask` exclude each other: set one of them."
            )
        if not self.accumulate_outfeed:
            return
        if self.outfeed_queue is None:
            raise ValueError(
                "An outfeed_queue must be provided for what accumulate_outfeed sums up."
            )
        if self.outfeed_queue._outfeed_mode is not IPUOutfeedMode.ALL:
            raise ValueError(
                "accumulate_outfeed needs a queue in IPUOutfeedMode ALL, which keeps "
                "every sum."
            )


def settings_of(given: Mapping[str, Any]) -> Settings:
    """Check the arguments of `pipelining_ops.pipeline`, in this order."""
    for name in _UNUSED:
        if given[name] not in (None, False, RecomputationMode.Auto):
            note_without_effect(f"pipeline.{name}")
    count = _checked_count(given["gradient_accumulation_count"])
    optimizer_function = given["optimizer_function"]
    training = optimizer_function is not None
    serial = given["batch_serialization_iterations"]
    method = _checked_reduction(given["reduction_method"], training, serial)
    if given["continuous_weight_updates"]:
        why = REFUSED["pipeline.continuous_weight_updates"]
        raise NotImplementedError(f"Continuous weight updates are not supported. {why}")
    schedule = _checked_schedule(given["pipeline_schedule"], serial)
    mode = _checked_recomputation(given["recomputation_mode"])
    stages = _checked_stages(given["computational_stages"])
    mapping = given["device_mapping"]
    if mapping is None:
        # Serialised batches share one IPU's weights, so all stages are on it.
        mapping = [0] * len(stages) if serial > 1 else list(range(len(stages)))
    settings = Settings(
        stages=stages,
        count=count,
        repeat_count=_checked_repeat_count(given["repeat_count"]),
        batch_serialization_iterations=serial,
        reduction_method=method,
        gradient_accumulation_dtype=given["gradient_accumulation_dtype"],
        accumulate_captured_gradients=given["gradient_accumulation_for_captured_grads"],
        infeed_queue=given["infeed_queue"],
        outfeed_queue=given["outfeed_queue"],
        optimizer_function=optimizer_function,
        device_mapping=mapping,
        schedule=schedule,
        recomputation_mode=mode,
        outfeed_loss=given["outfeed_loss"],
        outfeed_mask=given["outfeed_mask"],
        accumulate_outfeed=given["accumulate_outfeed"],
        accumulate_outfeed_dtype=given["accumulate_outfeed_dtype"],
        name=given["name"] or "pipeline",
        off_chip=off_chip_words(given),
    )
    for name in ("forward", "backward") if training else ("forward",):
        name = f"{name}_propagation_stages_poplar_options"
        _check_stage_options(name, given[name], len(stages))
    _check_update_options(given["weight_update_poplar_options"])
    _check_update_storage(
        training,
        given["offload_weight_update_variables"],
        given["replicated_optimizer_state_sharding"],
    )
    return replace(settings, stage_options=_stage_options(given))


def _checked_count(count: Any) -> Any:
    """The number of batches per update, refused if it makes no sense."""
    if count is None:
        raise ValueError("gradient_accumulation_count must be specified.")
    if isinstance(count, int) and count < 0:
        raise ValueError("gradient_accumulation_count must be >= 0.")
    if isinstance(count, int) and count > np.iinfo(np.int32).max:
        raise ValueError("gradient_accumulation_count must be < max int32.")
    return count


def _checked_repeat_count(count: Any) -> Any:
    """The number of updates; programs compute it by division, which gives 4.0."""
    if isinstance(count, float) and count.is_integer():
        return int(count)
    return count


def _checked_reduction(
    method: GradientAccumulationReductionMethod | str,
    training: bool,
    batch_serialization_iterations: int,
) -> GradientAccumulationReductionMethod:
    """The reduction method, which inference does not look at."""
    if not training:
        return _SUM
    method = GradientAccumulationReductionMethod.parse(method)
    if method is not _SUM and batch_serialization_iterations != 1:
        raise ValueError(
            f"batch_serialization_iterations is {batch_serialization_iterations}: more "
            "than 1 is only supported when reduction_method is SUM."
        )
    return method


def _checked_schedule(
    schedule: Any, batch_serialization_iterations: int
) -> PipelineSchedule:
    """The schedule, by default Grouped, or Sequential for serialised batches."""
    serial = batch_serialization_iterations > 1
    if schedule is None:
        return PipelineSchedule.Sequential if serial else PipelineSchedule.Grouped
    if not isinstance(schedule, PipelineSchedule):
        raise TypeError(
            f"pipeline_schedule must be a PipelineSchedule, not {schedule!r}."
        )
    if serial and schedule is not PipelineSchedule.Sequential:
        raise NotImplementedError(
            "Batch serialization is only supported with the `Sequential` schedule."
        )
    return schedule


def _checked_recomputation(mode: Any) -> RecomputationMode:
    """The recomputation mode, by default Auto."""
    mode = RecomputationMode.Auto if mode is None else mode
    if not isinstance(mode, RecomputationMode):
        raise TypeError(
            f"recomputation_mode must be a RecomputationMode, not {mode!r}."
        )
    return mode


def _checked_stages(stages: Any) -> Sequence[Any]:
    """The stages, a list or a tuple."""
    if not isinstance(stages, list | tuple):
        raise TypeError("computational_stages must be a list or a tuple of functions.")
    return stages


def _stage_options(given: Mapping[str, Any]) -> str:
    """Options of all stages as the text that programs are marked with, if any."""
    names = ("forward", "backward")
    chosen = {n: given[f"{n}_propagation_stages_poplar_options"] for n in names}
    by_phase = {
        name: [option.by_kind() for option in options]
        for name, options in chosen.items()
        if options is not None
    }
    return json.dumps(by_phase) if by_phase else ""


def _check_stage_options(name: str, options: Any, num_stages: int) -> None:
    """Refuse options that are not one `PipelineStageOptions` for each stage."""
    if options is None:
        return
    what = f"{name} must be a list or a tuple of a PipelineStageOptions for each stage"
    if not isinstance(options, list | tuple):
        raise TypeError(f"{what}.")
    if len(options) != num_stages:
        raise ValueError(
            f"{what} of length {num_stages} (same number as the number of "
            f"computational stages) but is {len(options)}."
        )
    for option in options:
        if not isinstance(option, PipelineStageOptions):
            raise TypeError(
                f"Every element of {name} is a PipelineStageOptions; {option!r} is not."
            )


def _check_update_options(options: Any) -> None:
    """Refuse options of the weight update of another type."""
    if options is not None and not isinstance(options, PipelineStageOptions):
        raise TypeError(
            "weight_update_poplar_options to be of type PipelineStageOptions is needed,"
            f" not {options!r}."
        )


def _check_update_storage(
    training: bool, offload: bool | None, shard_state: bool | None
) -> None:
    """Refuse to shard state that stays on the device; warn where there is none."""
    if training:
        check_offload(offload, shard_state)
        return
    names = {
        "replicated_optimizer_state_sharding": bool(shard_state),
        "offload_weight_update_variables": bool(offload),
    }
    for name in [name for name, chosen in names.items() if chosen]:
        _LOG.warning("%s will have no effect: this pipeline is in inference.", name)
