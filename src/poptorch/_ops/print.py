"""`ipu_print_tensor`: a tensor of the running model on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from popple.tensor_text import FLOAT_FORMATS, TensorFormat

from .._errors import Error
from .._tracing.trace import find_trace
from .checks import check_tensor
from .control import taken_branch

if TYPE_CHECKING:
    from popple.capture.torch import ActiveTrace

__all__ = ["ipu_print_tensor"]


def ipu_print_tensor(
    tensor: torch.Tensor,
    title: str = "",
    print_gradient: bool = True,
    summarise_threshold: int = 1000,
    edge_items: int = 3,
    max_line_width: int = 80,
    digits: int = 4,
    float_format: str = "auto",
    separator: str = ", ",
    open_bracket: str = "(",
    close_bracket: str = ")",
) -> torch.Tensor:
    """The same tensor, printed to stderr whenever the model runs.

    Its gradient is printed too, under `title` with `_gradient` behind it. Nothing is
    printed unless the result is used, or on the CPU.

    Tensors of more than `summarise_threshold` elements (0: no limit) are shown by
    `edge_items` at both ends. Lines longer than `max_line_width` (0: no limit) are
    broken. Numbers have `digits` digits, and the `float_format` "auto", "fixed",
    "scientific" or "none" (each on its own). Of separator and brackets the first
    character counts.
    """
    check_tensor(tensor, "The first argument of ipu_print_tensor")
    if float_format not in FLOAT_FORMATS:
        raise Error(
            f"There is no float_format {float_format!r}: use one of "
            f"{', '.join(FLOAT_FORMATS)}."
        )
    trace = find_trace()
    if trace is None:
        return tensor
    form = TensorFormat(
        summarise_threshold,
        edge_items,
        max_line_width,
        digits,
        float_format,
        separator[:1],
        open_bracket[:1],
        close_bracket[:1],
    )
    from popple.capture.torch import print_tensor

    name, gradient_name = _titles(trace, tensor, title)
    gradient_title = gradient_name if print_gradient else ""
    return print_tensor(tensor, name, gradient_title, form, taken_branch())


def _titles(trace: ActiveTrace, tensor: torch.Tensor, title: str) -> tuple[str, str]:
    """Titles of a tensor and its gradient; without one they come from its name."""
    if title:
        return title, f"{title}_gradient"
    name = trace.name_of(tensor)
    return name, f"Gradient___{name}"
