"""How one call's data are cut into micro-batches and outputs put together.

Letters as in the option names: D device iterations, G gradient accumulation, R
replicas, I replicas that read the same input, N return period.

The batch dimension of every input is B*D*G*(R/I), in the order device iteration,
accumulation step, replica; the replica changes fastest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from ._errors import Error
from .enums import CommGroupType, OutputMode

__all__ = ["BatchPlan", "MicroBatch", "OutputCollector", "OutputPlan"]


@dataclass(frozen=True)
class MicroBatch:
    """Where a micro-batch is run: its iteration, accumulation step and replica."""

    device_iteration: int
    accumulation_step: int
    replica: int


def _check_positive(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} must be at least 1 but is {count}")


@dataclass(frozen=True)
class BatchPlan:
    """Which part of an input each micro-batch reads."""

    device_iterations: int = 1
    gradient_accumulation: int = 1
    replication_factor: int = 1
    input_group_size: int = 1
    input_group_type: CommGroupType = CommGroupType.Consecutive

    def __post_init__(self) -> None:
        _check_positive(
            device_iterations=self.device_iterations,
            gradient_accumulation=self.gradient_accumulation,
            replication_factor=self.replication_factor,
            input_group_size=self.input_group_size,
        )
        if self.replication_factor % self.input_group_size:
            raise ValueError("input_group_size must divide replication_factor")

    @property
    def num_input_groups(self) -> int:
        """Replicas that read different inputs: R/I."""
        return self.replication_factor // self.input_group_size

    @property
    def num_shares(self) -> int:
        """Parts an input is cut into: D*G*(R/I)."""
        steps = self.device_iterations * self.gradient_accumulation
        return steps * self.num_input_groups

    @property
    def num_micro_batches(self) -> int:
        """Micro-batches of a call: D*G*R."""
        steps = self.device_iterations * self.gradient_accumulation
        return steps * self.replication_factor

    def micro_batches(self) -> Iterator[MicroBatch]:
        """All micro-batches of a call, in host order."""
        for iteration in range(self.device_iterations):
            for step in range(self.gradient_accumulation):
                for replica in range(self.replication_factor):
                    yield MicroBatch(iteration, step, replica)

    def micro_batch_size(self, tensor: torch.Tensor, name: str = "input") -> int:
        """B, the batch dimension of one part of `tensor`; AssertionError if none."""
        if tensor.dim() == 0:
            if self.num_shares != 1:
                raise AssertionError(self._complaint(name, "no dimension"))
            return 1
        size, shares = tensor.shape[0], self.num_shares
        if size % shares or size < shares:
            raise AssertionError(self._complaint(name, f"size {size} on dimension 0"))
        return size // shares

    def _complaint(self, name: str, found: str) -> str:
        return (
            f"Invalid batch dimension: {name} has {found}, which is not a multiple of "
            f"{self.num_shares} = deviceIterations ({self.device_iterations}) x "
            f"gradientAccumulation ({self.gradient_accumulation}) x replicationFactor "
            f"({self.replication_factor}) / input group size "
            f"({self.input_group_size}). "
            "Pass whole batches, for example from poptorch.DataLoader with "
            "drop_last=True, or change these options."
        )

    def split(self, tensor: torch.Tensor, name: str = "input") -> list[torch.Tensor]:
        """The parts of `tensor`, as views, in host order."""
        size = self.micro_batch_size(tensor, name)
        return [tensor] if self.num_shares == 1 else list(tensor.split(size))

    def share_of(self, place: MicroBatch) -> int:
        """Index of the part that the micro-batch at `place` reads."""
        step = place.device_iteration * self.gradient_accumulation
        step += place.accumulation_step
        return step * self.num_input_groups + self._input_group(place.replica)

    def _input_group(self, replica: int) -> int:
        if self.input_group_type == CommGroupType.Orthogonal:
            return replica % self.num_input_groups
        return replica // self.input_group_size


@dataclass(frozen=True)
class OutputPlan:
    """Which micro-batches' outputs a call returns, for `mode`.

    A call must hold whole return periods, unless `may_be_short`.
    """

    mode: OutputMode
    device_iterations: int = 1
    gradient_accumulation: int = 1
    replication_factor: int = 1
    return_period: int = 1
    may_be_short: bool = False

    def __post_init__(self) -> None:
        _check_positive(
            device_iterations=self.device_iterations,
            gradient_accumulation=self.gradient_accumulation,
            replication_factor=self.replication_factor,
            return_period=self.return_period,
        )
        if self.mode == OutputMode.Default:
            raise ValueError("the default mode must be resolved to All or Final first")
        if not self.may_be_short and self.device_iterations % self.period:
            raise Error(
                f"OutputMode.EveryN returns every {self.return_period}-th iteration, "
                f"but deviceIterations ({self.device_iterations}) is not a multiple of "
                "that. Change one of the two."
            )

    @property
    def period(self) -> int:
        """N; 1 in the modes that have none."""
        return self.return_period if self.mode == OutputMode.EveryN else 1

    @property
    def num_steps(self) -> int:
        """Micro-batches each replica runs: D*G."""
        return self.device_iterations * self.gradient_accumulation

    @property
    def factor(self) -> int:
        """k: how many micro-batches' worth of output a call returns."""
        if self.mode in (OutputMode.Final, OutputMode.Sum):
            return self.replication_factor
        return self.num_steps // self.period * self.replication_factor

    def is_returned(self, place: MicroBatch) -> bool:
        """Whether the output at `place` is part of the result."""
        if self.mode == OutputMode.Sum:
            return True
        step = place.device_iteration * self.gradient_accumulation
        number = step + place.accumulation_step + 1
        if self.mode == OutputMode.Final:
            return number == self.num_steps
        return number % self.period == 0

    def shape(self, shape: torch.Size) -> torch.Size:
        """Shape of the result for outputs of `shape`."""
        if self.factor == 1:
            return shape
        if not shape:
            return torch.Size([self.factor])
        return torch.Size([self.factor * shape[0], *shape[1:]])


class OutputCollector:
    """Takes one output's tensors as micro-batches finish and gives the result.

    Feed `add` in the order of `BatchPlan.micro_batches`; `result` may be asked once
    all have been added. Only what is returned is kept.
    """

    def __init__(self, plan: OutputPlan) -> None:
        self._plan = plan
        self._pieces: list[torch.Tensor] = []
        self._sums: dict[int, torch.Tensor] = {}

    def add(self, place: MicroBatch, output: torch.Tensor) -> None:
        """Take the output of the micro-batch at `place`."""
        if not self._plan.is_returned(place):
            return
        if self._plan.mode != OutputMode.Sum:
            self._pieces.append(output)
        elif place.replica in self._sums:
            self._sums[place.replica] = self._sums[place.replica] + output
        else:
            self._sums[place.replica] = output

    def result(self) -> torch.Tensor:
        """The pieces joined on dimension 0; a 0-d output becomes a vector."""
        pieces = self._pieces or [self._sums[r] for r in sorted(self._sums)]
        if len(pieces) != self._plan.factor:
            raise ValueError(
                f"expected {self._plan.factor} pieces but got {len(pieces)}"
            )
        if len(pieces) == 1:
            return pieces[0]
        return torch.stack(pieces) if pieces[0].dim() == 0 else torch.cat(pieces)
