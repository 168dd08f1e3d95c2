"""Arguments of a model call: bound to `forward`, checked, taken apart.

`ArgsParser` turns what the user passed into `BoundArgs`: positional arguments with
their names, keyword arguments, defaults filled in. The first call's `BoundArgs` are
what the model is compiled for; later ones must match (`check_matches`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import torch

from .._errors import Error, check
from .._logging import logger
from .match import check_same, mismatch
from .structure import flatten_tensors, rebuild

__all__ = ["ArgsParser", "BoundArgs", "bound_of", "check_tensors", "device_dtype"]

_POSITIONAL = inspect.Parameter.VAR_POSITIONAL
_KEYWORD = inspect.Parameter.VAR_KEYWORD
_KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY
_PLAIN = inspect.Parameter.POSITIONAL_OR_KEYWORD
_VARIADIC = {_POSITIONAL, _KEYWORD}
_EMPTY = inspect.Parameter.empty

_DEVICE_DTYPES = {
    torch.float32: torch.float32,
    torch.float16: torch.float16,
    torch.int32: torch.int32,
    torch.int16: torch.int16,
    torch.int8: torch.int8,
    torch.uint8: torch.uint8,
    torch.bool: torch.bool,
    torch.int64: torch.int32,
    torch.float64: torch.float32,
    torch.bfloat16: torch.float32,
}


def device_dtype(dtype: torch.dtype, name: str = "tensor") -> torch.dtype:
    """The type `dtype` has on the device; Error if it has none."""
    if dtype not in _DEVICE_DTYPES:
        known = ", ".join(str(known) for known in _DEVICE_DTYPES)
        raise Error(
            f"{name} has type {dtype}, which the IPU does not have. Convert it to one "
            f"of {known}."
        )
    return _DEVICE_DTYPES[dtype]


def check_tensors(tensors: Iterable[torch.Tensor]) -> None:
    """Error if a tensor is empty or of a type the device lacks."""
    for index, tensor in enumerate(tensors):
        if tensor.numel() == 0:
            raise Error(
                "Zero-sized tensors are unsupported (Got shape "
                f"{list(tensor.shape)}). Leave input tensor {index} out."
            )
        device_dtype(tensor.dtype, f"Input tensor {index}")


@dataclass(frozen=True)
class BoundArgs:
    """Arguments as `forward` takes them; `arg_names` name the positional ones."""

    args: tuple[Any, ...] = ()
    arg_names: tuple[str, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.args) != len(self.arg_names):
            raise ValueError("every positional argument needs a name")

    def tensors(self, like: BoundArgs | None = None) -> list[torch.Tensor]:
        """All tensors; dicts in the key order of `like`, the compiled arguments."""
        if self.are_tensors:
            return list(self.args)
        args_like, kwargs_like = (
            (None, None) if like is None else (like.args, like.kwargs)
        )
        positional = flatten_tensors(self.args, args_like)
        return positional + flatten_tensors(self.kwargs, kwargs_like)

    @cached_property
    def are_tensors(self) -> bool:
        """Whether the arguments are tensors and nothing else, as they mostly are."""
        return not self.kwargs and all(type(a) is torch.Tensor for a in self.args)

    def rebuild(self, tensors: Iterable[torch.Tensor]) -> BoundArgs:
        """The same arguments with other tensors."""
        args, kwargs = rebuild((self.args, self.kwargs), tensors)
        return BoundArgs(args, self.arg_names, kwargs)

    def check_matches(self, later: BoundArgs) -> None:
        """Error unless `later` fits a model compiled for these arguments."""
        if self.are_tensors and later.are_tensors and self._types == later._types:
            return
        if len(self.args) != len(later.args):
            raise mismatch(
                f"Number of positional arguments mismatch: expected {len(self.args)} "
                f"arguments but got {len(later.args)}"
            )
        for name, mine, other in zip(
            self.arg_names, self.args, later.args, strict=True
        ):
            check_same(name, mine, other)
        check_same("named arguments", self.kwargs, later.kwargs, is_named=True)

    @cached_property
    def _types(self) -> list[tuple[torch.dtype, torch.Size]]:
        """Types and shapes of arguments that are tensors."""
        return [(tensor.dtype, tensor.shape) for tensor in self.args]


class Args:
    """Arguments under construction, for parsers that wrappers of PopTorch write."""

    def __init__(self) -> None:
        self.args: list[Any] = []
        self.arg_names: list[str] = []
        self.kwargs: dict[str, Any] = {}

    def appendArg(self, arg: Any, name: str) -> None:
        """Add a positional argument."""
        self.args.append(arg)
        self.arg_names.append(name)

    def setNamedArg(self, name: str, arg: Any) -> None:
        """Set a keyword argument."""
        self.kwargs[name] = arg

    def popArg(self) -> None:
        """Take the last positional argument away."""
        self.args.pop()
        self.arg_names.pop()


def bound_of(parsed: BoundArgs | Args) -> BoundArgs:
    """What a parser returned, its own or a wrapper's, as bound arguments."""
    if isinstance(parsed, BoundArgs):
        return parsed
    return BoundArgs(tuple(parsed.args), tuple(parsed.arg_names), dict(parsed.kwargs))


