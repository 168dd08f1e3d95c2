"""PoplarExecutor: a wrapped model, compiled at its first call and then replayed.

Life of one: wrapped --first call or compile()--> compiled and attached --detach-->
detached --call or attach--> attached ... --destroy--> wrapped again.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import torch
from torch import nn

from popple.device import Lease
from popple.engine.torch import (
    DeviceMemory,
    InferenceEngine,
    Replay,
    TrainingEngine,
    UpdateRule,
    initial_state,
)

from popple.errors import ArithmeticTrap

from . import _translate as translate
from ._args import ArgsParser, BoundArgs, check_tensors
from ._batching import OutputCollector
from ._checks import check_buffers, check_pipeline
from ._compile import CompiledStep, CompileRequest, compile_step, to_device_type
from ._device import acquire, is_ipu_model, num_ipus
from ._errors import Error, check
from ._hooks import compile_hooks
from ._logging import logger
from ._memory import load_device, read_device
from ._modelling import ModelledCost, report_directory
from ._random import DeviceRandom
from ._structure import rebuild
from ._wrapped import is_wrapped, unwrap, wrap
from .enums import ConnectionType
from .options import Options

__all__ = ["PoplarExecutor"]


class PoplarExecutor:
    """Runs a module as a compiled model; made by trainingModel and inferenceModel."""

    def __init__(
        self,
        model: nn.Module,
        options: Options,
        training: bool,
        poptorch_version: str,
        optimizer: torch.optim.Optimizer | None = None,
        user_model: nn.Module | None = None,
    ) -> None:
        translate.check_supported(options, training)
        self._model = model
        self._user_model = user_model if user_model is not None else model
        self._training = training
        self._poptorch_version = poptorch_version
        self._optimizer = optimizer
        self._options = options
        self._parser = ArgsParser(model)
        self._batch_plan = translate.batch_plan(options, training)
        self._output_plan = translate.output_plan(options, training)
        self._arguments: BoundArgs | None = None
        self._step: CompiledStep | None = None
        self._engine: Any = None
        self._rule: UpdateRule | None = None
        self._memory: DeviceMemory | None = None
        self._lease: Lease | None = None
        self._attached = False
        self._host_is_old = False
        self._weights_version = 0
        self._synced_version = 0
        self._random = DeviceRandom(options)
        self._cost: ModelledCost | None = None
        self._source = _training_executor_of(self._user_model) if not training else None
        if training:
            wrap(self._user_model, self)

    # -- what the model is

    @property
    def model(self) -> nn.Module:
        """The module this executor runs."""
        return self._user_model

    @property
    def options(self) -> Options:
        """The options in force."""
        return self._options

    def __getattr__(self, name: str) -> Any:
        """Unknown attributes are the model's."""
        if name.startswith("__") or "_user_model" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._user_model, name)

    def __repr__(self) -> str:
        kind = "training" if self._training else "inference"
        return f"PoplarExecutor({kind}, {self._user_model!r})"

    # -- compiling and running

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile for these arguments without running."""
        if self.isCompiled():
            logger.warning("The model is already compiled: compile() changes nothing.")
            return
        self._compile(self._parser(args, kwargs))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model on a batch; the first call compiles it."""
        check(
            self._options.connection_type is not ConnectionType.Never,
            "Trying to run a model on an offline device (ConnectionType.Never): use "
            "another connection type, or only compile.",
        )
        bound = self._parser(args, kwargs)
        if self._arguments is None:
            self._compile(bound)
        else:
            self._arguments.check_matches(bound)
        if not self._attached:
            self.attachToDevice()
        self._sync_with_training()
        return self._run(bound)

    def _compile(self, bound: BoundArgs) -> None:
        check_tensors(bound.tensors())
        request = CompileRequest(
            name=self._report_name,
            module=self._model,
            arguments=bound,
            batch_plan=self._batch_plan,
            strategy=self._options._execution_strategy,
            trainable=self._trainable() if self._training else None,
        )
        self._cost = ModelledCost(self._options, self._training, self._optimizer)
        with compile_hooks(), self._cost.progress() as progress:
            step = compile_step(request, progress)
            check_pipeline(step, self._options, self._training)
            check_buffers(step, self._options)
            self._cost.set_step(step)
            if directory := report_directory(self._options, self._report_name):
                progress("modelling")
                self._cost.write_report(directory)
        self._step = step
        self._arguments = bound
        self._engine = self._make_engine(step)
        if self._options.connection_type is ConnectionType.Always:
            self.attachToDevice()

    @property
    def _report_name(self) -> str:
        default = "training" if self._training else "inference"
        return self._options._values.get("model_name") or default

    def _trainable(self) -> tuple[str, ...]:
        optimizer = self._optimizer
        assert optimizer is not None
        listed = {id(p) for group in optimizer.param_groups for p in group["params"]}
        return tuple(
            name
            for name, parameter in self._user_model.named_parameters()
            if parameter.requires_grad and id(parameter) in listed
        )

    def _make_engine(self, step: CompiledStep) -> Any:
        repetition = translate.repetition(self._options, self._training)
        replay = self._checked(step.replay)
        count = step.traced.num_outputs
        if self._training:
            self._rule = self._make_rule()
            return TrainingEngine(replay, count, step.traced.trainable, repetition)
        return InferenceEngine(replay, count, repetition)

    def _checked(self, replay: Replay) -> Replay:
        wanted = self._options._Popart.options.get("enableFloatingPointChecks")
        return replay.with_checks() if wanted else replay

    def _make_rule(self) -> UpdateRule:
        assert self._optimizer is not None
        names = {id(p): name for name, p in self._user_model.named_parameters()}
        return translate.update_rule(self._optimizer, names)

    def _run(self, bound: BoundArgs) -> Any:
        assert self._step is not None and self._memory is not None
        inputs = [to_device_type(t) for t in bound.tensors(self._arguments)]
        batches = self._split(inputs)
        collectors = [
            OutputCollector(self._output_plan)
            for _ in range(self._step.traced.num_outputs)
        ]
        with self._random.active(self._step):
            places = self._batch_plan.micro_batches()
            for place, outputs in zip(places, self._outputs(batches), strict=True):
                for collector, output in zip(collectors, outputs, strict=True):
                    collector.add(place, output)
        if self._training:
            self._host_is_old = True
            self._weights_version += 1
        tensors = [_to_host_type(collector.result()) for collector in collectors]
        return rebuild(self._step.traced.example, tensors)

    def _outputs(self, batches: Iterator[list[torch.Tensor]]) -> Iterator[Any]:
        """The outputs of each micro-batch as it finishes."""
        try:
            yield from self._engine_run(batches)
        except ArithmeticTrap as trap:
            raise Error(f"Floating-point exception: {trap}") from trap

    def _engine_run(self, batches: Iterator[list[torch.Tensor]]) -> Iterator[Any]:
        if not self._training:
            return self._engine.run(self._memory, batches)
        assert self._memory is not None and self._rule is not None
        if not self._memory.state:
            self._memory.state = initial_state(self._rule, self._memory.weights)
        return self._engine.run(self._memory, self._rule, batches)

    def _split(self, inputs: list[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
        shares = [self._batch_plan.split(tensor) for tensor in inputs]
        for place in self._batch_plan.micro_batches():
            index = self._batch_plan.share_of(place)
            yield [parts[index] for parts in shares]

    # -- weights

    def copyWeightsToHost(self) -> None:
        """Copy the device's weights and buffers to the module."""
        self._check_compiled()
        if self._memory is not None:
            read_device(self._memory, self._user_model)
        self._host_is_old = False

    def copyWeightsToDevice(self) -> None:
        """Copy the module's weights and buffers to the device.

        What was trained since the last copy to the host is lost.
        """
        self._check_compiled()
        self._host_is_old = False
        self._memory = load_device(
            self._user_model, self._memory, self._num_buffer_sets()
        )

    def copyWeightsToHostIfNeeded(self) -> bool:
        """Copy weights to the module if training changed them; whether it did."""
        if not self._host_is_old:
            return False
        logger.debug("Implicit copyWeightsToHost()")
        self.copyWeightsToHost()
        return True

    def copyNamedBuffersToDevice(self) -> None:
        """Send the buffers named by updatableNamedBuffers to the device."""
        self._check_compiled()
        names = self._options._Popart.options.get("updatableNamedBuffers")
        if names is None:
            raise Error(
                "No buffers can be sent: name them first with "
                "poptorch.Options().updatableNamedBuffers([...])."
            )
        assert self._memory is not None
        buffers = dict(self._user_model.named_buffers())
        for held in self._memory.buffers:
            for name in names:
                held[name].copy_(buffers[name])

    def load_state_dict(self, state_dict: Any, strict: bool = True) -> Any:
        """Load weights into the module and, if attached, onto the device."""
        result = self._user_model.load_state_dict(state_dict, strict)
        if self._attached:
            self.copyWeightsToDevice()
        return result

    def _num_buffer_sets(self) -> int:
        options = self._options
        return 1 if options.broadcast_buffers else options.replication_factor

    def _sync_with_training(self) -> None:
        """Take over what the training model of the same module has learnt."""
        source = self._source
        if source is None or source._weights_version == self._synced_version:
            return
        source.copyWeightsToHostIfNeeded()
        self.copyWeightsToDevice()
        self._synced_version = source._weights_version

    # -- optimiser

    def setOptimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Use other optimiser settings from the next call on; the kind must stay."""
        check(self._training, "An inference model has no optimizer.")
        old, self._optimizer = self._optimizer, optimizer
        if not self.isCompiled():
            return
        if translate._kind_of(optimizer) != translate._kind_of(old):  # type: ignore[arg-type]
            self._optimizer = old
            raise Error(
                f"The optimizer was {type(old).__name__} when the model was compiled "
                f"and cannot become {type(optimizer).__name__}. Call destroy() first."
            )
        self._rule = self._make_rule()
        self._extend_state(self._rule)

    def _extend_state(self, rule: UpdateRule) -> None:
        """Add the state that new settings need and old ones did not, from zero."""
        if self._memory is None or not self._memory.state:
            return
        for slot, tensors in initial_state(rule, self._memory.weights).items():
            self._memory.state.setdefault(slot, tensors)

    # -- device

    def isCompiled(self) -> bool:
        """Whether the model has been compiled."""
        return self._step is not None

    def isAttachedToDevice(self) -> bool:
        """Whether the model holds its IPUs."""
        return self._attached

    def attachToDevice(self) -> None:
        """Hold the IPUs the model needs and load it onto them."""
        self._check_compiled()
        if self._attached:
            raise Error("Device is already attached")
        assert self._step is not None
        count = num_ipus(self._step.num_ipus, self._options)
        self._lease = acquire(count, self._options)
        self._attached = True
        if not self._host_is_old:
            self.copyWeightsToDevice()
        self._synced_version = self._source._weights_version if self._source else 0

    def detachFromDevice(self) -> None:
        """Let go of the IPUs; weights go to the host first."""
        self._check_compiled()
        if not self._attached:
            raise Error("Device is not attached")
        if self._training:
            self.copyWeightsToHostIfNeeded()
        self._release()

    def destroy(self) -> None:
        """Forget the compiled model and give the module back as it was."""
        if not self.isCompiled():
            return
        if self._training:
            self.copyWeightsToHostIfNeeded()
        if self._attached:
            self._release()
        self._step = self._arguments = self._engine = self._memory = None
        self._cost = None
        if self._training:
            unwrap(self._user_model)

    def _release(self) -> None:
        if self._lease is not None:
            self._lease.release()
        self._lease = None
        self._attached = False

    def _check_compiled(self) -> None:
        if not self.isCompiled():
            raise Error("Model has not been compiled or has been destroyed.")

    # -- what it costs

    def cycleCount(self) -> int:
        """Cycles of one call, as the model of the IPU has them."""
        if is_ipu_model(self._options):
            raise Error(
                "Cycle count logging is only supported on actual IPU hardware."
            )
        if not self._options._Popart.options.get("instrumentWithHardwareCycleCounter"):
            raise Error(
                "Cycle count logging is disabled. Please set option logCycleCount to "
                "True to enable."
            )
        if self._memory is None or self._cost is None:
            raise Error(
                "Please run the model at least once before obtaining cycle count."
            )
        return self._cost.modelled().simulation.cost.cycles

    def compilationTime(self) -> timedelta:
        """How long compiling took."""
        if not self._options._show_compilation_progress_bar:
            raise Error(
                "Please set showCompilationProgressBar option to obtain compilation "
                "time."
            )
        if self._cost is None:
            raise Error("Please compile the model before obtaining compilation time.")
        return self._cost.compilation_time

    def __popple__(self) -> Any:
        """The model of this program on its IPUs, for `popple.modelled(executor)`."""
        self._check_compiled()
        assert self._cost is not None
        return self._cost.modelled()


def _training_executor_of(module: nn.Module) -> PoplarExecutor | None:
    """The executor that trains this module, if it is wrapped."""
    if not is_wrapped(module):
        return None
    return module.__dict__["_poptorch_link"].executor


def _to_host_type(tensor: torch.Tensor) -> torch.Tensor:
    """Outputs come back in the device's types."""
    if tensor.dtype is torch.int64:
        return tensor.to(torch.int32)
    return tensor.to(torch.float32) if tensor.dtype is torch.float64 else tensor
