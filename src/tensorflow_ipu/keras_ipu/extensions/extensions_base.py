"""What all models made in the scope of an `IPUStrategy` have in common.

:class:`KerasExtensionBase` adds the options, the loops of `fit`, `evaluate` and
`predict`, and the state between them: feeds and traced programs. The classes for
functional, sequential and subclassed models add how their layers are put in stages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow.compat.v2 as tf
from tensorflow.python.framework import device as tf_device
from tensorflow.python.ipu import _device, _modelling, ipu_outfeed_queue
from tensorflow.python.ipu._programs import compilation
from tensorflow.python.platform import tf_logging as logging
from tf_keras.src.engine import training

from tensorflow_ipu._types import DTypeLike, Function, ShapeLike

from . import _export
from ._execution import pipelined_programs, step_programs, updates
from ._execution.host_loops import ExtendedLoops
from ._execution.step_programs import Mode, Run
from ._extension import KerasExtension
from ._options import Options, OptionSetters, ReplicatedMetricReductionMethod
from ._stages.stage_plan import StagePlan, check_no_stage_empty, plan_stages
from ._stages.stage_summary import Columns, print_summary
from .data_feed_manager import InfeedManager, OutfeedManager

if TYPE_CHECKING:
    from popple.pipeline import Modelled

__all__ = ["KerasExtensionBase", "ReplicatedMetricReductionMethod"]


class KerasExtensionBase(ExtendedLoops, OptionSetters, KerasExtension):
    """The methods and the state that a model gets from an `IPUStrategy`."""

    _SUMMARY_COLUMNS: Columns
    _LAYER_ASSIGNMENT: type
    _NESTED_ASSIGNMENT: type

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def __init__(self) -> None:
        self._ipu_options = Options()
        self._pipeline_stage_assignment: list[Any] = []
        self._reset_ipu_extension()

    # What the kinds of models do in their own way.

    def get_pipeline_stage_assignment(self) -> list[Any]:
        """The stage of every call of a layer, in the order of computation."""
        raise NotImplementedError

    def set_pipeline_stage_assignment(self, pipeline_stage_assignment: Any) -> None:
        """Put every call of a layer into a pipeline stage.

        `fit`, `evaluate` and `predict` run the stages as a pipeline then; calling the
        model as a function does not.
        """
        raise NotImplementedError

    def _get_network(self) -> tf.keras.Model:
        """The graph of layers of this model."""
        raise NotImplementedError

    def _build_with_dtypes(
        self, input_shape: ShapeLike, input_dtype: DTypeLike
    ) -> None:
        """Build the model for inputs of these shapes and types, if it is not yet."""
        raise NotImplementedError

    def _check_call_is_kept(self) -> None:
        """Refuse a model whose own `call` a program would pass by."""
        raise NotImplementedError

    # Pipeline stages.

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def reset_pipeline_stage_assignment(self) -> None:
        """Take all layers out of their stages: the model is no pipeline any more."""
        self._pipeline_stage_assignment = []
        self._reset_ipu_extension()

    def print_pipeline_stage_assignment_summary(
        self,
        line_length: int | None = None,
        print_fn: Callable[[str], Any] | None = None,
    ) -> None:
        """Print a table of the layers and their stages.

        `line_length` is the width of the table; `print_fn` gets its lines one by one
        in the place of `print`.
        """
        print_summary(
            self.name,
            self.get_pipeline_stage_assignment(),
            self._SUMMARY_COLUMNS,
            line_length,
            print_fn,
        )

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def _assign_stages(self, assignments: list[Any]) -> None:
        self._pipeline_stage_assignment = assignments
        self._reset_ipu_extension()

    def _is_pipelined(self) -> bool:
        return bool(self._pipeline_stage_assignment)

    def _stage_plan(self) -> StagePlan:
        plan = plan_stages(self, self._pipeline_stage_assignment)
        check_no_stage_empty(plan)
        return plan

    def _get_shard_count(self) -> int:
        """IPUs that one replica of the model needs."""
        if not self._is_pipelined():
            return 1
        mapping = self._ipu_options.pipelining_device_mapping
        if mapping:
            return max(mapping) + 1
        return 1 + _highest_stage(self._pipeline_stage_assignment)

    # Programs and their parts.

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def _reset_ipu_extension(self) -> None:
        """Forget the programs and feeds: what they were made from has changed."""
        # By what a run is to do: steps, replicas and accumulation are part of a trace.
        self._ipu_programs: dict[Run, Any] = {}
        self._replication_factor: int | None = None
        self._infeed_manager = InfeedManager()
        self._outfeed_manager = OutfeedManager()

    def _reset_compile_cache(self) -> None:
        self._reset_ipu_extension()
        super()._reset_compile_cache()

    def _trackable_children(
        self, save_type: str = "checkpoint", **kwargs: Any
    ) -> dict[str, Any]:
        children = super()._trackable_children(save_type, **kwargs)
        return {name: child for name, child in children.items() if name not in _STATE}

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def _get_replication_factor(self) -> int:
        """How many replicas of the model the IPUs of its device hold."""
        if self._replication_factor is None:
            num_ipus = self._get_num_ipus()
            num_shards = self._get_shard_count()
            num_taken = 2 ** math.ceil(math.log2(num_shards))
            if num_shards > num_ipus:
                raise ValueError(
                    f"The device has {num_ipus} IPUs, and the model requires a "
                    f"multiple of {num_taken} IPUs. Choose more with "
                    "`auto_select_ipus`, or fewer stages."
                )
            self._replication_factor = num_ipus // num_taken
        return self._replication_factor

    def _get_num_ipus(self) -> int:
        name = self.distribute_strategy.extended.non_slot_devices(None)
        if tf_device.DeviceSpec.from_string(name).device_type != "IPU":
            raise ValueError(
                f"{type(self).__name__} can only be used on an IPU device, not on"
                f" {name}."
            )
        return _device.num_ipus(_device.ordinal_of(name))

    def _run_for(self, mode: Mode, handler: Any, asynchronous: bool) -> Run:
        """What the next executions of a mode are to do."""
        num_steps = handler.steps_per_execution_value
        num_replicas = self._get_replication_factor()
        streams = asynchronous or self._is_pipelined()
        if mode is not Mode.PREDICT:
            streams = streams or self._overrides(f"{mode.value}_step")
        if mode is Mode.PREDICT:
            streams = streams or num_steps * num_replicas > 1
        accumulation = 1
        if mode is Mode.FIT:
            accumulation = self._accumulation_steps(num_steps)
        num_processes = _num_processes(self)
        return Run(mode, num_steps, accumulation, num_replicas, streams, num_processes)

    def _program_for(self, run: Run, outfeed: Any) -> Function:
        """The traced program of a run, made when it is first needed."""
        if run not in self._ipu_programs:
            self._check_nothing_is_overridden(run)
            pipelined = self._is_pipelined()
            make = (
                pipelined_programs.make_program
                if pipelined
                else step_programs.make_program
            )
            if run.mode is Mode.FIT and (pipelined or run.accumulation_steps > 1):
                updates.check_minimize_is_kept(self.optimizer)
            self._ipu_programs[run] = make(self, run, outfeed)
        if run.mode is Mode.FIT and run.num_replicas == 1:
            # Where callbacks look for the graph of a step.
            self.train_tf_function = self._ipu_programs[run]
        return self._ipu_programs[run]

    def _outfeed_for(self, mode: Mode) -> ipu_outfeed_queue.IPUOutfeedQueue:
        kwargs = self._ipu_options.outfeed_kwargs
        return self._outfeed_manager.get_outfeed(mode, kwargs)

    def _prepared(self, program: Any, arguments: list[Any]) -> Function:
        """What runs a program, traced for these arguments, on other tensors."""
        extended = self.distribute_strategy.extended
        with _modelling.owned_by(self):
            return extended._prepare(program, arguments, self._get_shard_count())

    def __popple__(self) -> Modelled:
        """The model of the program that ran last, for `popple.modelled`."""
        return _modelling.modelled(self)

    def _wraps_results(self, mode: Mode) -> bool:
        """Whether a pipeline puts its results into a list."""
        return mode is Mode.FIT and self._is_pipelined()

    def _calls_back_asynchronously(self, mode: Mode) -> bool:
        """Whether callbacks hear of single steps; sums over steps leave them none."""
        options = self._ipu_options
        sums = self._is_pipelined() and bool(options.pipelining_accumulate_outfeed)
        return options.asynchronous_callbacks and (mode is Mode.PREDICT or not sums)

    def _accumulation_steps(self, num_steps: int) -> int:
        """Steps whose gradients make one update; they must divide an execution."""
        options = self._ipu_options
        what = "pipelined " if self._is_pipelined() else ""
        if self._is_pipelined():
            count = options.pipelining_gradient_accumulation_steps_per_replica
            if count is None:
                raise ValueError(
                    "The model is pipelined, however "
                    "`gradient_accumulation_steps_per_replica` has not been set "
                    "through `set_pipelining_options()`: a pipeline accumulates "
                    "gradients over so many steps."
                )
        else:
            count = options.gradient_accumulation_steps_per_replica or 1
        if num_steps % count:
            raise RuntimeError(
                f"The {what}model has been configured to use gradient accumulation for "
                "training, however the current `steps_per_execution` value (set to "
                f"{num_steps}) is not divisible by "
                f"`gradient_accumulation_steps_per_replica` ({count}). Change one of "
                "the two."
            )
        return count

    def _log_updates(self, handler: Any) -> None:
        """Say how many samples and steps one weight update takes."""
        num_steps = handler.steps_per_execution_value
        accumulation = self._accumulation_steps(num_steps)
        replicas = self._get_replication_factor() * _num_processes(self)
        if accumulation * replicas > 1:
            size = handler.batch_size * accumulation * replicas
            logging.info(
                f"{accumulation} batches on each of {replicas} replicas make one "
                f"weight update: the effective batch size is {size}."
            )
        logging.info(
            f"{num_steps // accumulation} weight updates per execution, "
            f"{handler.inferred_steps // accumulation} per epoch, on each replica."
        )

    # What users may not override.

    def _overrides(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(training.Model, name)

    def _check_nothing_is_overridden(self, run: Run) -> None:
        name = f"make_{run.mode.value}_function"
        if self._overrides(name):
            raise RuntimeError(
                f"The function `{name}` for the model {self.name} has been "
                "overridden. Models in an IPUStrategy have their own: remove the "
                "override, or give the strategy `enable_keras_extensions=False`."
            )
        self._check_call_is_kept()
        name = f"{run.mode.value}_step"
        if self._overrides(name) and (
            self._is_pipelined() or run.accumulation_steps > 1
        ):
            kind = "is pipelined" if self._is_pipelined() else "accumulates gradients"
            raise RuntimeError(
                f"The function `{name}` of {self.name} has been overridden, and a "
                f"model that {kind} does not call it: remove the override."
            )

    # Saving.

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def _deserialize_from_config_delegate(self, config: dict[str, Any]) -> None:
        """Take over the options from a saved model's configuration."""
        self._ipu_options = Options.from_config(config)

    def _assert_weights_created(self) -> None:
        if not self.built:
            raise ValueError(
                f"Weights for model {self.name} have not yet been created. Call it on "
                "inputs first, or `build()` with an `input_shape`."
            )

    def export_for_ipu_serving(
        self,
        export_dir: str,
        batch_size: int | None = None,
        output_names: str | Sequence[str] | None = None,
        preprocessing_step: Any = None,
        preprocessing_step_signature: Sequence[tf.TensorSpec] | None = None,
        postprocessing_step: Any = None,
        postprocessing_step_signature: Sequence[tf.TensorSpec] | None = None,
        purge_export_dir: bool = False,
    ) -> Function:
        """Write the model as a SavedModel that serves predictions.

        `export_dir` must be empty unless it may be purged. The steps before and after
        the model are functions of tensors with the signatures given, or of a
        `tf.function` that has its own. Returns the function that was exported.
        """
        return _export.export(
            self,
            export_dir,
            batch_size,
            output_names=output_names,
            preprocessing_step=preprocessing_step,
            preprocessing_step_signature=preprocessing_step_signature,
            postprocessing_step=postprocessing_step,
            postprocessing_step_signature=postprocessing_step_signature,
            purge_export_dir=purge_export_dir,
        )


_STATE = {"_ipu_programs", "_infeed_manager", "_outfeed_manager"}


def _highest_stage(assignments: list[Any]) -> int:
    return max(
        _highest_stage(each.pipeline_stage_assignments)
        if each.is_nested_model
        else each.pipeline_stage
        for each in assignments
    )


def _num_processes(model: Any) -> int:
    """Processes that run the programs of a model together."""
    return compilation.processes_of(model.distribute_strategy._device_ordinal).count
