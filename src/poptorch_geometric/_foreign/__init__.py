"""Plain forms of the operators of the libraries that torch_geometric builds on.

torch_scatter, torch_cluster, torch_spline_conv and pyg-lib bring operators that cannot
be traced; one file has the doubles of each kind of operator. Programs may use these
libraries without torch_geometric, so nothing here imports it. torch_geometric finds
pyg-lib's operators on points and splines while a step is traced, also where pyg-lib is
not installed.
"""

from __future__ import annotations

from popple.capture.torch import PlainOperators, plain_operators
from poptorch._tracing.extensions import register_tracing_context

from . import points, scatter, splines

__all__ = ["OPERATORS", "register"]

OPERATORS = (
    PlainOperators("torch_scatter", "torch_scatter", scatter.OPERATORS),
    PlainOperators("torch_cluster", "torch_cluster", points.OPERATORS),
    PlainOperators("torch_spline_conv", "torch_spline_conv", splines.OPERATORS),
    PlainOperators(
        "pyg_lib",
        "pyg",
        {**points.PYG_OPERATORS, **splines.PYG_OPERATORS},
        user="torch_geometric",
        schemas={**points.PYG_SCHEMAS, **splines.PYG_SCHEMAS},
    ),
)


def register() -> None:
    """Have every model traced with the plain forms of these operators."""
    register_tracing_context("libraries", lambda: plain_operators(OPERATORS))
