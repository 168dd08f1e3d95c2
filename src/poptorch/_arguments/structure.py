"""Nested arguments and results: tensors inside tuples, lists, dicts, own types.

`flatten_tensors` lists the tensors of a structure; `rebuild` makes the same
structure with other tensors. Users teach both a type of theirs by registering an
`ICustomArgParser` for it. Everything that is no tensor is left as it is.

The results of a call have no history: its backward pass was part of it. A program that
asks an output for one is told so (torch itself would only say that there is no
gradient); `Tensor.backward` is replaced for that, with the first output of the process.
A mark on the outputs themselves would be a smaller change, but would not stay there:
attributes of a tensor are saved with it, and a file of predictions could no longer be
read without poptorch, nor with torch.load's weights_only; subclasses spread into
whatever is computed from outputs.
"""

from __future__ import annotations

import abc
import copy
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .._errors import Error
from .._tracing.extensions import load_extension_of

__all__ = [
    "ICustomArgParser",
    "find_parser",
    "flatten_tensors",
    "has_exact_parser",
    "output_tensors",
    "rebuild",
    "registerCustomArgParser",
    "watch_backward",
]


class ICustomArgParser(abc.ABC):
    """Takes a type of the user's apart into tensors and puts it together again."""

    @abc.abstractmethod
    def yieldTensors(self, struct: Any) -> Iterator[torch.Tensor]:
        """Every tensor in `struct`, always in the same order."""

    @abc.abstractmethod
    def reconstruct(
        self, original_structure: Any, tensor_iterator: Iterator[torch.Tensor]
    ) -> Any:
        """A copy of the structure with tensors taken from the iterator."""


# The interface registers parsers for the whole process, so there is one table. What
# was found for a type is remembered: every tensor and number of a call is looked up.
_PARSERS: dict[type, ICustomArgParser] = {}
_FOUND: dict[type, ICustomArgParser | None] = {}


def registerCustomArgParser(
    arg_data_type: type, arg_parser: ICustomArgParser | None
) -> None:
    """Use `arg_parser` for `arg_data_type` and its subclasses; None: no longer."""
    _FOUND.clear()
    if arg_parser is None:
        _PARSERS.pop(arg_data_type, None)
        return
    if not isinstance(arg_parser, ICustomArgParser):
        raise Error(
            "A custom argument parser must be an instance of a subclass of "
            f"poptorch.ICustomArgParser, not {type(arg_parser).__name__}."
        )
    _PARSERS[arg_data_type] = arg_parser


def find_parser(value: Any) -> ICustomArgParser | None:
    """The parser for the exact type of `value`, else for a base of it, else None."""
    kind = type(value)
    if kind not in _FOUND:
        load_extension_of(kind)
        _FOUND[kind] = _find_parser(value)
    return _FOUND[kind]


def _find_parser(value: Any) -> ICustomArgParser | None:
    exact = _PARSERS.get(type(value))
    if exact is not None:
        return exact
    bases = (parser for kind, parser in _PARSERS.items() if isinstance(value, kind))
    return next(bases, None)


def has_exact_parser(value: Any) -> bool:
    """Whether a parser is registered for exactly the type of `value`."""
    return find_parser(value) is not None and type(value) in _PARSERS


def flatten_tensors(structure: Any, like: Any = None) -> list[torch.Tensor]:
    """The tensors of `structure`; dicts in the key order of `like`, if given."""
    found: list[torch.Tensor] = []
    _collect(structure, like, found)
    return found


def _collect(value: Any, like: Any, found: list[torch.Tensor]) -> None:
    parser = find_parser(value)
    if parser is not None:
        found.extend(parser.yieldTensors(value))
    elif isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, dict):
        for key in value if like is None else like:
            _collect(value[key], None if like is None else like[key], found)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _collect(item, None if like is None else like[index], found)


def rebuild(structure: Any, tensors: Iterable[torch.Tensor]) -> Any:
    """`structure` with its tensors replaced, in order, by `tensors`."""
    return _copy_with(structure, iter(tensors))


def _copy_with(value: Any, tensors: Iterator[torch.Tensor]) -> Any:
    parser = find_parser(value)
    if parser is not None:
        return parser.reconstruct(value, tensors)
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, dict):
        made = copy.copy(value)  # with what a class adds to its items
        for key, item in value.items():
            made[key] = _copy_with(item, tensors)
        return made
    if isinstance(value, (list, tuple)):
        parts = [_copy_with(item, tensors) for item in value]
        is_named = hasattr(value, "_fields")
        return type(value)(*parts) if is_named else type(value)(parts)
    return value


# The outputs that are still in use, by their ids.
_OUTPUTS: WeakValueDictionary[int, torch.Tensor] = WeakValueDictionary()


def output_tensors(structure: Any) -> list[torch.Tensor]:
    """The tensors in order; those the model has not computed are constants."""
    for item in _unknown_items(structure):
        _check_holds_no_tensor(item)
    tensors = flatten_tensors(structure)
    for tensor in tensors:
        _check_can_leave(tensor)
        if not isinstance(tensor, FakeTensor):
            warnings.warn(
                f"Output expected to be on the IPU but is on {tensor.device.type}: it "
                "is the same in every call.",
                stacklevel=2,
            )
    return tensors


def _check_can_leave(tensor: torch.Tensor) -> None:
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1:
        raise Error(
            f"forward returns a tensor of type {tensor.dtype}, which only exists on "
            "the IPU. Convert it before, for example with .half()."
        )


def _unknown_items(value: Any) -> Iterator[Any]:
    """Everything that is neither tensor nor structure of a known kind."""
    if isinstance(value, torch.Tensor) or find_parser(value) is not None:
        return
    if isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _unknown_items(item)
    else:
        yield value


def _check_holds_no_tensor(item: Any) -> None:
    for name, value in getattr(item, "__dict__", {}).items():
        if isinstance(value, FakeTensor):
            kind = type(item).__name__
            raise Error(
                f"forward returns a {kind} with a tensor in its attribute {name}, and "
                "there is no way to give it the tensors of a run. Return a tuple, list "
                "or dict, or teach poptorch the type with "
                f"poptorch.registerCustomArgParser({kind}, ...)."
            )


def watch_backward(tensors: Iterable[torch.Tensor]) -> None:
    """Remember the outputs of a call: they have no backward pass of their own."""
    _replace_backward()
    for tensor in tensors:
        _OUTPUTS[id(tensor)] = tensor


def _refusing(backward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(backward)
    def checked(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if not self.requires_grad and _OUTPUTS.get(id(self)) is self:
            raise Error(
                "This tensor is the output of a PopTorch model and has no backward(): "
                "calling a poptorch.trainingModel runs the backward pass and the "
                "optimizer as well. An inferenceModel has neither; use a trainingModel."
            )
        return backward(self, *args, **kwargs)

    return checked


@functools.cache
def _replace_backward() -> None:
    torch.Tensor.backward = _refusing(torch.Tensor.backward)
