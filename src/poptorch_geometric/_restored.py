"""What programs of PopTorch's time found in torch_geometric, given back to it.

Today's layers refuse keyword arguments that the base class of all of them used to
ignore, and search for neighbours with pyg-lib alone, where it was a library of its
own or none. Importing poptorch_geometric restores both for the whole process. What
the installed release has by itself is left alone.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch_geometric import nn, typing

from poptorch._logging import logger

from ._foreign import points, splines

__all__ = ["restore"]

# Operators are defined for as long as their library object lives.
_LIBRARY = torch.library.Library("pyg", "FRAGMENT")


def restore() -> None:
    """Give torch_geometric back what it dropped."""
    _ignore_further_arguments(nn.MessagePassing)
    if not typing.WITH_PYG_LIB and hasattr(typing, "WITH_KNN"):
        _define_neighbour_search()
        nn.conv.spline_conv.spline_basis = splines.spline_basis
        nn.conv.spline_conv.spline_weighting = splines.spline_weighting


def _ignore_further_arguments(layer: type[nn.MessagePassing]) -> None:
    """Keyword arguments that no class of a layer knows are named in a warning."""
    original = layer.__init__
    known = inspect.signature(original).parameters
    if any(each.kind is each.VAR_KEYWORD for each in known.values()):
        return

    @functools.wraps(original)
    def tolerant(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in kwargs.keys() - known.keys():
            logger.warning("%s ignores the argument %s", type(self).__name__, name)
            del kwargs[name]
        original(self, *args, **kwargs)

    layer.__init__ = tolerant


def _define_neighbour_search() -> None:
    for name, (flag, operator) in _SEARCH.items():
        if not hasattr(torch.ops.pyg, name):
            _LIBRARY.define(name + points.PYG_SCHEMAS[name])
            _LIBRARY.impl(name, operator, "CompositeImplicitAutograd")
            setattr(typing, flag, True)


def _of_any_size(operator: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A search with as many results as there are, as torch_geometric's own has."""

    @functools.wraps(operator)
    def search(*args: Any, **kwargs: Any) -> Tensor:
        pairs = operator(*args, **kwargs)
        return pairs[:, pairs[1] >= 0]

    return search


# By name of the operator, the flag that torch_geometric asks before it calls it.
_SEARCH: Mapping[str, tuple[str, Callable[..., Tensor]]] = {
    "grid_cluster": ("WITH_GRID_CLUSTER", points.grid),
    "knn": ("WITH_KNN", _of_any_size(points.knn)),
    "nearest": ("WITH_NEAREST", points.nearest),
    "radius": ("WITH_RADIUS", _of_any_size(points.radius)),
}
