"""Operators of the user's own: `custom_op`, and how to give one a meaning.

On the IPU a custom op is compiled code. Here it is a Python function of tensors:

    @poptorch.registerCustomOp("Cube", "com.acme")
    def cube(x, bias):
        return x**3 + bias, x**3

It is called while a model is traced, with the inputs as arguments and the attributes
by name, and is differentiated like any other code. Registering is Popple's own
addition; programs whose custom op has no function are told so when they compile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import torch

from popple.capture.torch import gelu_erf

from .._errors import Error
from .._tracing.trace import isRunningOnIpu
from .checks import check_tensor

__all__ = ["custom_op", "registerCustomOp"]

Function = Callable[..., Any]
Attributes = Mapping[str, Any]

# Custom ops are known to the whole process, as compiled ones are once loaded.
_FUNCTIONS: dict[tuple[str, str], Function] = {}

_MAX_FLOAT = torch.finfo(torch.float32).max


def registerCustomOp(name: str, domain: str) -> Callable[[Function], Function]:
    """Decorator: the function computes the custom op `name` of `domain`.

    It takes the op's inputs, then its attributes by name, and returns a tensor or a
    sequence of them. Registering again replaces the function.
    """

    def register(function: Function) -> Function:
        _FUNCTIONS[domain, name] = function
        return function

    return register


def custom_op(
    inputs: Sequence[torch.Tensor],
    name: str,
    domain: str,
    domain_version: int,
    example_outputs: Iterable[torch.Tensor],
    attributes: Attributes | None = None,
) -> list[torch.Tensor]:
    """The results of an op of the user's own, like `example_outputs` in shape and type.

    The op is the function registered under this name and domain, see
    `poptorch.registerCustomOp`. On the CPU results are zeros.
    """
    examples = list(example_outputs)
    attributes = {} if attributes is None else attributes
    _check_attributes(attributes)
    if not isRunningOnIpu():
        return [torch.zeros_like(example) for example in examples]
    for number in _floats_of(attributes):
        _check_range(number)
    function = _find_function(name, domain, domain_version)
    returned = function(*inputs, **attributes)
    results = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    _check_results(results, examples, f"{domain}.{name}")
    return results


def _find_function(name: str, domain: str, version: int) -> Function:
    function = _FUNCTIONS.get((domain, name))
    if function is None:
        known = [f"{d}.{n}" for d, n in _FUNCTIONS]
        near = get_close_matches(f"{domain}.{name}", known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise Error(
            f"There is no Python function for the custom op {name} of domain {domain}, "
            f"version {version}.{hint} Compiled operators cannot be run; write the op "
            f'with torch and register it: @poptorch.registerCustomOp("{name}", '
            f'"{domain}").'
        )
    return function


def _check_results(results: list[Any], examples: list[torch.Tensor], name: str) -> None:
    if len(results) != len(examples):
        raise Error(
            f"The custom op {name} returned {len(results)} tensors, but there are "
            f"{len(examples)} example_outputs."
        )
    for index, (result, example) in enumerate(zip(results, examples, strict=True)):
        check_tensor(result, f"Result {index} of the custom op {name}")
        if result.shape != example.shape or result.dtype != example.dtype:
            raise Error(
                f"Result {index} of the custom op {name} is {result.dtype} "
                f"{tuple(result.shape)}, but its example is {example.dtype} "
                f"{tuple(example.shape)}."
            )


def _check_attributes(attributes: Attributes) -> None:
    for key, value in attributes.items():
        if not isinstance(key, str):
            raise ValueError(f"The attribute name {key!r} of a custom op is no string.")
        if not isinstance(value, (float, int, str, list, tuple)):
            raise ValueError(
                f"The attribute {key} must be a float, an int, a string, or a list or "
                f"tuple of one of these, not {type(value).__name__}."
            )
        values = value if isinstance(value, (list, tuple)) else [value]
        if not all(isinstance(item, type(values[0])) for item in values):
            raise ValueError(f"The elements of attribute {key} are of several types.")
        for text in (key, *values):
            if isinstance(text, str) and not text.isascii():
                raise ValueError(f"{text} contains non-ASCII characters.")


def _floats_of(attributes: Attributes) -> Iterable[float]:
    for value in attributes.values():
        items = value if isinstance(value, (list, tuple)) else [value]
        yield from (item for item in items if isinstance(item, float))


def _check_range(number: float) -> None:
    if abs(number) > _MAX_FLOAT:
        side = "low" if number < 0 else "high"
        raise Error(f"{number:g} is too {side} for a Popart float attribute.")


@registerCustomOp("FastGatherLastDim", "poptorch.custom_ops")
def _fast_gather_last_dim(data: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """`torch.gather` along the last of three dimensions: comes with PopTorch itself."""
    if data.dim() != 3 or index.dim() != 3 or data.shape[:2] != index.shape[:2]:
        raise Error(
            "FastGatherLastDim takes data and indices of three dimensions that differ "
            f"in the last at most, not {list(data.shape)} and {list(index.shape)}."
        )
    return torch.gather(data, -1, index)


@registerCustomOp("GeluErf", "ai.graphcore")
def _gelu_erf(x: torch.Tensor) -> torch.Tensor:
    """PopART's own op: `F.gelu` becomes another, which is tanh of a polynomial."""
    return gelu_erf(x)
