"""PoplarExecutor: a wrapped model, compiled at its first call and then replayed.

Life of one: wrapped --first call or compile()--> compiled and attached --detach-->
detached --call or attach--> attached ... --destroy--> wrapped again.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch
from torch import nn

from popple.engine.torch import UpdateRule

from . import _translate as translate
from ._anchors import Anchor, anchors_of, check_anchors
from ._args import ArgsParser, BoundArgs, check_tensors
from ._backend import chosen_backend
from ._checks import check_buffers, check_named_buffers, check_pipeline
from ._compile import CompiledStep, CompileRequest, compile_step
from ._compiled_model import CompiledModel
from ._device import Attachment, num_ipus
from ._errors import Error, check
from ._executor_services import ExecutorServices
from ._hooks import compile_hooks
from ._logging import TRACE, logger
from ._modelling import ModelledCost, report_directory
from ._ops_overlap import check_overlap
from ._placement_log import log_placement
from ._printing import module_repr
from ._session_options import check_session_options
from ._wrapped import is_wrapped, linked_executor, unwrap, wrap
from .enums import ConnectionType
from .options import Options

__all__ = ["PoplarExecutor"]


class PoplarExecutor(ExecutorServices):
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
        if optimizer is not None:
            translate.check_optimizer(optimizer)
        self._model = model
        self._user_model = user_model if user_model is not None else model
        self._training = training
        self._poptorch_version = poptorch_version
        self._optimizer = optimizer
        self._options = options
        self._parser = ArgsParser(model)
        self._batch_plan = translate.batch_plan(options, training)
        self._compiled: CompiledModel | None = None
        self._cost: ModelledCost | None = None
        self._device = Attachment(options)
        self._host_is_old = False
        self._weights_version = 0
        self._synced_version = 0
        self._source: PoplarExecutor | None = None
        translate.output_plan(options, training)  # refuses periods that do not fit
        if training:
            wrap(self._user_model, self)
        else:
            self._source = linked_executor(self._user_model)

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
        return module_repr(self._user_model)

    # -- compiling and running

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile for these arguments without running."""
        if self.isCompiled():
            logger.warning("The model is already compiled: compile() changes nothing.")
            return
        self._compile(self._parser(args, kwargs))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model on a batch; the first call compiles it."""
        self._check_online()
        bound = self._parser(args, kwargs)
        compiled = self._compiled
        if compiled is None:
            compiled = self._compile(bound)
        else:
            compiled.arguments.check_matches(bound)
        if not self._device.is_held:
            self.attachToDevice()
        self._sync_with_training()
        if self._training:
            self._host_is_old = True
            self._weights_version += 1
        return compiled.run(bound)

    def _compile(self, bound: BoundArgs) -> CompiledModel:
        check_tensors(bound.tensors())
        if any(tensor.requires_grad for tensor in bound.tensors()):
            logger.warning(
                "An input has requires_grad set. It is detached: a compiled model "
                "gives no gradients for its inputs."
            )
        if self._training and not is_wrapped(self._user_model):
            wrap(self._user_model, self)  # destroy() had unwrapped it
        check_session_options(self._options.toDict())
        cost = ModelledCost(self._options, self._optimizer)
        with ExitStack() as undo, compile_hooks(), cost.progress() as progress:
            anchors = anchors_of(self._options, self._training)
            step = compile_step(self._compile_request(bound, anchors), progress)
            self._check_step(step)
            check_anchors(anchors, self._tensors_of(step))
            log_placement(step, self._options)
            self._take_device(step, undo)
            cost.set_step(step)
            if directory := report_directory(self._options, self._report_name):
                progress("modelling")
                cost.write_report(directory)
            rule = self._make_rule() if self._training else None
            compiled = CompiledModel(step, bound, self._options, rule, anchors)
            undo.pop_all()
        logger.log(TRACE, "Finished Poplar compilation")
        self._compiled, self._cost = compiled, cost
        if self._device.is_held:
            self._on_attach()
        return compiled

    def _compile_request(
        self, bound: BoundArgs, anchors: tuple[Anchor, ...]
    ) -> CompileRequest:
        return CompileRequest(
            name=self._report_name,
            module=self._model,
            arguments=bound,
            batch_plan=self._batch_plan,
            strategy=self._options._execution_strategy,
            trainable=self._trainable() if self._training else None,
            backend=chosen_backend(),
            anchors=tuple(anchor.name for anchor in anchors),
            has_scopes=self._options._module_namescope_enabled,
        )

    def _check_step(self, step: CompiledStep) -> None:
        check_pipeline(step, self._options, self._training)
        check_buffers(step, self._options)
        check_named_buffers(step, self._options)
        check_overlap(step.traced, self._options)

    def _take_device(self, step: CompiledStep, undo: ExitStack) -> None:
        """Hold the IPUs, or find out which ones it will be, as the options say."""
        connection = self._options.connection_type
        if connection is ConnectionType.Never:
            return
        count = num_ipus(step.num_ipus, self._options)
        if connection is ConnectionType.OnDemand:
            self._device.choose(count)
        else:
            self._device.hold(count)
            undo.callback(self._device.release)

    @property
    def _report_name(self) -> str:
        default = "training" if self._training else "inference"
        return self._options._values.get("model_name") or default

    def _trainable(self) -> tuple[str, ...]:
        assert self._optimizer is not None
        groups = self._optimizer.param_groups
        listed = {id(p) for group in groups for p in group["params"]}
        return tuple(
            name
            for name, parameter in self._user_model.named_parameters()
            if parameter.requires_grad and id(parameter) in listed
        )

    def _make_rule(self) -> UpdateRule:
        assert self._optimizer is not None
        names = {id(p): name for name, p in self._user_model.named_parameters()}
        return translate.update_rule(self._optimizer, names)

    # -- weights

    def copyWeightsToHost(self) -> None:
        """Copy the device's weights and buffers to the module."""
        self._get_compiled().read(self._user_model)
        self._host_is_old = False

    def copyWeightsToDevice(self) -> None:
        """Copy the module's weights and buffers to the device.

        What was trained since the last copy to the host is lost.
        """
        compiled = self._get_compiled()
        self._host_is_old = False
        if self._source is not None:
            self._source.copyWeightsToHostIfNeeded()
            self._synced_version = self._source._weights_version
        compiled.load(self._user_model)

    def copyWeightsToHostIfNeeded(self) -> bool:
        """Copy weights to the module if training changed them; whether it did."""
        if not self._host_is_old:
            return False
        logger.debug("Implicit copyWeightsToHost()")
        self.copyWeightsToHost()
        return True

    def copyNamedBuffersToDevice(self) -> None:
        """Send the buffers named by updatableNamedBuffers to the device."""
        names = self._options._Popart.options.get("updatableNamedBuffers")
        if names is None:
            raise Error(
                "No buffers can be sent: name them first with "
                "poptorch.Options().updatableNamedBuffers([...])."
            )
        self._get_compiled().load_buffers(self._user_model, names)

    def load_state_dict(self, state_dict: Any, strict: bool = True) -> Any:
        """Load weights into the module and, if attached, onto the device."""
        result = self._user_model.load_state_dict(state_dict, strict)
        if self.isAttachedToDevice():
            self.copyWeightsToDevice()
        return result

    def _sync_with_training(self) -> None:
        """Take over what the training model of the same module has learnt."""
        source = self._source
        if source is not None and source._weights_version != self._synced_version:
            self.copyWeightsToDevice()

    # -- optimiser

    def setOptimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Use other optimiser settings from the next call on; the kind must stay."""
        check(self._training, "An inference model has no optimizer.")
        translate.check_optimizer(optimizer)
        old = self._optimizer
        if self._compiled and not translate.is_same_kind(optimizer, old):
            raise Error(
                f"The optimizer was {type(old).__name__} when the model was compiled "
                f"and cannot become {type(optimizer).__name__}. Call destroy() first."
            )
        self._optimizer = optimizer
        if self._compiled:
            self._compiled.use_rule(self._make_rule())

    # -- device

    def isCompiled(self) -> bool:
        """Whether the model has been compiled."""
        return self._compiled is not None

    def isAttachedToDevice(self) -> bool:
        """Whether the model holds its IPUs."""
        return self._device.is_held

    def attachToDevice(self) -> None:
        """Hold the IPUs the model needs and load it onto them."""
        compiled = self._get_compiled()
        self._check_online()
        if self._device.is_held:
            raise Error("Device is already attached")
        self._device.hold(num_ipus(compiled.step.num_ipus, self._options))
        self._on_attach()

    def _on_attach(self) -> None:
        """Load onto newly held IPUs what they need to go on."""
        self.copyWeightsToDevice()
        self._get_compiled().random.send()

    def detachFromDevice(self) -> None:
        """Let go of the IPUs; weights go to the host first."""
        compiled = self._get_compiled()
        if not self._device.is_held:
            raise Error("Device is not attached")
        compiled.random.read()
        self.copyWeightsToHostIfNeeded()
        self._device.release()

    def destroy(self) -> None:
        """Forget the compiled model and give the module back as it was."""
        if not self.isCompiled():
            return
        self.copyWeightsToHostIfNeeded()
        if self._device.is_held:
            self._device.release()
        self._compiled = self._cost = None
        if self._training:
            unwrap(self._user_model)

    def _get_compiled(self) -> CompiledModel:
        if self._compiled is None:
            raise Error("Model has not been compiled or has been destroyed.")
        return self._compiled

    def _check_online(self) -> None:
        check(
            self._options.connection_type is not ConnectionType.Never,
            "Trying to run a model on an offline device (ConnectionType.Never): use "
            "another connection type, or only compile.",
        )
