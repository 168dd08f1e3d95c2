"""From a wrapped module to a compiled model: what the first call does before it runs.

arguments --compile_step--> CompiledStep --checks, device, report--> CompiledModel
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path

import torch
from torch import nn

from popple.engine.torch import UpdateRule
from popple.engine.torch.session import (
    CompiledStep,
    Groupings,
    StepRequest,
    TorchSession,
    Watched,
    chosen_backend,
    compile_step,
)
from popple.errors import UsageError
from popple.session import (
    BatchPlan,
    CostRequest,
    ModelledCost,
    Settings,
    engine_options,
    find_report,
    read_settings,
)

from .. import _translate as translate
from .._arguments.args import BoundArgs, check_tensors
from .._device import Attachment, is_ipu_model, model_target, num_ipus
from .._errors import Error
from .._logging import TRACE, logger
from .._optim.link import NoOptimizer, OptimizerLink
from .._options.session_options import check_session_options
from .._tracing.forward import TracedForward, explained_tracing, input_names
from ..enums import ConnectionType
from ..options import Options
from .anchors import anchors_of, check_anchors
from .checks import (
    check_buffers,
    check_named_buffers,
    check_overlap,
    check_pipeline,
    overlap_of,
)
from .compiled_model import CompiledModel
from .export_proto import export_proto
from .grouped_parameter import check_groupings
from .hooks import compile_hooks
from .placement_log import log_placement
from .tensor_names import name_tensors, tensor_names

__all__ = ["Compiler", "Link", "checked_link"]

Link = OptimizerLink | NoOptimizer

# PopART's name of the option that group normalisation strides over channels.
_STRIDED_GROUPS = "groupNormStridedChannelGrouping"
_STAGES = ("tracing", "lowering", "preparing", "modelling")
_BAR_TOTAL = 100


def checked_link(
    optimizer: torch.optim.Optimizer | None, options: Options, training: bool
) -> Link:
    """The link to the optimiser of a model whose options can be followed."""
    translate.check_supported(options, training)
    link = NoOptimizer() if optimizer is None else OptimizerLink(optimizer, options)
    translate.output_plan(options, training)  # refuses periods that do not fit
    return link


@dataclass(frozen=True)
class Compiler:
    """Compiles a model: holds all that the result depends on besides the arguments.

    `device` is held afterwards if the options say so, and only if all went well.
    """

    module: nn.Module
    options: Options
    training: bool
    optimizer: torch.optim.Optimizer | None
    link: Link
    groupings: Groupings
    device: Attachment

    @cached_property
    def _settings(self) -> Settings:
        return read_settings()

    def compile(self, bound: BoundArgs) -> CompiledModel:
        """Compile for these arguments."""
        start = time.monotonic()
        self._check(bound)
        anchors = self._anchors
        with ExitStack() as undo, compile_hooks(), self._progress() as progress:
            step = self._compile_step(bound, anchors, progress)
            self._take_device(step, undo)
            self._check_step(step, anchors)
            rule = self.link.rule_for(step)
            if logger.isEnabledFor(logging.DEBUG):
                log_placement(step, self.options)
            if path := os.environ.get("POPTORCH_EXPORT_PROTO_FILE"):
                export_proto(step, self.options, Path(path))
            cost = self._make_cost(step, progress)
            session = self._make_session(step, anchors, rule)
            undo.pop_all()
        logger.log(TRACE, "Finished Poplar compilation")
        spent = timedelta(seconds=time.monotonic() - start)
        return CompiledModel(session, cost, bound, spent, self._has_scopes)

    @property
    def _name(self) -> str:
        default = "training" if self.training else "inference"
        return self.options._values.get("model_name") or default

    @property
    def _has_scopes(self) -> bool:
        return self.options._module_namescope_enabled

    @property
    def _anchors(self) -> tuple[Watched, ...]:
        """Tensors inside the model that the program wants to see; most want none."""
        if not self.options.anchored_tensors:
            return ()
        return anchors_of(self.options, self.training)

    # -- the step

    def _check(self, bound: BoundArgs) -> None:
        """What can be checked before a model is traced."""
        _check_inputs(bound)
        _check_batch(bound, translate.batch_plan(self.options, self.training))
        if self.groupings:
            backend = chosen_backend(self._settings)
            check_groupings(self.module, self.groupings, backend)
        check_session_options(self.options.toDict())

    def _compile_step(
        self,
        bound: BoundArgs,
        anchors: tuple[Watched, ...],
        progress: Callable[[str], None],
    ) -> CompiledStep:
        with explained_tracing():
            step = compile_step(self._request(bound), progress)
        if not anchors:
            return step
        tensors = name_tensors(step.traced, step.lowered, self._has_scopes)
        wanted = dict.fromkeys(anchor.name for anchor in anchors)
        return step.with_exposed({n: tensors[n] for n in wanted if n in tensors})

    def _request(self, bound: BoundArgs) -> StepRequest:
        options = self.options
        return StepRequest(
            name=self._name,
            module=self.module,
            forward=TracedForward(bound, options._execution_strategy),
            inputs=bound.tensors(),
            input_names=input_names(bound),
            batch_plan=translate.batch_plan(options, self.training),
            trainable=self.link.trainable,
            backend=chosen_backend(self._settings),
            grouped=frozenset(self.groupings),
            scales_loss=self.link.scales_loss,
            automatic=translate.automatic_scaling(options),
            has_strided_groups=bool(options._Popart.options.get(_STRIDED_GROUPS)),
            numerics=translate.numerics(options, self._settings),
        )

    def _check_step(self, step: CompiledStep, anchors: tuple[Watched, ...]) -> None:
        check_pipeline(step, self.options, self.training)
        check_buffers(step, self.options)
        check_named_buffers(step, self.options)
        check_overlap(step.traced, self.options)
        if anchors:
            settings = self.link.settings()
            check_anchors(anchors, tensor_names(step, self._has_scopes, settings))

    def _take_device(self, step: CompiledStep, undo: ExitStack) -> None:
        """Hold the IPUs, or find out which ones it will be, as the options say."""
        connection = self.options.connection_type
        if connection is ConnectionType.Never:
            return
        count = num_ipus(step.num_chips, self.options)
        if connection is ConnectionType.OnDemand:
            self.device.choose(count)
        else:
            self.device.hold(count)
            undo.callback(self.device.release)

    # -- session and cost

    def _make_session(
        self, step: CompiledStep, anchors: tuple[Watched, ...], rule: UpdateRule | None
    ) -> TorchSession:
        options = translate.session_options(
            self.options, self.training, anchors, self.groupings
        )
        try:
            return TorchSession(step, options, rule)
        except UsageError as error:
            raise Error(str(error)) from error

    def _make_cost(
        self, step: CompiledStep, progress: Callable[[str], None]
    ) -> ModelledCost:
        """What the model costs; its report is written now if one is wanted."""
        try:
            cost = ModelledCost(lambda: self._cost_request(step), self._cache)
            engine = engine_options(
                self.options._Popart.options.get("engineOptions", {})
            )
        except UsageError as error:
            raise Error(str(error)) from error
        report = find_report(self._name, engine, self._settings, cost.write_report)
        if report is not None:
            progress("modelling")
            report.begin()
        return cost

    def _cost_request(self, step: CompiledStep) -> CostRequest:
        options = translate.model_options(
            self.options,
            step.micro_batch,
            self.optimizer,
            dict(step.lowered.gradients),
            overlap_of(step.traced),
        )
        replicas = translate.num_replicas(self.options)
        target = model_target(step.num_chips, replicas)
        graph = step.lowered.graph
        return CostRequest(graph, options, target, "poptorch", torch.__version__)

    @property
    def _cache(self) -> Path | None:
        """The directory of the executable cache, if the program wants one."""
        values = self.options._Popart.options
        if not values.get("enableEngineCaching"):
            return None
        if is_ipu_model(self.options):
            logger.warning("The executable cache is not used on the IPU model.")
            return None
        return Path(values.get("cachePath") or ".")

    @contextmanager
    def _progress(self) -> Iterator[Callable[[str], None]]:
        """A function to call at the beginning of each part of the compilation."""
        options = self.options
        is_wanted = options._show_compilation_progress_bar
        if not is_wanted or self._settings.is_quiet:
            yield lambda part: None
            return
        bar = options._progress_bar

        def step(part: str) -> None:
            bar(_BAR_TOTAL * _STAGES.index(part) // len(_STAGES), _BAR_TOTAL)

        try:
            yield step
            bar(_BAR_TOTAL, _BAR_TOTAL)
        finally:
            bar.close()


def _check_inputs(bound: BoundArgs) -> None:
    tensors = bound.tensors()
    check_tensors(tensors)
    if any(tensor.requires_grad for tensor in tensors):
        logger.warning(
            "An input has requires_grad set. It is detached: a compiled model gives no "
            "gradients for its inputs."
        )


def _check_batch(bound: BoundArgs, plan: BatchPlan) -> None:
    """AssertionError unless every input can be cut into equal parts."""
    for tensor in bound.tensors():
        shape = tuple(tensor.shape)
        if plan.find_micro_batch_size(shape) is not None:
            continue
        found = f"size {shape[0]} on dimension 0" if shape else "no dimension"
        raise AssertionError(
            f"Invalid batch dimension: input has {found}, which is not a multiple of "
            f"{plan.num_shares} = deviceIterations ({plan.device_iterations}) x "
            f"gradientAccumulation ({plan.accumulation}) x replicationFactor "
            f"({plan.replicas}) / input group size ({plan.input_group_size}). "
            "Pass whole batches, for example from poptorch.DataLoader with "
            "drop_last=True, or change these options."
        )