@dataclass(frozen=True)
class _Slot:
    """A parameter to be filled. Wrappers name slots by keys that are no identifiers."""

    name: str
    kind: Any
    default: Any


class ArgsParser:
    """Binds arguments to the signature of a module's `forward` or of a callable.

    Wrappers of PopTorch subclass it without calling `__init__`, or overwrite names and
    kinds of the one that an executor has: so they are read at every call, and only
    `_varnames` must be there.
    """

    Args = Args

    _varnames: Sequence[str]
    _var_kinds: Sequence[Any] = ()
    _defaults: Mapping[str, Any] | Sequence[Any] = MappingProxyType[str, Any]({})
    _has_variadic_arguments: bool = False

    def __init__(self, model: Any) -> None:
        parameters = _parameters_of(model)
        self._varnames = [parameter.name for parameter in parameters]
        self._var_kinds = [parameter.kind for parameter in parameters]
        self._defaults = {
            parameter.name: parameter.default
            for parameter in parameters
            if parameter.default is not _EMPTY
        }
        self._has_variadic_arguments = not _VARIADIC.isdisjoint(self._var_kinds)

    def __call__(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        fast_path: bool = False,
    ) -> BoundArgs:
        """The arguments bound; AssertionError or Error if they do not fit.

        `fast_path` is set once the model is compiled: what needs saying was said.
        """
        bound = self._bound(args, kwargs)
        if not fast_path:
            self._warn_about_dicts(bound)
        return self._made_contiguous(bound)

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundArgs:
        is_complete = len(args) == len(self._varnames) and not kwargs
        if is_complete and all(kind is _PLAIN for kind in self._var_kinds):
            return BoundArgs(tuple(args), tuple(self._varnames))
        self._check_names(args, kwargs)
        return _Binding(args, kwargs).bind(self._slots())

    def _slots(self) -> list[_Slot]:
        names, defaults = self._varnames, self._defaults
        if not isinstance(defaults, Mapping):
            defaults = dict(zip(names, defaults, strict=False))
        kinds = [*self._var_kinds, *([_PLAIN] * (len(names) - len(self._var_kinds)))]
        return [
            _Slot(name, kind, defaults.get(name, _EMPTY))
            for name, kind in zip(names, kinds, strict=False)
        ]

    def _check_names(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        names = list(self._varnames)
        given = len(args) + len(kwargs)
        check(
            self._has_variadic_arguments or given <= len(names),
            f"Too many arguments provided: expected {names} ({len(names)}) but got "
            f"{given}.",
        )
        unknown = [name for name in kwargs if name not in names]
        check(
            _KEYWORD in self._var_kinds or not unknown,
            f"{', '.join(unknown)} is not a valid parameter. Allowed values are "
            f"{names}.",
        )

    def _made_contiguous(self, bound: BoundArgs) -> BoundArgs:
        tensors = bound.tensors()
        if all(tensor.is_contiguous() for tensor in tensors):
            return bound
        self._warn_once(
            "At least one input tensor is not contiguous: it is copied on every call. "
            "Pass `tensor.contiguous()` to avoid this."
        )
        return bound.rebuild(tensor.contiguous() for tensor in tensors)

    def _warn_about_dicts(self, bound: BoundArgs) -> None:
        if bound.are_tensors:
            return
        if any(_holds_dict(value) for value in (*bound.args, *bound.kwargs.values())):
            self._warn_once(
                "A dict is passed to the model: its keys become part of the compiled "
                "model, and later calls must pass the same ones."
            )

    def _warn_once(self, text: str) -> None:
        warned: set[str] = self.__dict__.setdefault("_warned", set())
        if text not in warned:
            warned.add(text)
            logger.warning(text)


class _Binding:
    """One walk over the parameters, handing arguments out to them.

    Arguments after `*args` can only be passed by name.
    """

    def __init__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._waiting = list(args)
        self._kwargs = kwargs
        self._args: list[tuple[str, Any]] = []
        self._named: dict[str, Any] = {}
        self._only_names = False

    def bind(self, parameters: Sequence[_Slot]) -> BoundArgs:
        """Every parameter with its value."""
        for index, parameter in enumerate(parameters):
            self._take(parameter, {earlier.name for earlier in parameters[:index]})
        check(
            not self._waiting,
            f"Too many arguments provided: {len(self._waiting)} positional ones are "
            "left over.",
        )
        names = tuple(name for name, _ in self._args)
        values = tuple(value for _, value in self._args)
        return BoundArgs(values, names, self._named)

    def _take(self, parameter: _Slot, earlier: set[str]) -> None:
        if parameter.kind == _KEYWORD_ONLY:
            self._only_names = True
        if parameter.kind == _KEYWORD:
            rest = {k: v for k, v in self._kwargs.items() if k not in earlier}
            self._named.update(rest)
        elif parameter.kind == _POSITIONAL:
            self._take_all(parameter.name)
        elif self._waiting and not self._only_names:
            self._take_next(parameter.name)
        else:
            self._add(parameter.name, self._by_name(parameter))

    def _take_all(self, name: str) -> None:
        values = enumerate(self._waiting)
        self._args += [(f"*{name}[{index}]", value) for index, value in values]
        self._waiting, self._only_names = [], True

    def _take_next(self, name: str) -> None:
        check(name not in self._kwargs, f"Parameter {name} was passed more than once.")
        self._args.append((name, self._waiting.pop(0)))

    def _by_name(self, parameter: _Slot) -> Any:
        if parameter.name in self._kwargs:
            return self._kwargs[parameter.name]
        if parameter.default is _EMPTY:
            raise Error(
                f"Mandatory parameter {parameter.name} missing. Pass it to the model."
            )
        return parameter.default

    def _add(self, name: str, value: Any) -> None:
        if self._only_names:
            self._named[name] = value
        else:
            self._args.append((name, value))


def _parameters_of(model: Any) -> list[inspect.Parameter]:
    function: Callable[..., Any] = model
    if isinstance(model, torch.nn.Module):
        # A module that was read from a file has no forward of its own.
        if given := getattr(model, "parameters_of_forward", ()):
            return list(given)
        function = model.forward
    check(callable(function), "Expected a torch.nn.Module or a callable.")
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:
        # Builtins have no signature: take anything.
        return [
            inspect.Parameter("args", _POSITIONAL),
            inspect.Parameter("kwargs", _KEYWORD),
        ]


def _holds_dict(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_holds_dict(item) for item in value)
    return isinstance(value, dict)
