"""Plain forms of the B-spline operators of torch_spline_conv and pyg-lib.

An edge has a place in a box of D dimensions, each from 0 to 1. Along a dimension of n
knots, degree + 1 neighbouring B-splines differ from zero at any place; their products
over the dimensions are the edge's basis, and their knots number its weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from popple.errors import CaptureError


def _linear(v: Tensor) -> list[Tensor]:
    return [1 - v, v]


def _quadratic(v: Tensor) -> list[Tensor]:
    return [(1 - v) ** 2 / 2, (1 + 2 * v - 2 * v**2) / 2, v**2 / 2]


def _cubic(v: Tensor) -> list[Tensor]:
    return [
        (1 - v) ** 3 / 6,
        (4 - 6 * v**2 + 3 * v**3) / 6,
        (1 + 3 * v + 3 * v**2 - 3 * v**3) / 6,
        v**3 / 6,
    ]


# The uniform B-splines that overlap at distance v behind a knot, by degree.
_PIECES: Mapping[int, Callable[[Tensor], list[Tensor]]] = {
    1: _linear,
    2: _quadratic,
    3: _cubic,
}


def spline_basis(
    pseudo: Tensor, kernel_size: Tensor, is_open_spline: Tensor, degree: int = 1
) -> tuple[Tensor, Tensor]:
    """The basis of each edge and the numbers of its weights, (degree + 1)^D of each.

    The first dimension changes fastest, in both.
    """
    if degree not in _PIECES:
        raise CaptureError(
            f"There are no B-splines of degree {degree}.",
            remedy=f"Use one of {sorted(_PIECES)}.",
        )
    num_edges, num_dims = pseudo.shape
    basis = torch.ones(num_edges, 1, device=pseudo.device)
    number = torch.zeros(num_edges, 1, dtype=torch.long, device=pseudo.device)
    stride = torch.ones((), dtype=torch.long, device=pseudo.device)
    steps = torch.arange(degree + 1, device=pseudo.device)
    for dim in range(num_dims):
        knots = kernel_size[dim]
        # float16 could not tell places between two knots apart.
        place = pseudo[:, dim].float() * (knots - degree * is_open_spline[dim])
        pieces = torch.stack(_PIECES[degree](place - place.detach().floor()), dim=1)
        knot = place.detach().long().view(-1, 1)
        numbers = torch.fmod(knot + steps, knots) * stride
        basis = (pieces[:, :, None] * basis[:, None]).flatten(1)
        number = (numbers[:, :, None] + number[:, None]).flatten(1)
        stride = stride * knots
    return basis.to(pseudo.dtype), number


def spline_weighting(
    x: Tensor, weight: Tensor, basis: Tensor, weight_index: Tensor
) -> Tensor:
    """Each edge's features times the sum of its weights, weighted by its basis."""
    products = [
        basis[:, s, None] * torch.bmm(x[:, None], weight[weight_index[:, s]])[:, 0]
        for s in range(basis.shape[1])
    ]
    return torch.stack(products).sum(dim=0)


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "spline_basis": spline_basis,
    "spline_weighting": spline_weighting,
}

PYG_OPERATORS = OPERATORS
# What pyg-lib's operators are called with, and what they return.
PYG_SCHEMAS: Mapping[str, str] = {
    "spline_basis": "(Tensor pseudo, Tensor kernel_size, Tensor is_open_spline, "
    "int degree=1) -> (Tensor, Tensor)",
    "spline_weighting": "(Tensor x, Tensor weight, Tensor basis, Tensor weight_index) "
    "-> Tensor",
}
