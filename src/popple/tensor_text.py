"""Text of a tensor as the machine's print operation writes it.

In: an array and a TensorFormat. Out: brackets around rows, one row per line:

    (
     (1.000,2.500)
     (3.125,4.000)
    )

All numbers of a tensor have one width, so that columns stand under each other. Long
rows are broken, large tensors shown by their edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from popple.errors import UsageError, suggest

FLOAT_FORMATS = ("auto", "fixed", "scientific", "none")
"""How numbers with a fraction are written; "none" lets each be its shortest self."""

_GAP = "..."


@dataclass(frozen=True)
class TensorFormat:
    """How to write a tensor.

    Tensors of more than `summarise_threshold` elements (0: no limit) are shown by
    `edge_items` at both ends of a dimension. `digits` are those of a number without
    its exponent; 0 means the shortest text of each number.
    """

    summarise_threshold: int = 1000
    edge_items: int = 3
    max_line_width: int = 80
    digits: int = 4
    float_format: str = "auto"
    separator: str = ","
    open_bracket: str = "("
    close_bracket: str = ")"

    def __post_init__(self) -> None:
        if self.float_format not in FLOAT_FORMATS:
            raise UsageError(
                f"there is no float format {self.float_format!r}.",
                remedy=suggest(self.float_format, FLOAT_FORMATS),
            )
        for name in ("summarise_threshold", "edge_items", "max_line_width", "digits"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} must not be negative.")


def render_tensor(array: npt.NDArray[Any], form: TensorFormat) -> str:
    """The tensor as text, without a line break at its end."""
    is_whole = not form.summarise_threshold or array.size <= form.summarise_threshold
    edge = None if is_whole else form.edge_items
    shown = array[np.ix_(*(_shown(size, edge) for size in array.shape))]
    texts = _texts(shown.reshape(-1).tolist(), form)
    table = np.array(texts, dtype=object).reshape(shown.shape)
    return _render(table, array.shape, 0, form)


def _shown(size: int, edge: int | None) -> list[int]:
    """Indices of a dimension that are shown."""
    if edge is None or size <= 2 * edge:
        return list(range(size))
    return [*range(edge), *range(size - edge, size)]


def _render(
    texts: npt.NDArray[Any], shape: Sequence[int], depth: int, form: TensorFormat
) -> str:
    """Texts of the elements shown of a tensor of this shape."""
    if not shape:
        return str(texts.item())
    if len(shape) == 1:
        return _render_row(_with_gap(list(texts), shape[0]), depth, form)
    children = [_render(part, shape[1:], depth + 1, form) for part in texts]
    indent = " " * (depth + 1)
    lines = [f"{indent}{child}\n" for child in _with_gap(children, shape[0])]
    close = " " * depth + form.close_bracket
    return "".join([form.open_bracket, "\n", *lines, close])


def _with_gap(items: list[str], size: int) -> list[str]:
    """Items with an ellipsis where some of the `size` there are have been left out."""
    if len(items) == size:
        return items
    edge = len(items) // 2
    return [*items[:edge], _GAP, *items[edge:]]


def _render_row(items: list[str], depth: int, form: TensorFormat) -> str:
    """Numbers in brackets; what would be too long a line goes on in the next one."""
    lines = [" " * depth + form.open_bracket]
    for index, item in enumerate(items):
        is_last = index == len(items) - 1
        text = item if is_last else item + form.separator
        width = len(lines[-1]) + len(item) + 1
        if index and form.max_line_width and width > form.max_line_width:
            lines.append(" " * (depth + 2))
        lines[-1] += text
    lines[-1] += form.close_bracket
    return "\n".join(line.rstrip(" ") for line in lines)[depth:]


def _texts(values: list[Any], form: TensorFormat) -> list[str]:
    """Each number as text, all of one width."""
    write = _writer(values, form)
    texts = [write(value) for value in values]
    width = 0 if _is_unaligned(form) else max(map(len, texts), default=0)
    return [text.rjust(width) for text in texts]


def _is_unaligned(form: TensorFormat) -> bool:
    return form.digits == 0 or form.float_format == "none"


def _writer(values: list[Any], form: TensorFormat) -> Callable[[Any], str]:
    """How to write one of these numbers."""
    if not any(isinstance(value, float) for value in values):
        return lambda value: str(int(value))
    if _is_unaligned(form):
        return lambda value: f"{value:g}"
    sizes = [abs(v) for v in values if math.isfinite(v) and v != 0]
    decimals = max(form.digits - _num_integer_digits(max(sizes, default=0.0)), 0)
    if _is_fixed(sizes, decimals, form):
        return lambda value: f"{value:.{decimals}f}"
    return lambda value: f"{value:.{form.digits - 1}e}"


def _num_integer_digits(size: float) -> int:
    return len(str(int(size)))


def _is_fixed(sizes: list[float], decimals: int, form: TensorFormat) -> bool:
    """Automatically: unless a number has too many digits or would read as zero."""
    if form.float_format != "auto" or not sizes:
        return form.float_format != "scientific"
    fits = _num_integer_digits(max(sizes)) <= form.digits
    return fits and min(sizes) >= 0.5 * 10.0**-decimals
