"""Octave convolution: a part of the channels lives on a field of half the size.

Up to four convolutions, between low and high frequencies, run side by side. High ones
are pooled before they reach the low field, low ones repeated as they are added to
the high one. The tool starts the backward pass at the results of the convolutions.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from benchmarks.calibration.model_case import Case, Operation, feed, zeros
from benchmarks.calibration.params import Params
from benchmarks.calibration.products import convolution, with_options
from benchmarks.calibration.rows import NotExpressed

LOW, HIGH = "low", "high"
_FACTOR = 2


class Octave(nn.Module):
    """The passes of an octave convolution on fields that lie on the chip."""

    def __init__(
        self,
        operation: Operation,
        fields: Mapping[str, Tensor],
        weights: Mapping[tuple[str, str], Tensor],
    ) -> None:
        super().__init__()
        self.operation = operation
        self.fields = nn.ParameterDict(dict(fields))
        self.weights = nn.ParameterDict(
            {f"{a}_{b}": w for (a, b), w in weights.items()}
        )
        self.pairs = list(weights)
        for (source, goal), value in self._convolve("meta").items():
            shape, dtype = value.shape, value.dtype
            self.register_buffer(
                f"gradient_{source}_{goal}", zeros(*shape, dtype=dtype)
            )

    def forward(self) -> tuple[Tensor, ...]:
        """The loss, and an element of each result."""
        results = self._convolve()
        names = [f"gradient_{source}_{goal}" for source, goal in results]
        gradients = [getattr(self, name) for name in names]
        loss = feed(list(results.values()), gradients)
        return loss, *(value.flatten()[0] for value in self._joined(results))

    def _convolve(self, device: str | None = None) -> dict[tuple[str, str], Tensor]:
        fields = {name: value.to(device) for name, value in self.fields.items()}
        inputs = {pair: _source(pair, fields) for pair in self.pairs}
        weights = {pair: self.weights[f"{pair[0]}_{pair[1]}"] for pair in self.pairs}
        with poptorch.MultiConv():
            return {
                pair: self.operation(inputs[pair], weights[pair].to(device))
                for pair in self.pairs
            }

    def _joined(self, results: Mapping[tuple[str, str], Tensor]) -> list[Tensor]:
        """What comes from low and high, added up; no gradient comes this way."""
        sums: dict[str, Tensor] = {}
        for (source, goal), value in results.items():
            value = value.detach()
            if goal == HIGH:
                value = _in_squares(value, source)
            sums[goal] = sums[goal] + value if goal in sums else value
        return list(sums.values())


def _in_squares(value: Tensor, source: str) -> Tensor:
    """A high field as squares of cells; a low one as squares that repeat one cell.

    The tool repeats cells by a view, which costs nothing before it is added.
    """
    if source == LOW:
        return value[:, :, :, None, :, None]
    height, width = value.shape[-2:]
    sizes = height // _FACTOR, _FACTOR, width // _FACTOR, _FACTOR
    return value.reshape(*value.shape[:2], *sizes)


def octave_case(params: Params) -> Case:
    """An octave convolution of two-dimensional fields."""
    field = params.integers("field")
    if len(field) != 2 or any(size % _FACTOR for size in field):
        raise NotExpressed(f"a field of {field}")
    sources = _channels(params, "in")
    goals = _channels(params, "out")
    batch, dtype = params.integer("batch-size", 1), params.dtype()
    kernel = params.sizes("kernel-size", 2, 1)
    fields = {
        name: zeros(batch, count, *_size(field, name), dtype=dtype)
        for name, count in sources.items()
    }
    weights = {
        (a, b): zeros(goals[b], sources[a], *kernel, dtype=dtype)
        for a, b in product(sources, goals)
    }
    module = Octave(convolution(params, 2, 1), fields, weights)
    updated = frozenset(f"weights.{a}_{b}" for a, b in weights)
    # The weights of a multi-convolution are updated in the compute sets that they
    # share (PopLibs poplin/MultiConvolution.cpp, applyMultiPlan).
    case = Case(module, updated, backward="conv", side_by_side=True)
    return with_options(params, case)


def _channels(params: Params, side: str) -> dict[str, int]:
    """Channels of each frequency that has any."""
    total = params.integer(f"{side}put-channels")
    share = params.number("alpha", 1.0)
    share = params.number(f"alpha-{side}", share)
    low = int(share * total)
    return {name: n for name, n in ((LOW, low), (HIGH, total - low)) if n}


def _size(field: tuple[int, ...], name: str) -> tuple[int, ...]:
    return tuple(size // _FACTOR for size in field) if name == LOW else field


def _source(pair: tuple[str, str], fields: Mapping[str, Tensor]) -> Tensor:
    value = fields[pair[0]]
    return F.avg_pool2d(value, _FACTOR) if pair == (HIGH, LOW) else value
