"""Modules as data: the tree, its parameters, buffers and plain attributes.

A tree that is read again has modules of the classes that the program has loaded; those
that it has not loaded are replaced by a `Skeleton`, which has the same names, weights
and buffers but no forward on the host. Nothing is imported, and no constructor runs.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from popple.capture.torch.stored_values import NotStorable, check, whole

from .._errors import Error
from .host_tensors import OWN_ATTRIBUTES, plain_class
from .plain_objects import PlainReader, PlainWriter

__all__ = ["Skeleton", "read_module", "write_module"]

_STANDARD = frozenset(vars(nn.Module()))
_MEMBERS = frozenset({"_parameters", "_buffers", "_modules"})
_BOOKS = frozenset({"training", "_non_persistent_buffers_set"})
_KINDS = {str(kind.name): kind for kind in inspect._ParameterKind}


class Skeleton(nn.Module):
    """Stands for a module whose class is not loaded.

    `class_name` is that class; `parameters_of_forward` are the arguments it takes.
    """

    class_name: str = ""
    parameters_of_forward: tuple[inspect.Parameter, ...] = ()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """There is none: the device has the program, the host has not."""
        raise Error(
            f"{self.class_name} was read from a file, which holds its weights and its "
            "compiled program but not its Python class: it cannot run on the host, nor "
            "be compiled anew. Import the class before poptorch.load(), or use "
            "poptorch.load(file, trust=True) for a file that you trust."
        )

    def extra_repr(self) -> str:
        """The class it stands for."""
        return self.class_name


# -- writing


def write_module(
    module: nn.Module,
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """A module tree as JSON, and its parameters and buffers by key."""
    modules = list(module.modules())
    numbers = {id(each): index for index, each in enumerate(modules)}
    tensors: dict[str, torch.Tensor] = {}
    keys: dict[int, str] = {}

    def key_of(tensor: torch.Tensor | None) -> str | None:
        if tensor is None:
            return None
        if id(tensor) not in keys:
            keys[id(tensor)] = str(len(keys))
            tensors[keys[id(tensor)]] = tensor
        return keys[id(tensor)]

    rows = [
        {
            "class": _class_of(each),
            "training": each.training,
            "parameters": [[n, key_of(p)] for n, p in each._parameters.items()],
            "buffers": [[n, key_of(b)] for n, b in each._buffers.items()],
            "transient": sorted(each._non_persistent_buffers_set),
            "modules": [
                [name, None if child is None else numbers[id(child)]]
                for name, child in each._modules.items()
            ],
            "attributes": _attributes_of(each),
        }
        for each in modules
    ]
    trained = [keys[id(t)] for t in module.parameters() if t.requires_grad]
    signature = _write_signature(module)
    return {"modules": rows, "trained": trained, "signature": signature}, tensors


def _class_of(module: nn.Module) -> list[str]:
    if isinstance(module, Skeleton):
        home, _, name = module.class_name.partition(":")
        return [home, name]
    cls = plain_class(type(module))
    return [cls.__module__, cls.__qualname__]


def _attributes_of(module: nn.Module) -> Any:
    """Attributes that are plain data; None if some are not, or if there are hooks."""
    own: dict[str, Any] = {}
    for name, value in vars(module).items():
        if name in _MEMBERS or name in _BOOKS or name in OWN_ATTRIBUTES:
            continue
        if name not in _STANDARD:
            own[name] = value
        elif value and name.endswith("_hooks"):
            return None
    writer = PlainWriter({})
    try:
        written = writer.write(own)
    except NotStorable:
        return None
    return None if writer.tensors else written


def _write_signature(module: nn.Module) -> Any:
    if isinstance(module, Skeleton):
        parameters = module.parameters_of_forward
    else:
        parameters = tuple(inspect.signature(module.forward).parameters.values())
    rows: list[Any] = []
    for each in parameters:
        has_default = each.default is not inspect.Parameter.empty
        try:
            default = PlainWriter({}).write(each.default) if has_default else None
        except NotStorable:
            default = None
        rows.append([each.name, each.kind.name, has_default, default])
    return rows


# -- reading


def read_module(data: Any, tensors: Mapping[str, torch.Tensor]) -> nn.Module:
    """The module tree that was written; ValueError if the data are of none."""
    rows = data["modules"]
    check(isinstance(rows, list) and rows, "it has no modules")
    trained = set(data["trained"])
    parameters: dict[str, nn.Parameter] = {}
    modules = [_bare_module(row) for row in rows]
    for module, row in zip(modules, rows, strict=True):
        for name, key in row["parameters"]:
            _check_name(name)
            if key is not None and key not in parameters:
                can_train = key in trained
                parameters[key] = nn.Parameter(tensors[key], requires_grad=can_train)
            module._parameters[name] = None if key is None else parameters[key]
        for name, key in row["buffers"]:
            _check_name(name)
            module._buffers[name] = None if key is None else tensors[key]
        for name, number in row["modules"]:
            _check_name(name)
            # Behind its parent, as trees are written: no module contains itself.
            child = None if number is None else modules[whole(number)]
            check(child is None or child is not modules[0], "a module contains itself")
            module._modules[name] = child
    if isinstance(modules[0], Skeleton):
        modules[0].parameters_of_forward = _read_signature(data["signature"])
    return modules[0]


def _check_name(name: Any) -> None:
    check(isinstance(name, str) and name and "." not in name, f"odd name {name!r}")


def _bare_module(row: Any) -> nn.Module:
    """A module of the class that was written if it is loaded, else a Skeleton."""
    home, name = row["class"]
    check(isinstance(home, str) and isinstance(name, str), "a module has no class")
    cls = _find_class(home, name) if row["attributes"] is not None else None
    made: nn.Module = object.__new__(Skeleton if cls is None else cls)
    nn.Module.__init__(made)
    if cls is None:
        made.__dict__["class_name"] = f"{home}:{name}"
    else:
        attributes = PlainReader({}, {}).read(row["attributes"])
        check(isinstance(attributes, dict), "a module's attributes are malformed")
        check(not attributes.keys() & _STANDARD, "a module's attributes are odd")
        made.__dict__.update(attributes)
    check(isinstance(row["training"], bool), "a module's mode is not said")
    made.training = row["training"]
    transient = {name for name in row["transient"] if isinstance(name, str)}
    made.__dict__["_non_persistent_buffers_set"] = transient
    return made


def _find_class(home: str, name: str) -> type[nn.Module] | None:
    """A class of modules that is loaded; nothing is imported to find it."""
    found: Any = sys.modules.get(home)
    for part in name.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    is_class = isinstance(found, type) and issubclass(found, nn.Module)
    return found if is_class and found is not Skeleton else None


def _read_signature(rows: Any) -> tuple[inspect.Parameter, ...]:
    found: list[inspect.Parameter] = []
    for name, kind, has_default, default in rows:
        check(isinstance(name, str) and kind in _KINDS, "a signature is malformed")
        value = PlainReader({}, {}).read(default) if has_default else None
        empty = inspect.Parameter.empty
        found.append(
            inspect.Parameter(
                name, _KINDS[kind], default=value if has_default else empty
            )
        )
    return tuple(found)
