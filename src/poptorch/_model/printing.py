"""Modules as text, with the blocks that begin at them."""

from __future__ import annotations

import sys
from typing import Any

from torch import nn

__all__ = ["module_repr", "print"]


def module_repr(m: nn.Module) -> str:
    """As `repr(m)`, with the hooks that run before a module, such as BeginBlock."""
    hooks = "".join(f"{hook!r} " for hook in m._forward_pre_hooks.values())
    extra = m.extra_repr().split("\n") if m.extra_repr() else []
    children = [
        f"({name}): {_indented(module_repr(child)) if child is not None else None}"
        for name, child in m._modules.items()
    ]
    lines = [*extra, *children]
    if len(lines) > 1 or children:
        body = "".join(f"\n  {line}" for line in lines) + "\n"
    else:
        body = "".join(lines)
    return f"{hooks}{m._get_name()}({body})"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def print(m: Any) -> None:
    """Print a module as `module_repr` shows it, or anything else as it is."""
    text = module_repr(m) if isinstance(m, nn.Module) else str(m)
    sys.stdout.write(f"{text}\n")
