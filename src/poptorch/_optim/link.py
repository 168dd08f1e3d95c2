"""The user's optimiser and its twin on the device.

optimiser --describe--> Description --make_rule--> rule the device updates by
state_dict() <--read-- state and parameters on the device <--write-- load_state_dict()

Settings go to the device when the model is attached and at `setOptimizer`, loaded
state at the next call; state comes back when someone asks for it, or detaches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from popple.engine.torch import UpdateRule
from popple.engine.torch.session import CompiledStep, TorchSession

from .. import _translate as translate
from .. import optim
from .._logging import logger
from ..enums import MeanReductionStrategy
from ..options import Options
from .checks import AttributeChecks, check_owner, check_replacement, log_lines
from .description import Description, Settings, check_optimizer, describe
from .parameters import encode, load
from .rule import Names, make_rule, names_of_groups
from .tensors import read_state, write_state

__all__ = ["NoOptimizer", "OptimizerLink"]


class NoOptimizer:
    """Stands for the optimiser of an inference model: there is none."""

    scales_loss = False
    trainable = None

    def name_parameters(self, module: nn.Module) -> None:
        """Nothing is trained."""

    def use(self, optimizer: torch.optim.Optimizer) -> None:
        """There is nothing to optimise."""
        raise AssertionError("An inference model has no optimizer.")

    def rule_for(self, step: CompiledStep) -> None:
        """There is no rule."""

    def connect(self, model: TorchSession) -> None:
        """Nothing to do."""

    def disconnect(self) -> None:
        """Nothing to do."""

    def attach(self, save_weights: Callable[[], Any]) -> None:
        """Nothing to do."""

    def detach(self) -> None:
        """Nothing to do."""

    def refresh(self) -> None:
        """Nothing to do."""

    def send(self, save_weights: Callable[[], Any]) -> None:
        """Nothing to do."""

    def ran(self) -> None:
        """Nothing to do."""

    def settings(self) -> dict[str, torch.Tensor]:
        """There are none."""
        return {}

    def as_dict(self) -> dict[str, Any]:
        """There is nothing to say."""
        return {}


class OptimizerLink:
    """Keeps an optimiser and the device of one training model in step.

    `trainable` are the names of the weights it can train, once they are named.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, options: Options) -> None:
        self._options = options
        self._checks = AttributeChecks(options._relax_optimizer_checks)
        self._model: TorchSession | None = None
        self._compiled_with: Description | None = None
        self._parameters: dict[int, str] = {}
        self._module_parameters: tuple[nn.Parameter, ...] = ()
        self.trainable: tuple[str, ...] = ()
        self._is_attached = False
        self._is_uploaded = False
        self.optimizer = optimizer
        self._description = self._described(optimizer)
        # What the device has: the description, or that with numbers loaded over it.
        self._held: tuple[Description, Names] = (self._description, ())

    @property
    def description(self) -> Description:
        """The optimiser as the device is told of it."""
        return self._description

    @property
    def scales_loss(self) -> bool:
        """Whether the compiled step has to scale the loss."""
        scaling = self._description.loss_scaling
        return scaling.value != 1 or not scaling.is_const

    # -- the user's side

    def name_parameters(self, module: nn.Module) -> None:
        """Learn the names of parameters from the model's module."""
        self._module_parameters = tuple(module.parameters())
        check_owner(self.optimizer, self._module_parameters)
        groups = self.optimizer.param_groups
        listed = {id(p) for group in groups for p in group["params"]}
        self._parameters = {id(p): name for name, p in module.named_parameters()}
        self.trainable = tuple(
            name
            for name, parameter in module.named_parameters()
            if parameter.requires_grad and id(parameter) in listed
        )

    def use(self, optimizer: torch.optim.Optimizer) -> None:
        """Train with this optimiser, or these changes of it, from the next call on."""
        description = self._described(optimizer)
        if self._compiled_with is not None:
            check_replacement(self._compiled_with, description)
        if optimizer is not self.optimizer:
            check_owner(optimizer, self._module_parameters)
            self._exchange(optimizer)
        if description != self._description:
            self._description = description
            self._is_uploaded = False

    def _described(self, optimizer: torch.optim.Optimizer) -> Description:
        check_optimizer(optimizer)
        automatic = translate.automatic_scaling(self._options)
        if automatic is not None and isinstance(optimizer, optim.Optimizer):
            optimizer.variable_attrs.markAsVariable("loss_scaling")
        description = describe(optimizer, automatic is not None)
        self._fit_strategy(description)
        self._checks.check(optimizer, description.kind)
        return description

    def _fit_strategy(self, description: Description) -> None:
        """Sums in float16 overflow: their mean must be kept up as they are made."""
        is_half = description.accumulator_type is torch.float16
        running = MeanReductionStrategy.Running
        training = self._options.Training
        strategy = training.meanAccumulationAndReplicationReductionStrategy
        if not is_half or description.kind == "SGD1" or strategy is running:
            return
        if self._compiled_with is not None:
            raise ValueError(
                "accum_type=torch.float16 needs a running mean of gradients "
                "(MeanReductionStrategy.Running), but the model is already compiled "
                f"with {strategy}. Set accum_type before, or call destroy() first."
            )
        self._options._unfreeze()
        training.setMeanAccumulationAndReplicationReductionStrategy(running)
        self._options._freeze()

    def _exchange(self, optimizer: torch.optim.Optimizer) -> None:
        """The old optimiser keeps a last copy of the state; the new one takes over."""
        self._leave()
        self.optimizer = optimizer
        if self._is_attached:
            self._take_over()

    def _take_over(self) -> None:
        """From now on the device has the optimiser's state."""
        optimizer = self.optimizer
        if isinstance(optimizer, optim.Optimizer):
            optimizer._ipu_state = self
            optimizer.ipu_state_is_dirty = optimizer.has_state()
            optimizer.host_state_is_dirty = not optimizer.has_state()

    def _leave(self) -> None:
        """The optimiser keeps a last copy of the device's state."""
        if isinstance(self.optimizer, optim.Optimizer):
            self.optimizer._refresh()
            self.optimizer._ipu_state = None

    def as_dict(self) -> dict[str, Any]:
        """The settings of defaults and groups as (value, is constant), by name."""
        description = self._description
        return {
            "defaults": _pairs(description.defaults),
            "groups": [_pairs(group) for group in description.groups],
        }

    # -- the device's side

    def rule_for(self, step: CompiledStep) -> UpdateRule:
        """The rule to compile a step with."""
        trained, names = step.facts.gradients, self._parameters
        self._parameters = {i: name for i, name in names.items() if name in trained}
        return make_rule(self._description, self._group_names())

    def connect(self, model: TorchSession) -> None:
        """Work with a newly compiled model."""
        self._model = model
        model.settings = self.settings
        self._compiled_with = self._description
        self._is_uploaded = False

    def disconnect(self) -> None:
        """The compiled model goes away."""
        self._leave()
        self._is_attached = False
        self._model = self._compiled_with = None

    def attach(self, save_weights: Callable[[], Any]) -> None:
        """Send settings and state to a device that has just been attached."""
        self._is_attached = True
        self._take_over()
        self.send(save_weights)

    def detach(self) -> None:
        """The device goes away."""
        self._is_attached = False

    def refresh(self) -> None:
        """Let the optimiser have a copy of the device's state that is not old."""
        if isinstance(self.optimizer, optim.Optimizer):
            self.optimizer._refresh()

    def send(self, save_weights: Callable[[], Any]) -> None:
        """Send to the device what has changed on the host."""
        if not self._is_attached:
            return
        if not self._is_uploaded:
            names = self._group_names()
            for line in log_lines(self._description, names):
                logger.debug(line)
            self._hold(self._description, names)
            self._is_uploaded = True
        optimizer = self.optimizer
        if not isinstance(optimizer, optim.Optimizer):
            return
        if optimizer.ipu_state_is_dirty and optimizer.has_state():
            save_weights()
            self._write(optimizer)
        elif optimizer.ipu_state_is_dirty:
            optimizer.host_state_is_dirty = True
        optimizer.ipu_state_is_dirty = False

    def _group_names(self) -> Names:
        return names_of_groups(self.optimizer, self._parameters)

    def _hold(self, description: Description, names: Names) -> None:
        self._held = (description, names)
        self._get_model().use_rule(make_rule(description, names))

    def _write(self, optimizer: optim.Optimizer) -> None:
        logger.debug("Writing optimiser state tensors from host to IPU memory")
        loaded = optimizer._state_dict
        description, names = self._held
        if optimizer._loads_parameters:
            description, names = load(
                description, names, self._share, loaded["ipu_param"]
            )
        write_state(description.kind, self._get_model(), loaded["ipu_state"])
        self._hold(description, names)

    def ran(self) -> None:
        """A call has moved the state on."""
        if isinstance(self.optimizer, optim.Optimizer):
            self.optimizer.host_state_is_dirty = True

    def read(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """State and parameters on the device, by name."""
        logger.debug("Writing optimiser state tensors from IPU to host.")
        description, names = self._held
        state = read_state(description.kind, self._get_model())
        return state, encode(description, names, self._share)

    def settings(self) -> dict[str, torch.Tensor]:
        """The optimiser's variable numbers by name."""
        if self._is_uploaded:
            description, names = self._held
        else:
            description, names = self._description, self._group_names()
        return encode(description, names, self._share)

    @property
    def _share(self) -> float:
        return translate.repetition(self._options, training=True).share

    def _get_model(self) -> TorchSession:
        assert self._model is not None, "the model is not compiled"
        return self._model


def _pairs(settings: Settings) -> dict[str, tuple[float, bool]]:
    return {name: (s.value, s.is_const) for name, s in settings.items()}
