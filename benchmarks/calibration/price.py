"""Price: a torch module on a chip, through the path that any user's program takes.

In: a `Case`, a module with the type of its partial sums and which of its ops are
counted. Out: a `Price`: their cycles, and the fullest tile of the whole program. Host
transfers belong to no op and are never counted.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import popple
import poptorch
from popple.graph import Graph, Op, Phase

Operation = Callable[..., Tensor]


class _Feed(torch.autograd.Function):
    """Takes one element as the loss and hands a given gradient back."""

    @staticmethod
    def forward(ctx: Any, result: Tensor, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """One element of the result."""
        ctx.save_for_backward(gradient)
        return result.flatten()[0]

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        """The gradient that was given."""
        return ctx.saved_tensors[0], None


class Passes(nn.Module):
    """Forward, backward and weight update of one operation, all data on the chip.

    Operands are parameters, so each has a gradient; `constants` (indices) have none.
    """

    def __init__(
        self,
        operation: Operation,
        operands: Mapping[str, Tensor],
        constants: Mapping[str, Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.operation = operation
        self.names = [*operands, *(constants or {})]
        for name, value in operands.items():
            self.register_parameter(name, nn.Parameter(value))
        for name, value in (constants or {}).items():
            self.register_buffer(name, value)
        with torch.device("meta"):
            values = [getattr(self, name).to("meta") for name in self.names]
            result = operation(*values)
        self.register_buffer("gradient", torch.zeros(result.shape, dtype=result.dtype))

    def forward(self) -> Tensor:
        """The loss that starts the backward pass."""
        result = self.operation(*(getattr(self, name) for name in self.names))
        return poptorch.identity_loss(_Feed.apply(result, self.gradient), "none")


class Once(nn.Module):
    """One operation on data that lie on the chip, without gradients."""

    def __init__(self, operation: Operation, operands: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.operation = operation
        self.names = list(operands)
        for name, value in operands.items():
            self.register_buffer(name, value)

    def forward(self) -> Tensor:
        """One element of the result."""
        return self.operation(*(getattr(self, n) for n in self.names)).flatten()[0]


@dataclass(frozen=True)
class Case:
    """A module to price; `updated` names the parameters whose update is counted."""

    module: nn.Module
    updated: frozenset[str] = frozenset()
    partials: torch.dtype = torch.float32
    num_tiles: int | None = None
    memory_proportion: float | None = None


@dataclass(frozen=True)
class Price:
    """Cycles of the ops that count, and bytes of the fullest tile, gaps included."""

    cycles: int
    max_tile_bytes: int
    modelled: popple.Modelled


def zeros(*shape: int, dtype: torch.dtype = torch.float16) -> Tensor:
    """Data of which only shape and type matter."""
    return torch.zeros(shape, dtype=dtype)


def price(case: Case, target: str) -> Price:
    """Capture, plan and simulate the case on a target."""
    options = poptorch.Options().useOfflineIpuTarget()
    options.showCompilationProgressBar(False)
    options.Precision.setPartialsType(case.partials)
    if case.memory_proportion is not None:
        options.setAvailableMemoryProportion({"IPU0": case.memory_proportion})
    with on_target(target, case.num_tiles):
        executor = _executor(case.module, options)
        executor.compile()
        modelled = popple.modelled(executor)
    simulation = modelled.simulation
    cycles = sum(
        cost.cycles
        for op in modelled.graph.ops
        if (cost := simulation.cost_by_op.get(op.name))
        and _is_counted(op, modelled.graph, case.updated)
    )
    return Price(cycles, simulation.peak_tile_bytes, modelled)


def _executor(module: nn.Module, options: poptorch.Options) -> Any:
    parameters = list(module.parameters())
    if not parameters:
        return poptorch.inferenceModel(module.eval(), options)
    optimizer = poptorch.optim.SGD(parameters, lr=0.1)
    return poptorch.trainingModel(module, options, optimizer)


def _is_counted(op: Op, graph: Graph, updated: frozenset[str]) -> bool:
    """Whether the op belongs to the passes: no loss, no update but of weights."""
    if op.phase is Phase.UPDATE:
        return op.inputs[0] in updated
    return not set(op.outputs) & set(graph.outputs)


@contextmanager
def on_target(name: str, num_tiles: int | None = None) -> Iterator[None]:
    """Programs compiled inside are made for the target, or a part of its tiles."""
    with tempfile.TemporaryDirectory() as directory:
        if num_tiles is not None:
            path = Path(directory) / "part.toml"
            text = f'base = "{name}"\nname = "{name}-part"\nnum_tiles = {num_tiles}\n'
            path.write_text(text, encoding="utf-8")
            name = str(path)
        with _environment("POPPLE_TARGET", name):
            yield


@contextmanager
def _environment(variable: str, value: str) -> Iterator[None]:
    before = os.environ.get(variable)
    os.environ[variable] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before
