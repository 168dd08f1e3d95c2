"""Tables of operators, read off the tables that capture and planner use."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import getmembers, ismodule
from types import ModuleType

from popple.capture.tensorflow.ops import table as tensorflow
from popple.capture.torch.aten import table as torch
from popple.graph.ops import OPS
from popple.text_table import render_markdown_table


def _render(table: ModuleType, attribute: str) -> str:
    """The operators of each family: a family is a module that the table is made of."""
    rows = [
        (name, _list_names(getattr(module, attribute)))
        for name, module in getmembers(table, ismodule)
        if hasattr(module, attribute)
    ]
    return render_markdown_table(("family", "operators"), rows)


def _list_names(names: Iterable[str]) -> str:
    plain = sorted(name.removeprefix("aten.") for name in names)
    return ", ".join(f"`{name}`" for name in plain)


def render_torch() -> str:
    """Operators of PyTorch with a rule."""
    return _render(torch, "LOWERINGS")


def render_tensorflow() -> str:
    """Operations of TensorFlow with a rule."""
    return _render(tensorflow, "RULES")


def render_graph() -> str:
    """Operations of the Graph."""
    rows = [(f"`{op.name}`", op.family, op.doc) for op in OPS.values()]
    return render_markdown_table(("operation", "family", "what it computes"), rows)
