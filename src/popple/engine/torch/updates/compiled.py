"""Weight updates compiled by inductor, for a GPU.

torch's fused kernels give a block of a GPU 65,536 numbers to work on, which leaves most
of it idle for the weights of a small model; compiled ones use all of it. They also read
and write float16, which would be a copy of every weight and gradient otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from popple.engine.torch.updates.formulas import PLAIN_FORMULAS, Formula, Settings
from popple.engine.torch.updates.update import apply_update, in_float32


def compiled_update() -> Callable[..., None]:
    """`apply_update` with compiled formulas, for one set of weights."""
    formulas = {
        kind: _CompiledFormula(in_float32(plain))
        for kind, plain in PLAIN_FORMULAS.items()
    }
    return partial(apply_update, formulas=formulas)


class _CompiledFormula:
    """A formula that is traced and compiled for settings not seen before.

    Rates may change: they are tensors and not compiled in.
    """

    def __init__(self, formula: Formula) -> None:
        self._formula = formula
        self._compiled: dict[Hashable, Callable[..., Any]] = {}

    def __call__(
        self,
        weights: list[Tensor],
        gradients: list[Tensor],
        state: Mapping[str, list[Tensor]],
        settings: Settings,
    ) -> None:
        numbers = {name: v for name, v in settings.items() if name != "lr"}
        lists = [weights, gradients, *state.values()]
        flat = [tensor for tensors in lists for tensor in tensors]
        flat.append(settings["lr"])
        # What tracing depends on: a gradient may come as a view, or in another type.
        forms = tuple((each.shape, each.stride(), each.dtype) for each in flat)
        key = (forms, tuple(state), tuple(numbers.items()))
        if key not in self._compiled:
            step = partial(self._over_flat, len(weights), tuple(state), numbers)
            traced = make_fx(step, tracing_mode="fake")(*flat)
            compiled = torch.compile(traced.forward, fullgraph=True, dynamic=False)
            self._compiled[key] = compiled
        self._compiled[key](*flat)

    def _over_flat(
        self,
        num_weights: int,
        slots: tuple[str, ...],
        numbers: Settings,
        *flat: Tensor,
    ) -> None:
        *tensors, rate = flat
        starts = range(0, len(tensors), num_weights)
        lists = [tensors[start : start + num_weights] for start in starts]
        state = dict(zip(slots, lists[2:], strict=True))
        self._formula(lists[0], lists[1], state, {**numbers, "lr": rate})
