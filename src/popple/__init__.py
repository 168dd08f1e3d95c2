"""Popple: programs for IPU-style processors, run anywhere, their cost modelled.

    popple.modelled(executor)     what a facade's object would cost on its target
    popple.model_graph(...)       place, plan and simulate a Graph
    popple.explain(model, name)   why an op or a layer costs what it costs
    popple.advise(model)          does it fit, and what would make it fit
    popple.open_report(path)      read a report, ours or a genuine one
    popple.load_target(name)      a machine to model, built in or your own

Names are loaded when first used: opening a report loads no planner.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from popple._version import __version__

if TYPE_CHECKING:
    from popple.advice import advise
    from popple.options import ModelOptions
    from popple.pipeline import Modelled, explain, model_graph, modelled
    from popple.report import open_report
    from popple.target import load_target

__all__ = [
    "ModelOptions",
    "Modelled",
    "__version__",
    "advise",
    "explain",
    "load_target",
    "model_graph",
    "modelled",
    "open_report",
]

_HOMES = {
    "advise": "popple.advice",
    "ModelOptions": "popple.options",
    "Modelled": "popple.pipeline",
    "explain": "popple.pipeline",
    "load_target": "popple.target",
    "model_graph": "popple.pipeline",
    "modelled": "popple.pipeline",
    "open_report": "popple.report",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'popple' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
