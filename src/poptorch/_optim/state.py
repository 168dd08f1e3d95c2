"""What all PopTorch optimisers share: extra arguments, const attributes, state.

The state of an optimiser lives on the device. Its executor sets `_ipu_state`, an
object that reads it; until then the device part of `state_dict()` is None.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import torch

from popple.errors import suggest

from .._errors import check
from .._logging import logger

__all__ = ["IPUState", "Optimizer", "VariableAttributes", "explicit"]

_FLOATS = (torch.float32, torch.float16)
_EXTRA_DEFAULTS: dict[str, Any] = {
    "loss_scaling": 1.0,
    "accum_type": torch.float32,
    "velocity_accum_type": torch.float32,
    "first_order_momentum_accum_type": torch.float32,
    "second_order_momentum_accum_type": torch.float32,
    "max_grad_norm": float("inf"),
    "use_combined_accum": False,
    "use_tf_variant": False,
    "bias_correction": True,
}
"""Extra arguments that become attributes of the optimiser, with their defaults."""


class IPUState(Protocol):
    """The device's side of an optimiser: named tensors."""

    def read(self) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
        """State (`Accl1___w`, ...) and parameters (`learningRate___...`) by name."""
        ...


class VariableAttributes:
    """Which attributes of an optimiser may change after compilation."""

    def __init__(
        self, variable_attributes: list[str], allowed_attributes: list[str]
    ) -> None:
        self._variable_attributes = variable_attributes
        self._allowed_attributes = allowed_attributes

    def isConstant(self, attr: str) -> bool:
        """Whether `attr` is compiled in."""
        return attr not in self._variable_attributes

    def markAsConstant(self, attr: str) -> None:
        """Compile `attr` in: smaller and faster, but it can no longer change."""
        self._check_known(attr)
        kept = [name for name in self._variable_attributes if name != attr]
        self._variable_attributes = kept

    def markAsVariable(self, attr: str) -> None:
        """Let `attr` change after compilation."""
        self._check_known(attr)
        if self.isConstant(attr):
            self._variable_attributes = [*self._variable_attributes, attr]

    def _check_known(self, attr: str) -> None:
        check(
            attr in self._allowed_attributes,
            f"Unknown attribute {attr}. {suggest(attr, self._allowed_attributes)}",
        )


def explicit(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a constructor that were given: not `self`, not None."""
    return {
        name: value
        for name, value in arguments.items()
        if name not in ("self", "__class__") and value is not None
    }


class Optimizer:
    """Mixed into torch's optimisers: the part of them that is on the device.

    `ipu_state_is_dirty`: loaded state still has to go to the device.
    `host_state_is_dirty`: the device has moved on since the state was last read.
    """

    _extra_arguments: ClassVar[tuple[str, ...]] = ()
    _group_arguments: ClassVar[tuple[str, ...]] = ()

    variable_attrs: VariableAttributes
    defaults: dict[str, Any]
    param_groups: list[dict[str, Any]]
    loss_scaling: float
    bias_correction: bool
    use_combined_accum: bool

    def __init__(self) -> None:
        self._state_dict: dict[str, Any] = {"ipu_state": None, "ipu_param": None}
        self._ipu_state: IPUState | None = None
        self._loaded_settings: list[Any] | None = None
        self.ipu_state_is_dirty = False
        self.host_state_is_dirty = False

    def _torch_arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        """The given arguments that torch's class knows."""
        extra = self._extra_arguments
        return {name: value for name, value in given.items() if name not in extra}

    def _keep_extras(self, given: dict[str, Any]) -> None:
        """Make attributes of the extra arguments, given or not."""
        for name in self._extra_arguments:
            if name in _EXTRA_DEFAULTS:
                value = given.get(name, _EXTRA_DEFAULTS[name])
                _check_accumulation_type(name, value)
                setattr(self, name, value)

    def _track(self, given: dict[str, Any]) -> None:
        """What was given explicitly is variable, the rest constant."""
        allowed = [*self.defaults, "loss_scaling"]
        self.variable_attrs = VariableAttributes(list(given), allowed)

    def state_dict(self) -> dict[str, Any]:
        """Device state, device parameters, and torch's own state dict."""
        return self.get_state_dict()

    def get_state_dict(self) -> dict[str, Any]:
        """Device state, device parameters, and torch's own state dict."""
        self._refresh()
        # Copies, so that a program editing what it got does not edit the cache.
        device = {key: copy.copy(value) for key, value in self._state_dict.items()}
        return {**device, **torch.optim.Optimizer.state_dict(self)}  # pyright: ignore[reportArgumentType]

    def _refresh(self) -> None:
        """Read the device's state if the copy of it is old."""
        if self._ipu_state is None:
            return
        if not self.host_state_is_dirty:
            logger.debug("Using cached optimiser state dict")
            return
        state, parameters = self._ipu_state.read()
        self._state_dict = {"ipu_state": state, "ipu_param": parameters}
        self.host_state_is_dirty = False

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state dict; the device gets it at the next call."""
        _check_ipu_state(state)
        torch.optim.Optimizer.load_state_dict(self, state)  # pyright: ignore[reportArgumentType]
        self.set_state_dict(state)

    def set_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the device part of a state dict."""
        _check_ipu_state(state)
        self._state_dict = {key: state[key] for key in ("ipu_state", "ipu_param")}
        self._loaded_settings = self._settings()
        self.ipu_state_is_dirty = True
        self.host_state_is_dirty = False

    @property
    def _loads_parameters(self) -> bool:
        """Whether loaded parameters count; settings changed since then beat them."""
        return self._loaded_settings == self._settings()

    def _settings(self) -> list[Any]:
        groups = [{**group, "params": None} for group in self.param_groups]
        return [*groups, dict(self.defaults), self.loss_scaling]

    def has_state(self) -> bool:
        """Whether there is device state to keep."""
        return all(value is not None for value in self._state_dict.values())

    def __getstate__(self) -> dict[str, Any]:
        """torch's state and ours, without the link to the executor."""
        self._refresh()
        names = [name for name in self._extra_arguments if name in self.__dict__]
        return {
            **torch.optim.Optimizer.__getstate__(self),  # pyright: ignore[reportArgumentType]
            **{name: self.__dict__[name] for name in names},
            "variable_attrs": self.variable_attrs,
            "_state_dict": self._state_dict,
            "_ipu_state": None,
            "_loaded_settings": self._loaded_settings,
            "ipu_state_is_dirty": self.has_state(),
            "host_state_is_dirty": False,
        }


def _check_accumulation_type(name: str, value: Any) -> None:
    if name.endswith("accum_type"):
        check(
            value in _FLOATS,
            f"Accumulation types must be torch.float32 or torch.float16, but {name} "
            f"is {value}.",
        )


def _check_ipu_state(state: dict[str, Any]) -> None:
    if not state:
        raise RuntimeError("Cannot load an empty optimizer state dict.")
    if not {"ipu_state", "ipu_param"} <= state.keys():
        raise RuntimeError(
            "Only IPU optimizer states can be loaded onto the IPU. This one comes from "
            "a torch optimizer: load it into that."
        )
