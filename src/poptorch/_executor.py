"""PoplarExecutor: a wrapped model, compiled at its first call and then replayed.

Life of one: wrapped --first call or compile()--> compiled and attached --detach-->
detached --call or attach--> attached ... --destroy--> wrapped again.

What traces, compiles and runs is imported with the first executor, not with poptorch.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from popple.session.interrupts import sleep_safely, uninterrupted
from popple.session.times import CallTimes, Latency, PerfCounters
from popple.text_table import render_html_table

from . import profiling
from ._arguments.args import ArgsParser, BoundArgs, bound_of
from ._device import Attachment, num_ipus
from ._errors import Error, check
from ._logging import logger
from ._model.cycle_counter import check_cycle_counter, count_cycles, log_cycles
from ._model.host_tensors import is_wrapped, linked_executor, unwrap, wrap
from ._model.printing import module_repr
from .enums import CommGroupType, ConnectionType, VariableRetrievalMode
from .options import Options

if TYPE_CHECKING:
    from popple.case import Case
    from popple.engine.torch.session import ReplicaGrouping
    from popple.pipeline import Modelled
    from popple.session import Archive

    from ._model.compiled_model import CompiledModel

__all__ = ["PoplarExecutor"]

_TRACED_METHODS = (
    "copyWeightsToHost",
    "copyWeightsToDevice",
    "setOptimizer",
    "compile",
    "destroy",
)


class PoplarExecutor:
    """Runs a module as a compiled model; made by trainingModel and inferenceModel."""

    def __init__(
        self,
        model: nn.Module,
        options: Options | None,
        training: bool,
        poptorch_version: str,
        optimizer: torch.optim.Optimizer | None = None,
        user_model: nn.Module | None = None,
    ) -> None:
        from ._model.compiler import checked_link
        from ._model.given import own_optimizer, own_options

        self._model, self._training = model, training
        self._user_model = user_model if user_model is not None else model
        self._options = options = own_options(options, training)
        self._optimizer = own_optimizer(optimizer, self._user_model, training)
        self._link = checked_link(self._optimizer, options, training)
        self._poptorch_version = poptorch_version
        self._args_parser: Any = ArgsParser(model)  # wrappers put in their own
        self._compiled: CompiledModel | None = None
        self._device = Attachment(options, wait=sleep_safely)
        self._groupings: dict[str, ReplicaGrouping] = {}
        self._host_is_old = False
        self._weights_version = self._synced_version = 0
        self._source = None if training else linked_executor(self._user_model)
        if training:
            wrap(self._user_model, self)
        kind = "trainingModel" if training else "inferenceModel"
        self._profiling = profiling.Channel(f"poptorch.{kind}")
        self._profiling.instrument(self, *_TRACED_METHODS)

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
        found = getattr(self._user_model, name)
        if isinstance(found, nn.Parameter):
            from ._model.grouped_parameter import GroupedParameter

            return GroupedParameter(found, partial(self._group_replicas, name))
        return found

    def _group_replicas(
        self, name: str, kind: CommGroupType, size: int, mode: VariableRetrievalMode
    ) -> None:
        """Let groups of replicas have their own values of a parameter."""
        if self.isCompiled():
            raise Error(
                f"Replicas of {name} are grouped too late: the model is compiled. Call "
                "replicaGrouping() before, or destroy() first."
            )
        from ._model.grouped_parameter import make_grouping

        self._groupings.pop(name, None)
        if kind is not CommGroupType.All:
            distributed = self._options.Distributed
            replicas = self._options.replication_factor * distributed.numProcesses
            self._groupings[name] = make_grouping(kind, size, mode, replicas)

    def __repr__(self) -> str:
        return module_repr(self._user_model)

    def _repr_html_(self) -> str:
        rows = (
            ("model", type(self._user_model).__name__),
            ("for", "training" if self._training else "inference"),
            ("compiled", "yes" if self.isCompiled() else "no"),
            ("attached", "yes" if self.isAttachedToDevice() else "no"),
        )
        return render_html_table("PopTorch model", rows)

    # -- compiling and running

    @uninterrupted
    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile for these arguments without running."""
        if self.isCompiled():
            logger.warning("The model is already compiled: compile() changes nothing.")
            return
        self._compile(self._bound(args, kwargs))

    def _bound(self, args: Any, kwargs: Any) -> BoundArgs:
        return bound_of(self._args_parser(args, kwargs, self.isCompiled()))

    @uninterrupted
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model on a batch; the first call compiles it."""
        self._check_online()
        check_cycle_counter(self._options)
        bound = self._bound(args, kwargs)
        compiled = self._compiled
        if compiled is None:
            compiled = self._compile(bound)
        else:
            compiled.arguments.check_matches(bound)
        if not self._device.is_held:
            self.attachToDevice()
        self._sync_with_training()
        self._link.send(self.copyWeightsToHostIfNeeded)
        self._link.ran()
        if self._training:
            self._host_is_old = True
            self._weights_version += 1
        with self._profiling.tracepoint("modelExecution"), self._device.running():
            result = compiled.run(bound)
        log_cycles(self._options, self._compiled)
        return result

    def _compile(
        self, bound: BoundArgs, executable: Archive | None = None
    ) -> CompiledModel:
        from ._model.compiler import Compiler

        if self._training and not is_wrapped(self._user_model):
            wrap(self._user_model, self)  # destroy() had unwrapped it
        self._link.name_parameters(self._named_module)
        compiler = Compiler(
            module=self._model,
            options=self._options,
            training=self._training,
            optimizer=self._optimizer,
            link=self._link,
            groupings=self._groupings,
            device=self._device,
            executable=executable,
        )
        with self._profiling.tracepoint("modelCompilation"):
            self._compiled = compiler.compile(bound)
        self._link.connect(self._compiled.session)
        if self._device.is_held:
            self._on_attach()
        return self._compiled

    def isCompiled(self) -> bool:
        """Whether the model has been compiled."""
        return self._compiled is not None

    @property
    def _named_module(self) -> nn.Module:
        from ._model.given import named_module

        return named_module(self._model, self._user_model)

    # What wrappers of PopTorch look at

    @property
    def _executable(self) -> CompiledModel | None:
        """What programs look at to know whether the model is compiled."""
        return self._compiled

    @property
    def _executable_inputs(self) -> BoundArgs | None:
        """The arguments the model is compiled for."""
        return None if self._compiled is None else self._compiled.arguments

    @property
    def _is_attached(self) -> bool:
        return self._device.is_held

    @property
    def _dict_optimizer(self) -> dict[str, Any]:
        """The optimiser's settings by the device's names, each with is-constant."""
        return self._link.as_dict()

    def _get_compiled(self) -> CompiledModel:
        if self._compiled is None:
            raise Error("Model has not been compiled or has been destroyed.")
        return self._compiled

    @uninterrupted
    def destroy(self) -> None:
        """Forget the compiled model and give the module back as it was."""
        if not self.isCompiled():
            return
        self._sync_to_host()
        self._link.disconnect()
        if self._device.is_held:
            self._device.release()
        self._compiled = None
        if self._training:
            unwrap(self._user_model)

    # -- weights

    @uninterrupted
    def copyWeightsToHost(self) -> None:
        """Copy the device's weights and buffers to the module."""
        session = self._get_compiled().session
        if session.memory is not None:
            logger.debug("Writing weights from IPU to host")
            session.read(self._named_module)
        self._host_is_old = False

    @uninterrupted
    def copyWeightsToDevice(self) -> None:
        """Copy the module's weights and buffers to the device.

        What was trained since the last copy to the host is lost.
        """
        compiled = self._get_compiled()
        self._host_is_old = False
        if self._source is not None:
            self._source.copyWeightsToHostIfNeeded()
            self._synced_version = self._source._weights_version
        logger.debug("Writing weights from host to IPU memory")
        compiled.session.load(self._named_module)

    def copyWeightsToHostIfNeeded(self) -> bool:
        """Copy weights to the module if training changed them; whether it did."""
        if not self._host_is_old:
            return False
        logger.debug("Implicit copyWeightsToHost()")
        self.copyWeightsToHost()
        return True

    def _sync_to_host(self) -> None:
        """Bring what the device has changed to the host."""
        self.copyWeightsToHostIfNeeded()
        self._link.refresh()

    def copyNamedBuffersToDevice(self) -> None:
        """Send the buffers named by updatableNamedBuffers to the device."""
        names = self._options._Popart.options.get("updatableNamedBuffers")
        if names is None:
            raise Error(
                "No buffers can be sent: name them first with "
                "poptorch.Options().updatableNamedBuffers([...])."
            )
        self._get_compiled().session.load_buffers(self._named_module, names)

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

    @uninterrupted
    def setOptimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Use other optimiser settings from the next call on; the kind must stay."""
        self._link.use(optimizer)
        self._optimizer = optimizer
        self._link.send(self.copyWeightsToHostIfNeeded)

    # -- device

    def isAttachedToDevice(self) -> bool:
        """Whether the model holds its IPUs."""
        return self._device.is_held

    @uninterrupted
    def attachToDevice(self) -> None:
        """Hold the IPUs the model needs and load it onto them."""
        compiled = self._get_compiled()
        self._check_online()
        if self._device.is_held:
            raise Error("Device is already attached")
        self._device.hold(num_ipus(compiled.step.num_chips, self._options))
        self._on_attach()

    def _on_attach(self) -> None:
        """Load onto newly held IPUs what they need to go on."""
        self.copyWeightsToDevice()
        self._link.attach(self.copyWeightsToHostIfNeeded)
        self._get_compiled().send_random()

    @uninterrupted
    def detachFromDevice(self) -> None:
        """Let go of the IPUs; weights go to the host first."""
        compiled = self._get_compiled()
        if not self._device.is_held:
            raise Error("Device is not attached")
        compiled.read_random()
        self._sync_to_host()
        self._link.detach()
        self._device.release()

    def _check_online(self) -> None:
        check(
            self._options.connection_type is not ConnectionType.Never,
            "Trying to run a model on an offline device (ConnectionType.Never): use "
            "another connection type, or only compile.",
        )

    # -- what is inside

    def getTensorNames(self) -> list[str]:
        """Names of all tensors that can be anchored."""
        check(self._compiled is not None, "The model must be compiled first.")
        return self._get_compiled().tensor_names(self._link.settings())

    def _debugGetPopartIR(self) -> str:
        """The ops of the forward pass as JSON, by the original's names."""
        return self._get_compiled().describe_ops()

    def getAnchoredTensor(self, short_name: str) -> torch.Tensor:
        """What the newest call left in an anchored tensor."""
        check(
            self._compiled is not None,
            f"No tensor was anchored as {short_name}, or the model has not run.",
        )
        return self._get_compiled().anchored(short_name)

    @property
    def rng_state(self) -> list[int]:
        """Seed and state of the device's random numbers."""
        return self._get_compiled().read_random()

    @rng_state.setter
    def rng_state(self, state: list[int]) -> None:
        compiled = self._get_compiled()
        compiled.write_random(state)
        if self.isAttachedToDevice():
            compiled.send_random()

    # -- when things happened, by the host's clock

    def getPerfCounters(self) -> PerfCounters:
        """Times of the newest call, in seconds, by event and tensor."""
        if self._compiled is None:
            return self._times().counters(0, 0)
        facts = self._compiled.step.facts
        return self._times().counters(facts.num_inputs, facts.num_outputs)

    def getHostIpuLatency(self) -> Latency:
        """Least, greatest and average time to send an input, in seconds."""
        return self._times().host_to_device()

    def getComputeLatency(self) -> Latency:
        """Least, greatest and average time from input to output, in seconds."""
        return self._times().compute()

    def getIpuHostLatency(self) -> Latency:
        """Least, greatest and average time to fetch an output, in seconds."""
        return self._times().device_to_host()

    def getLatency(self) -> Latency:
        """Least, greatest and average time of a round trip, in seconds."""
        return self._times().round_trip()

    def _times(self) -> CallTimes:
        return CallTimes() if self._compiled is None else self._compiled.session.times

    # -- files

    def save(
        self, filename: str, export_model: bool = True, save_rng_state: bool = True
    ) -> None:
        """Write the compiled model to a file, with the module unless told otherwise.

        `poptorch.load` gives back a file with the module; one without is for
        `loadExecutable` of a model wrapped again.
        """
        from ._model.saving import Exported, save_model

        compiled, exported = self._get_compiled(), None
        state = self.rng_state if save_rng_state else []
        if export_model:
            self._sync_to_host()
            exported = Exported(self.model, self._options, self._optimizer)
        identity = (self._poptorch_version, self._training)
        save_model(filename, identity, compiled, state, exported)

    def __getstate__(self) -> dict[str, Any]:
        """Models are saved in files of their own once they are compiled."""
        if self._compiled is not None:
            raise Error(
                "A compiled model cannot be pickled. Use model.save(file) and "
                "poptorch.load(file), or pickle model.model, the module."
            )
        return dict(self.__dict__)

    def compileAndExport(
        self, filename: str, *args: Any, export_model: bool = True, **kwargs: Any
    ) -> None:
        """Compile for these arguments and write the model to a file."""
        self.compile(*args, **kwargs)
        self.save(filename, export_model)

    def loadExecutable(self, filename: str) -> None:
        """Take the compiled step of a file; nothing in it is executed."""
        from ._model.saving import open_executable

        arguments, archive = open_executable(filename, self._poptorch_version)
        self._compile_for(arguments, archive)

    @uninterrupted
    def _compile_for(self, arguments: BoundArgs, executable: Archive | None) -> None:
        """Compile for arguments that were saved, with the step that was."""
        self.destroy()
        tensors = (tensor.contiguous() for tensor in arguments.tensors())
        self._compile(arguments.rebuild(tensors), executable)

    # -- what it costs

    def cycleCount(self) -> int:
        """Cycles of one call, as the model of the IPU has them."""
        return count_cycles(self._options, self._compiled)

    def compilationTime(self) -> timedelta:
        """How long compiling took."""
        if self._compiled is None:
            raise Error("Please compile the model before obtaining compilation time.")
        if not self._options._show_compilation_progress_bar:
            raise Error(
                "Please set showCompilationProgressBar option to obtain compilation "
                "time."
            )
        return self._compiled.compilation_time

    def __popple__(self) -> Modelled:
        """The model of this program on its IPUs, for `popple.modelled(executor)`."""
        return self._get_compiled().cost.modelled()

    def __popple_case__(self) -> Case:
        """What is modelled, for `popple.advise(executor)`."""
        return self._get_compiled().cost.request.case
