"""Model a torch module on a chip, through the path that any user's program takes.

In: a `Case`, a module with the type of its partial sums and which of its ops are
counted. Out: a `ModelledCase`: their cycles, and the fullest tile of the whole program.
Of host transfers only those of inputs are counted; most cases have none.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import popple
import poptorch
from benchmarks.calibration.rows import NotExpressed
from popple.errors import PoppleError
from popple.graph import Graph, Op, Phase
from popple.program import Category, Direction, Execute, StreamCopy
from popple.sim.memory import CODE, Memory

Operation = Callable[..., Tensor]


class _Feed(torch.autograd.Function):
    """Takes one element as the loss and hands given gradients back."""

    @staticmethod
    def forward(ctx: Any, *values: Tensor) -> Tensor:
        """One element of the first result; results come first, then gradients."""
        ctx.save_for_backward(*values[len(values) // 2 :])
        return values[0].flatten()[0]

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        """The gradients that were given."""
        gradients = ctx.saved_tensors
        return *gradients, *(None for _ in gradients)


def feed(results: Sequence[Tensor], gradients: Sequence[Tensor]) -> Tensor:
    """A loss by which the results have the given gradients."""
    loss = _Feed.apply(*results, *gradients)
    return poptorch.identity_loss(loss, "none")


class Passes(nn.Module):
    """Forward, backward and weight update of one operation, all data on the chip.

    Operands are parameters, so each has a gradient; `constants` (indices) have none.
    The gradient of the result is of the shape `result`, by default that of the result.
    """

    gradient: Tensor

    def __init__(
        self,
        operation: Operation,
        operands: Mapping[str, Tensor],
        constants: Mapping[str, Tensor] | None = None,
        result: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.operation = operation
        self.names = [*operands, *(constants or {})]
        for name, value in operands.items():
            self.register_parameter(name, nn.Parameter(value))
        for name, value in (constants or {}).items():
            self.register_buffer(name, value)
        gradient = self._result_on_meta() if result is None else result
        self.register_buffer(
            "gradient", torch.zeros(gradient.shape, dtype=gradient.dtype)
        )

    def forward(self) -> Tensor:
        """The loss that starts the backward pass."""
        result = self.operation(*(getattr(self, name) for name in self.names))
        return feed([result], [self.gradient])

    def _result_on_meta(self) -> Tensor:
        """The result without its numbers."""
        return self.operation(*(getattr(self, name).to("meta") for name in self.names))


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
    """A module to model; `updated` names the parameters whose update is counted.

    Of the backward pass, only ops count whose kind begins with `backward`. `inputs`
    come from the host, which counts. Steps named `uncounted` are none of the tool's.
    Updates run one after the other or, on tiles of their own, `side_by_side`.
    """

    module: nn.Module
    updated: frozenset[str] = frozenset()
    partials: torch.dtype = torch.float32
    num_tiles: int | None = None
    memory_proportion: float | None = None
    backward: str = ""
    inputs: tuple[Tensor, ...] = ()
    uncounted: str = ""
    side_by_side: bool = False


@dataclass(frozen=True)
class ModelledCase:
    """Cycles of the ops that count, and memory.

    `max_tile_bytes` are those of the fullest tile, gaps included; `total_bytes` those
    of all tiles without gaps, each when it is fullest.
    """

    cycles: int
    max_tile_bytes: int
    total_bytes: int
    modelled: popple.Modelled


def zeros(*shape: int, dtype: torch.dtype = torch.float16) -> Tensor:
    """Data of which only shape and type matter."""
    return torch.zeros(shape, dtype=dtype)


def model_case(case: Case, target: str, counts_code: bool = True) -> ModelledCase:
    """Capture, plan and simulate the case on a target.

    Without `counts_code`, memory is that of a program whose vertices were never
    compiled: no instructions, no stacks.
    """
    options = poptorch.Options().useOfflineIpuTarget()
    options.showCompilationProgressBar(False)
    options.Precision.setPartialsType(case.partials)
    if case.memory_proportion is not None:
        options.setAvailableMemoryProportion({"IPU0": case.memory_proportion})
    with on_target(target, case.num_tiles), refusals():
        executor = _executor(case.module, options)
        executor.compile(*case.inputs)
        modelled = popple.modelled(executor)
    memory = modelled.simulation.memory
    if not counts_code:
        memory = _without_code(memory)
    cycles = _counted_cycles(case, modelled) + _upload_cycles(modelled)
    cycles -= _uncounted_cycles(case, modelled)
    return ModelledCase(cycles, max(memory.peak_by_chip), memory.total.total, modelled)


def _without_code(memory: Memory) -> Memory:
    uncounted = (*CODE, Category.STACK)
    kept = {c: v for c, v in memory.always_live.items() if c not in uncounted}
    return replace(memory, always_live=kept)


def _counted_cycles(case: Case, modelled: popple.Modelled) -> int:
    costs = modelled.simulation.cost_by_op
    ops = [
        op
        for op in modelled.graph.ops
        if op.name in costs and _is_counted(op, modelled.graph, case)
    ]
    check_known(ops)
    updates = [costs[op.name].cycles for op in ops if op.phase is Phase.UPDATE]
    others = sum(costs[op.name].cycles for op in ops if op.phase is not Phase.UPDATE)
    return others + (max(updates, default=0) if case.side_by_side else sum(updates))


def _upload_cycles(modelled: popple.Modelled) -> int:
    """Cycles in which inputs come from the host."""
    found = modelled.simulation
    return sum(
        leaf.cost.cycles
        for row, leaf in zip(found.steps, found.timing.leaf_times, strict=True)
        if leaf is not None
        and isinstance(row.step, StreamCopy)
        and row.step.direction is Direction.FROM_HOST
    )


def _uncounted_cycles(case: Case, modelled: popple.Modelled) -> int:
    """Cycles of steps that express an op as a program would, not as the tool does."""
    if not case.uncounted:
        return 0
    found = modelled.simulation
    return sum(
        leaf.cost.cycles
        for row, leaf in zip(found.steps, found.timing.leaf_times, strict=True)
        if leaf is not None
        and isinstance(row.step, Execute)
        and row.step.compute_set.name.endswith(f"/{case.uncounted}")
    )


def check_known(ops: Iterable[Op]) -> None:
    """Refuse a program with an op of which only the size of its data is known."""
    unknown = {str(op.attrs["framework_op"]) for op in ops if op.kind == "generic"}
    if unknown:
        raise NotExpressed(f"no rule plans {', '.join(sorted(unknown))}")


def _executor(module: nn.Module, options: poptorch.Options) -> Any:
    parameters = list(module.parameters())
    if not parameters:
        return poptorch.inferenceModel(module.eval(), options)
    optimizer = poptorch.optim.SGD(parameters, lr=0.1)
    return poptorch.trainingModel(module, options, optimizer)


def _is_counted(op: Op, graph: Graph, case: Case) -> bool:
    """Whether the op belongs to the passes: no loss, no update but of weights."""
    if op.phase is Phase.UPDATE:
        return op.inputs[0] in case.updated
    if op.phase is Phase.BACKWARD and not op.kind.startswith(case.backward):
        return False
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
def refusals() -> Iterator[None]:
    """What the product refuses to model is not expressed, for the reason it gives."""
    try:
        yield
    except (poptorch.Error, PoppleError) as error:
        raise NotExpressed(str(error).splitlines()[0]) from error


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
