"""From a wrapped module to a compiled model: what the first call does before it runs.

arguments --compile_step or the cache--> CompiledStep --checks, device, report-->
CompiledModel
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path

import torch
from torch import nn

from popple.engine.torch import UpdateRule
from popple.engine.torch.session import (
    CompiledStep,
    FreshCapture,
    Groupings,
    StepRequest,
    TorchSession,
    Watched,
    chosen_backend,
    compile_step,
)
from popple.engine.torch.session.kept import (
    check_micro_batch,
    has_step,
    read_compiled,
)
from popple.errors import DamagedFileError, OutOfMemoryError, UsageError
from popple.session import (
    Archive,
    BatchPlan,
    CostRequest,
    ModelledCost,
    Settings,
    compile_program,
    engine_options,
    follow_log_variables,
    read_settings,
)
from popple.session.collection import collection_paused
from popple.session.interrupts import compiling_alone, safe_point

from .. import _translate as translate
from .._arguments.args import BoundArgs, check_tensors
from .._device import (
    Attachment,
    is_ipu_model,
    least_ipus,
    model_target,
    num_ipus,
)
from .._errors import Error
from .._logging import TRACE, logger
from .._optim.link import NoOptimizer, OptimizerLink
from .._options.session_options import check_session_options
from .._options.tables import VARIABLES_WITHOUT_EFFECT
from .._tracing.blocks import marked_blocks
from .._tracing.forward import TracedForward, explained_tracing, input_names
from ..enums import ConnectionType
from ..options import Options
from .anchors import anchors_of, check_anchors
from .cached import CachedModel
from .checks import (
    check_buffers,
    check_named_buffers,
    check_overlap,
    check_pipeline,
    num_buffer_sets,
    overlap_of,
)
from .compiled_model import CompiledModel
from .export_proto import export_proto
from .grouped_parameter import check_groupings
from .hooks import compile_hooks
from .placement_log import log_placement
from .program_key import find_key
from .progress import CompilationProgress
from .skeleton import Skeleton
from .tensor_names import name_tensors, tensor_names

__all__ = ["Compiler", "Link", "checked_link"]

Link = OptimizerLink | NoOptimizer

# PopART's name of the option that group normalisation strides over channels.
_STRIDED_GROUPS = "groupNormStridedChannelGrouping"
_OUT_OF_MEMORY = "popart_exception"
_POPART_CACHE = "POPART_CACHE_DIR"
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

    `device` is held afterwards if the options say so, and only if all went well. The
    step of an `executable`, a file of a compiled model, is not traced again.
    """

    module: nn.Module
    options: Options
    training: bool
    optimizer: torch.optim.Optimizer | None
    link: Link
    groupings: Groupings
    device: Attachment
    executable: Archive | None = None

    @cached_property
    def _settings(self) -> Settings:
        return read_settings()

    def compile(self, bound: BoundArgs) -> CompiledModel:
        """Compile for these arguments, while no other thread compiles."""
        with compiling_alone(), collection_paused(), safe_points_in_modules():
            return self._compile(bound)

    def _compile(self, bound: BoundArgs) -> CompiledModel:
        start = time.monotonic()
        self._check(bound)
        anchors = self._anchors
        with ExitStack() as undo, compile_hooks(), self._progress() as progress:
            self._reserve_device(undo)
            request = self._request(bound)
            cached = self._find_cached(request, bound)
            step = self._find_step(request, cached, progress)
            step = self._exposing(step, anchors)
            self._take_device(step)
            self._check_step(step, anchors)
            rule = self.link.rule_for(step)
            if logger.isEnabledFor(logging.DEBUG):
                log_placement(step, self.options)
            if path := os.environ.get("POPTORCH_EXPORT_PROTO_FILE"):
                export_proto(step, self.options, Path(path))
            cost = self._make_cost(step, request, cached, progress)
            session = self._make_session(step, anchors, rule)
            undo.pop_all()
        logger.log(TRACE, "Finished Poplar compilation")
        spent = timedelta(seconds=time.monotonic() - start)
        return CompiledModel(self._name, session, cost, bound, spent, self._has_scopes)

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
        weights = {name for name, _ in self.module.named_parameters()}
        return anchors_of(self.options, self.training, weights)

    # -- the step

    def _check(self, bound: BoundArgs) -> None:
        """What can be checked before a model is traced."""
        _check_inputs(bound)
        _check_batch(bound, translate.batch_plan(self.options, self.training))
        if self.groupings:
            backend = chosen_backend(self._settings)
            check_groupings(self.module, self.groupings, backend)
        check_session_options(self.options.toDict())
        for name in VARIABLES_WITHOUT_EFFECT.keys() & os.environ.keys():
            reason = VARIABLES_WITHOUT_EFFECT[name]
            logger.info("%s has no effect: %s", name, reason)

    def _find_cached(
        self, request: StepRequest, bound: BoundArgs
    ) -> CachedModel | None:
        """The model's place in the executable cache, if the program wants one."""
        directory = self._cache
        if directory is None or self.executable is not None:
            return None
        # Host copies of weights may be old, and reading them would change the device.
        found = find_key(request, bound, self.options, self.link, self._settings)
        return CachedModel(directory, self._name, found)

    def _find_step(
        self,
        request: StepRequest,
        cached: CachedModel | None,
        progress: CompilationProgress,
    ) -> CompiledStep:
        """The step from the cache, or compiled now."""
        step = self._saved_step(request)
        if step is None and cached is not None:
            step = cached.find_step(request)
        if step is not None:
            return step
        with explained_tracing():
            return compile_step(request, progress, progress.move)

    def _saved_step(self, request: StepRequest) -> CompiledStep | None:
        """The step of the executable, if there is one that fits the options."""
        executable = self.executable
        if executable is None or not has_step(executable):
            return None
        try:
            step = read_compiled(executable, request)
            check_micro_batch(step)
            step.traced  # noqa: B018 - the checks want it: damage is told here
        except (DamagedFileError, UsageError) as error:
            if isinstance(self.module, Skeleton):
                raise Error(str(error)) from error
            logger.warning("%s The model is compiled again.", error)
            return None
        return step

    def _exposing(
        self, step: CompiledStep, anchors: tuple[Watched, ...]
    ) -> CompiledStep:
        """The step, with the tensors that the program wants to see."""
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
        # A step of the cache has been through all of this, with the same options.
        if self.executable is None and not isinstance(step.capture, FreshCapture):
            return
        check_pipeline(step, self.options, self.training)
        check_buffers(step, self.options)
        check_named_buffers(step, self.options)
        check_overlap(step.traced, self.options)
        if anchors:
            settings = self.link.settings()
            check_anchors(anchors, tensor_names(step, self._has_scopes, settings))

    def _reserve_device(self, undo: ExitStack) -> None:
        """Hold as many IPUs as the model takes at least, before it is traced."""
        if self.options.connection_type is not ConnectionType.Always:
            return
        undo.callback(self._release_device)
        strategy = self.options._execution_strategy
        marks = marked_blocks(self.module)
        known = [strategy.expect_ipu(name, ipu) for name, ipu in marks]
        self.device.reserve(least_ipus(1 + max(known, default=0), self.options))

    def _release_device(self) -> None:
        if self.device.has_ipus:
            self.device.release()

    def _take_device(self, step: CompiledStep) -> None:
        """Hold the IPUs, or find out which ones it will be, as the options say."""
        connection = self.options.connection_type
        if connection is ConnectionType.Never:
            return
        count = num_ipus(step.num_chips, self.options)
        if connection is ConnectionType.OnDemand:
            self.device.choose(count)
        else:
            self.device.hold(count)

    # -- session and cost

    def _make_session(
        self, step: CompiledStep, anchors: tuple[Watched, ...], rule: UpdateRule | None
    ) -> TorchSession:
        options = translate.session_options(
            self.options,
            self.training,
            anchors,
            self.groupings,
            num_buffer_sets(step, self.options),
        )
        options = replace(options, is_model_only=self._settings.is_model_only)
        try:
            session = TorchSession(step, options, rule)
            if not self._is_only_modelled:
                session.prepare()
        except UsageError as error:
            raise Error(str(error)) from error
        return session

    @property
    def _is_only_modelled(self) -> bool:
        """Whether the model is compiled, perhaps reported, but not run here."""
        is_offline = self.options.connection_type is ConnectionType.Never
        return is_offline or self._settings.is_model_only

    def _make_cost(
        self,
        step: CompiledStep,
        request: StepRequest,
        cached: CachedModel | None,
        progress: Callable[[str], None],
    ) -> ModelledCost:
        """What the model costs; a report or log lines of it are written if wanted."""

        def ask() -> CostRequest:
            return self._cost_request(step, request)

        try:
            kept = None if cached is None else cached.keep(step, ask)
            cost = ModelledCost(ask, kept)
            engine = engine_options(
                self.options._Popart.options.get("engineOptions", {})
            )
            follow_log_variables()
            compile_program(
                self._name,
                cost,
                engine,
                self._settings,
                progress=progress,
                is_ipu_model=is_ipu_model(self.options),
            )
        except UsageError as error:
            raise Error(str(error)) from error
        except OutOfMemoryError as error:
            logger.error(
                "Out of memory, the graph profile is available here: %s",
                error.profile_path or "(no report was asked for)",
            )
            raise Error(str(error), type=_OUT_OF_MEMORY) from error
        return cost

    def _cost_request(self, step: CompiledStep, request: StepRequest) -> CostRequest:
        options = translate.model_options(
            self.options,
            step.micro_batch,
            self.optimizer,
            dict(step.lowered.gradients),
            overlap_of(step.traced),
        )
        replicas = translate.num_replicas(self.options)
        is_spread = self.options.Distributed.numProcesses > 1
        target = model_target(step.num_chips, replicas, is_spread)
        graph = step.lowered.graph
        options = translate.with_synthetic_data(options, self.options, graph)

        def rebatch(size: int) -> CostRequest:
            smaller = _with_micro_batch(request, step.micro_batch, size)
            return self._cost_request(compile_step(smaller), smaller)

        version = torch.__version__
        return CostRequest(graph, options, target, "poptorch", version, rebatch=rebatch)

    @property
    def _cache(self) -> Path | None:
        """The directory of the executable cache, if the program wants one."""
        values = self.options._Popart.options
        # PopART's own variable counts where the program says nothing.
        named = os.environ.get(_POPART_CACHE, "")
        if not values.get("enableEngineCaching", bool(named)):
            return None
        if is_ipu_model(self.options):
            logger.warning("The executable cache is not used on the IPU model.")
            return None
        return Path(values.get("cachePath") or named or ".")

    @contextmanager
    def _progress(self) -> Iterator[CompilationProgress]:
        """What to call at the beginning of each part of the compilation."""
        options = self.options
        is_wanted = options._show_compilation_progress_bar
        if not is_wanted or self._settings.is_quiet:
            yield CompilationProgress(lambda done, total: None, _STAGES, _BAR_TOTAL)
            return
        bar = options._progress_bar
        try:
            yield CompilationProgress(bar, _STAGES, _BAR_TOTAL)
            bar(_BAR_TOTAL, _BAR_TOTAL)
        finally:
            bar.close()


@contextmanager
def safe_points_in_modules() -> Iterator[None]:
    """Between two modules that forward calls, an interrupt does no harm.

    The hook is torch's for all modules: it need not know which ones are compiled.
    """
    hook = nn.modules.module.register_module_forward_pre_hook(
        lambda module, inputs: safe_point()
    )
    try:
        yield
    finally:
        hook.remove()


def _with_micro_batch(request: StepRequest, now: int, size: int) -> StepRequest:
    """The same samples in more micro-batches of another size."""
    plan = request.batch_plan
    smaller = replace(plan, accumulation=plan.accumulation * now // size)
    return replace(request, batch_plan=smaller)


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
