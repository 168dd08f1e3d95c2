"""Custom operators of traced steps: marks, printed tensors, calls of host functions.

    mark           the same tensor, with a note for the model of costs
    print_tensor   the same tensor, printed whenever the step runs
    gelu_erf       GELU by the error function, dearer than what `F.gelu` becomes
    host_call      a Python function, run on the host in the middle of the step

They are functional: what they return shares no memory with what they are given, and
a step that does not use their result leaves them out. Front ends call `mark`, `note`,
`print_tensor` and `HostFunction.call` while a step is traced.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Any
from weakref import WeakValueDictionary

import torch
import torch.nn.functional as functional
from torch import Tensor
from torch.fx import Node
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from popple.errors import CaptureError
from popple.graph import NO_NOTES, Notes, render_notes
from popple.marks import (
    GELU_ERF,
    HOST_CALL,
    HOST_FUNCTION,
    MARK,
    NOTE,
    NOTES,
    PRINT_TENSOR,
    library_name,
)
from popple.tensor_text import TensorFormat, render_tensor

Gradients = tuple[Any, ...]


@torch.library.custom_op(
    library_name(MARK),
    mutates_args=(),
    schema="(Tensor x, str kind, str value) -> Tensor",
)
def mark(x: Tensor, kind: str, value: str) -> Tensor:
    """The same tensor; `kind` and `value` are for those who read the traced graph."""
    return x.clone()


@mark.register_fake
def _(x: Tensor, kind: str, value: str) -> Tensor:
    return torch.empty_like(x)


def _pass_on(ctx: Any, gradient: Tensor) -> Gradients:
    return gradient, None, None


mark.register_autograd(_pass_on)


@torch.library.custom_op(
    library_name(GELU_ERF), mutates_args=(), schema="(Tensor x) -> Tensor"
)
def gelu_erf(x: Tensor) -> Tensor:
    """x times the share of a normal distribution below x."""
    return functional.gelu(x)


@gelu_erf.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def _keep_argument(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _gelu_gradient(ctx: Any, gradient: Tensor) -> Tensor:
    return torch.ops.aten.gelu_backward(gradient, *ctx.saved_tensors)


gelu_erf.register_autograd(_gelu_gradient, setup_context=_keep_argument)


def note(x: Tensor, notes: Notes) -> Tensor:
    """The same tensor, with notes on the op that made it and on its gradient's ops.

    `aten/annotation.py` says which ops take which notes.
    """
    return mark(x, NOTE, render_notes(notes))


def note_node(node: Node, notes: Notes) -> None:
    """Put notes on the op that a traced node becomes, and on its gradient's ops."""
    node.meta[NOTES] = node.meta.get(NOTES, NO_NOTES).updated(notes)


@torch.library.custom_op(
    library_name(PRINT_TENSOR),
    mutates_args=(),
    schema="(Tensor x, Tensor? is_enabled, str title, str gradient_title, "
    "int[] sizes, str[] texts) -> Tensor",
)
def _print_tensor(
    x: Tensor,
    is_enabled: Tensor | None,
    title: str,
    gradient_title: str,
    sizes: Sequence[int],
    texts: Sequence[str],
) -> Tensor:
    if is_enabled is None or bool(is_enabled):
        _write(title, x, _format(sizes, texts))
    return x.clone()


@_print_tensor.register_fake
def _(x: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(x)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.arguments = inputs[1:]


def _print_gradient(ctx: Any, gradient: Tensor) -> Gradients:
    is_enabled, _, title, sizes, texts = ctx.arguments
    if title:
        gradient = _print_tensor(gradient, is_enabled, title, "", sizes, texts)
    return gradient, None, None, None, None, None


_print_tensor.register_autograd(_print_gradient, setup_context=_remember)


def print_tensor(
    x: Tensor,
    title: str,
    gradient_title: str,
    form: TensorFormat,
    is_enabled: Tensor | None = None,
) -> Tensor:
    """`x`, printed to stderr in every run; its gradient too if that has a title.

    `is_enabled` is a tensor that can switch a run's printing off.
    """
    fields = astuple(form)
    sizes = [field for field in fields if isinstance(field, int)]
    texts = [field for field in fields if isinstance(field, str)]
    return _print_tensor(x, is_enabled, title, gradient_title, sizes, texts)


def _format(sizes: Sequence[int], texts: Sequence[str]) -> TensorFormat:
    """A TensorFormat's fields are its numbers and then its texts."""
    threshold, edge_items, width, digits = sizes
    return TensorFormat(threshold, edge_items, width, digits, *texts)


def _write(title: str, x: Tensor, form: TensorFormat) -> None:
    values = x.detach().cpu()
    if values.is_floating_point():
        values = values.float()  # NumPy has no bfloat16
    sys.stderr.write(f"{title}: {render_tensor(values.numpy(), form)}\n")
    sys.stderr.flush()


@dataclass(frozen=True, eq=False)
class HostFunction:
    """A Python function from tensors to a list of tensors of known shapes and types."""

    function: Callable[..., Sequence[Tensor]]
    name: str
    results: tuple[tuple[torch.Size, torch.dtype], ...]

    def call(self, inputs: Sequence[Tensor], is_enabled: Tensor | None) -> list[Tensor]:
        """Its results in the step that is being traced.

        `is_enabled` can switch a run's call off; results are then zeros.
        """
        # Operators take no Python objects: the function is found by its number.
        number = next(_numbers)
        _host_functions[number] = self
        results = _host_call(list(inputs), is_enabled, number)
        proxy_mode = get_proxy_mode()
        if proxy_mode is not None:
            calls = proxy_mode.tracer.graph.find_nodes(
                op="call_function", target=torch.ops.popple.host_call.default
            )
            calls[-1].meta[HOST_FUNCTION] = self  # what keeps the function alive
        return results

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Its results for real tensors, in memory of their own."""
        found = self.function(*inputs)
        return [
            tensor.detach().to(dtype, copy=True)
            for tensor, (_, dtype) in zip(found, self.results, strict=True)
        ]

    def zeros(self, device: torch.device) -> list[Tensor]:
        """Tensors like its results."""
        return [
            torch.zeros(shape, dtype=dtype, device=device)
            for shape, dtype in self.results
        ]


_numbers = itertools.count()
_host_functions: WeakValueDictionary[int, HostFunction] = WeakValueDictionary()


@torch.library.custom_op(
    library_name(HOST_CALL),
    mutates_args=(),
    schema="(Tensor[] inputs, Tensor? is_enabled, int number) -> Tensor[]",
)
def _host_call(
    inputs: list[Tensor], is_enabled: Tensor | None, number: int
) -> list[Tensor]:
    host = _host_functions[number]
    device = _device_of(inputs)
    if is_enabled is not None and not bool(is_enabled):
        return host.zeros(device)
    results = host.run([tensor.detach().cpu() for tensor in inputs])
    return [result.to(device) for result in results]


@_host_call.register_fake
def _(inputs: list[Tensor], is_enabled: Tensor | None, number: int) -> list[Tensor]:
    return _host_functions[number].zeros(_device_of(inputs))


def _device_of(inputs: Sequence[Tensor]) -> torch.device:
    return inputs[0].device if inputs else torch.device("cpu")


def _remember_name(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.name = _host_functions[inputs[2]].name


def _refuse_gradient(ctx: Any, *gradients: Any) -> Gradients:
    raise CaptureError(
        f"the host function {ctx.name} has no gradient.",
        remedy="Use it in inference, or detach() what it is given.",
    )


_host_call.register_autograd(_refuse_gradient, setup_context=_remember_name)
