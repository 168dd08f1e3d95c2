"""PoplarExecutor: a wrapped model, compiled at its first call and then replayed.

Life of one: wrapped --first call or compile()--> compiled and attached --detach-->
detached --call or attach--> attached ... --destroy--> wrapped again.

What traces, compiles and runs is imported with the first executor, not with poptorch.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from popple.session.times import CallTimes, Latency, PerfCounters

from . import profiling
from ._arguments.args import ArgsParser, BoundArgs
from ._device import Attachment, is_ipu_model, num_ipus
from ._errors import Error, check
from ._logging import logger
from ._model.host_tensors import is_wrapped, linked_executor, unwrap, wrap
from ._model.printing import module_repr
from ._model.saving import read_arguments, save_model
from .enums import CommGroupType, ConnectionType, VariableRetrievalMode
from .options import Options

if TYPE_CHECKING:
    from popple.engine.torch.session import ReplicaGrouping
    from popple.pipeline import Modelled

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
        options: Options,
        training: bool,
        poptorch_version: str,
        optimizer: torch.optim.Optimizer | None = None,
        user_model: nn.Module | None = None,
    ) -> None:
        from ._model.compiler import checked_link

        self._link = checked_link(optimizer, options, training)
        self._model = model
        self._user_model = user_model if user_model is not None else model
        self._training = training
        self._poptorch_version = poptorch_version
        self._optimizer = optimizer
        self._options = options
        self._parser = ArgsParser(model)
        self._compiled: CompiledModel | None = None
        self._device = Attachment(options)
        self._groupings: dict[str, ReplicaGrouping] = {}
        self._host_is_old = False
        self._weights_version = 0
        self._synced_version = 0
        self._source: PoplarExecutor | None = None
        if training:
            wrap(self._user_model, self)
        else:
            self._source = linked_executor(self._user_model)
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
            replicas = self._options.replication_factor
            self._groupings[name] = make_grouping(kind, size, mode, replicas)

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
        self._check_cycle_counter()
        bound = self._parser(args, kwargs)
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
        with self._profiling.tracepoint("modelExecution"):
            result = compiled.run(bound)
        self._log_cycles()
        return result

    def _compile(self, bound: BoundArgs) -> CompiledModel:
        from ._model.compiler import Compiler

        if self._training and not is_wrapped(self._user_model):
            wrap(self._user_model, self)  # destroy() had unwrapped it
        self._link.name_parameters(self._user_model)
        compiler = Compiler(
            module=self._model,
            options=self._options,
            training=self._training,
            optimizer=self._optimizer,
            link=self._link,
            groupings=self._groupings,
            device=self._device,
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
    def _executable(self) -> CompiledModel | None:
        """What programs look at to know whether the model is compiled."""
        return self._compiled

    def _get_compiled(self) -> CompiledModel:
        if self._compiled is None:
            raise Error("Model has not been compiled or has been destroyed.")
        return self._compiled

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

    def copyWeightsToHost(self) -> None:
        """Copy the device's weights and buffers to the module."""
        session = self._get_compiled().session
        if session.memory is not None:
            logger.debug("Writing weights from IPU to host")
            session.read(self._user_model)
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
        logger.debug("Writing weights from host to IPU memory")
        compiled.session.load(self._user_model)

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
        self._get_compiled().session.load_buffers(self._user_model, names)

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

    def setOptimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Use other optimiser settings from the next call on; the kind must stay."""
        self._link.use(optimizer)
        self._optimizer = optimizer
        self._link.send(self.copyWeightsToHostIfNeeded)

    # -- device

    def isAttachedToDevice(self) -> bool:
        """Whether the model holds its IPUs."""
        return self._device.is_held

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
        traced = self._compiled.step.traced
        return self._times().counters(traced.num_inputs, traced.num_outputs)

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
        arguments = self._get_compiled().arguments
        state = self.rng_state if save_rng_state else []
        exported = None
        if export_model:
            self._sync_to_host()
            exported = (self.model, self._options, self._optimizer)
        identity = (self._poptorch_version, self._training)
        save_model(filename, identity, arguments, state, exported)

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
        """Compile as a file of `save` or `compileAndExport` says."""
        self._compile_for(read_arguments(filename, self._poptorch_version))

    def _compile_for(self, arguments: BoundArgs) -> None:
        """Compile anew for arguments that were saved."""
        self.destroy()
        self._compile(arguments)

    # -- what it costs

    def cycleCount(self) -> int:
        """Cycles of one call, as the model of the IPU has them."""
        self._check_cycle_counter()
        if not self._counts_cycles:
            raise Error(
                "Cycle count logging is disabled. Please set option logCycleCount to "
                "True to enable."
            )
        if self._compiled is None or not self._compiled.session.has_run:
            raise Error(
                "Please run the model at least once before obtaining cycle count."
            )
        return self._compiled.cost.cycles()

    @property
    def _counts_cycles(self) -> bool:
        options = self._options._Popart.options
        return bool(options.get("instrumentWithHardwareCycleCounter"))

    def _check_cycle_counter(self) -> None:
        """Error if cycles are to be counted where there are none."""
        if self._counts_cycles and is_ipu_model(self._options):
            raise Error("Cycle count logging is only supported on actual IPU hardware.")

    def _log_cycles(self) -> None:
        """Write the cycles of a call to the log, if they are counted."""
        if self._counts_cycles and logger.isEnabledFor(logging.DEBUG):
            logger.debug("Total number of IPU cycles: %d", self.cycleCount())

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
