"""Options and optimisers as JSON: objects of a few known classes, made of plain data.

    {"object": ["Options", {...}]}   an object of a class in the table, by attributes
    {"again": 3}                     the object that was written as number 3
    {"enum": ["OutputMode", "All"]}  a member of an enumeration of poptorch
    {"parameter": "fc.weight"}       a parameter of the model
    {"tensor": "state/4"}            another tensor, whose numbers stand beside
    {"tuple": [...]}, {"dict": [[key, value], ...]}, {"set": [...]}

A reader makes objects of these classes and no others, and sets attributes; nothing
that a file names is called or imported.
"""

from __future__ import annotations

import enum
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from popple.capture.torch.stored_values import NotStorable, check, pack, unpack, whole

from .. import enums, optim
from .._options.groups import (
    _DistributedOptions,
    _JitOptions,
    _PopartOptions,
    _PrecisionOptions,
    _TrainingOptions,
)
from .._options.locations import TensorLocationSettings, _TensorLocationOptions
from .._tracing.strategies import (
    ParallelPhasedExecution,
    Phase,
    PipelinedExecution,
    SerialPhasedExecution,
    ShardedExecution,
    Stage,
)
from ..options import Options
from .progress import ProgressBar

__all__ = ["PlainReader", "PlainWriter"]

_OPTIONS: tuple[type, ...] = (
    Options,
    _DistributedOptions,
    _JitOptions,
    _PopartOptions,
    _PrecisionOptions,
    _TrainingOptions,
    TensorLocationSettings,
    _TensorLocationOptions,
    ParallelPhasedExecution,
    Phase,
    PipelinedExecution,
    SerialPhasedExecution,
    ShardedExecution,
    Stage,
    ProgressBar,
    optim.VariableAttributes,
)
_OPTIMIZERS: tuple[type, ...] = (
    optim.SGD,
    optim.Adam,
    optim.AdamW,
    optim.RMSprop,
    optim.LAMB,
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.RMSprop,
)


def _name_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


_CLASSES = {_name_of(cls): cls for cls in (*_OPTIONS, *_OPTIMIZERS)}


class PlainWriter:
    """Writes objects; `tensors` collects those that are no parameters of the model."""

    def __init__(self, parameters: Mapping[int, str]) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self._parameters = parameters
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []

    def write(self, value: Any) -> Any:
        """A value as JSON; NotStorable if it has an object of another class."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, enum.Enum):
            return {"enum": [type(value).__qualname__, value.name]}
        if type(value) is list:
            return [self.write(item) for item in value]
        if type(value) is tuple:
            return {"tuple": [self.write(item) for item in value]}
        if type(value) in (set, frozenset):
            return {"set": [self.write(item) for item in sorted(value, key=repr)]}
        if type(value) in (dict, OrderedDict, defaultdict):
            items = value.items()
            return {"dict": [[self.write(k), self.write(v)] for k, v in items]}
        cls = _known_class(value)
        return pack(value, _refuse) if cls is None else self._object(cls, value)

    def _tensor(self, tensor: torch.Tensor) -> Any:
        name = self._parameters.get(id(tensor))
        if name is not None:
            return {"parameter": name}
        key = str(len(self.tensors))
        self.tensors[key] = tensor
        return {"tensor": key}

    def _object(self, cls: type, value: Any) -> Any:
        if id(value) in self._numbers:
            return {"again": self._numbers[id(value)]}
        self._numbers[id(value)] = len(self._numbers)
        self._alive.append(value)
        return {"object": [_name_of(cls), self.write(_state_of(value))]}


def _refuse(node: Any) -> int:
    raise NotStorable(f"options have a {type(node).__name__} in them")


def _known_class(value: Any) -> type | None:
    """The class of the table that an object is of, or that its class derives from."""
    bases = (cls for cls in type(value).__mro__ if cls in _CLASSES.values())
    return next(bases, None)


def _state_of(value: Any) -> dict[str, Any]:
    if isinstance(value, ProgressBar):
        return {}
    if isinstance(value, torch.optim.Optimizer):
        return dict(value.__getstate__())
    return dict(vars(value))


class PlainReader:
    """Reads what a PlainWriter wrote; ValueError for anything else."""

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        tensors: Mapping[str, torch.Tensor],
    ) -> None:
        self._parameters = parameters
        self._tensors = tensors
        self._objects: list[Any] = []

    def read(self, data: Any) -> Any:
        """The value that JSON stands for."""
        if isinstance(data, list):
            return [self.read(item) for item in data]
        if not isinstance(data, dict):
            return unpack(data)
        check(len(data) == 1, "an object is malformed")
        ((kind, content),) = data.items()
        reader = getattr(self, f"_read_{kind}", None) if kind in _KINDS else None
        return unpack(data) if reader is None else reader(content)

    def _read_object(self, content: Any) -> Any:
        name, state = content
        cls = _CLASSES.get(name)
        check(cls is not None, f"there is no class {name!r}")
        assert cls is not None
        made: Any = object.__new__(cls)
        self._objects.append(made)
        found = self.read(state)
        names = all(isinstance(key, str) for key in found)
        check(isinstance(found, dict) and names, f"a {name} is malformed")
        if cls is ProgressBar:
            made.__init__()
        elif issubclass(cls, torch.optim.Optimizer):
            _fill_optimizer(made, found)
        else:
            vars(made).update(found)
        return made

    def _read_again(self, content: Any) -> Any:
        return self._objects[whole(content)]

    def _read_enum(self, content: Any) -> Any:
        name, member = content
        cls = vars(enums).get(name)
        is_known = isinstance(cls, type) and issubclass(cls, enum.Enum)
        check(is_known and isinstance(member, str), f"there is no {name}.{member}")
        assert isinstance(cls, enum.EnumMeta)
        return cls.__members__[member]

    def _read_parameter(self, content: Any) -> Any:
        return self._parameters[content]

    def _read_tensor(self, content: Any) -> Any:
        return self._tensors[content]

    def _read_tuple(self, content: Any) -> Any:
        return tuple(self.read(item) for item in content)

    def _read_dict(self, content: Any) -> Any:
        return {self.read(key): self.read(item) for key, item in content}

    def _read_set(self, content: Any) -> Any:
        return {self.read(item) for item in content}


_KINDS = frozenset(
    {"object", "again", "enum", "parameter", "tensor", "tuple", "dict", "set"}
)


def _fill_optimizer(optimizer: Any, state: dict[str, Any]) -> None:
    check({"defaults", "state", "param_groups"} <= state.keys(), "odd optimiser")
    groups = state["param_groups"]
    is_right = isinstance(groups, list) and all(
        isinstance(group, dict) and isinstance(group.get("params"), list)
        for group in groups
    )
    check(is_right, "an optimiser has no groups")
    members = [p for group in groups for p in group["params"]]
    check(all(isinstance(p, nn.Parameter) for p in members), "it trains no parameters")
    # Torch makes the state of a parameter when it is first asked for.
    optimizer.__setstate__({**state, "state": defaultdict(dict, state["state"])})
