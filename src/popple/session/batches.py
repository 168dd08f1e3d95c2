"""How the data of one call are cut into micro-batches, and which outputs it returns.

A call runs D device iterations of G accumulation steps on R replicas, so D*G*R
micro-batches. The batch dimension of an input is B*D*G*(R/I) where I replicas read the
same input; its parts are in the order device iteration, accumulation step, replica;
the replica changes fastest.

Everything here is arithmetic on counts: no framework's tensors.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from popple.errors import UsageError


class InputGroups(enum.Enum):
    """Which replicas read the same input.

    With 4 replicas in groups of 2: CONSECUTIVE pairs 0 with 1 and 2 with 3, ORTHOGONAL
    pairs 0 with 2 and 1 with 3.
    """

    CONSECUTIVE = "consecutive"
    ORTHOGONAL = "orthogonal"


class Returned(enum.Enum):
    """Which outputs of its micro-batches a call returns."""

    ALL = "all"
    FINAL = "final"
    EVERY_N = "every n-th"
    SUM = "sum"


@dataclass(frozen=True)
class MicroBatch:
    """Where a micro-batch is run: its iteration, accumulation step and replica."""

    device_iteration: int
    accumulation_step: int
    replica: int


def _check_positive(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise UsageError(f"{name} must be at least 1 but is {count}.")


@dataclass(frozen=True)
class Repetition:
    """How often a step runs in one call: iterations x accumulation x replicas.

    Gradients of an update are summed, or averaged if `is_mean`: at the end, or while
    they are accumulated if `is_running_mean`.
    """

    device_iterations: int = 1
    accumulation: int = 1
    replicas: int = 1
    processes: int = 1
    is_mean: bool = True
    is_running_mean: bool = False

    def __post_init__(self) -> None:
        _check_positive(
            device_iterations=self.device_iterations,
            accumulation=self.accumulation,
            replicas=self.replicas,
            processes=self.processes,
        )

    @property
    def micro_batches_per_update(self) -> int:
        """Micro-batches whose gradients make one update, on all processes."""
        return self.accumulation * self.replicas * self.processes

    @property
    def share(self) -> float:
        """The factor by which the accumulated gradients of a process are multiplied."""
        if not self.is_mean:
            return 1.0
        if self.is_running_mean:
            # A running mean has divided by the micro-batches of this process already;
            # only the mean over processes is left.
            return 1.0 / self.processes
        return 1.0 / self.micro_batches_per_update


@dataclass(frozen=True)
class BatchPlan:
    """Which part of an input each micro-batch reads."""

    device_iterations: int = 1
    accumulation: int = 1
    replicas: int = 1
    input_group_size: int = 1
    input_groups: InputGroups = InputGroups.CONSECUTIVE

    def __post_init__(self) -> None:
        _check_positive(
            device_iterations=self.device_iterations,
            accumulation=self.accumulation,
            replicas=self.replicas,
            input_group_size=self.input_group_size,
        )
        if self.replicas % self.input_group_size:
            raise UsageError(
                f"groups of {self.input_group_size} replicas that read one input do "
                f"not divide {self.replicas} replicas."
            )

    @property
    def num_input_groups(self) -> int:
        """Replicas that read different inputs: R/I."""
        return self.replicas // self.input_group_size

    @property
    def num_shares(self) -> int:
        """Parts an input is cut into: D*G*(R/I)."""
        return self.device_iterations * self.accumulation * self.num_input_groups

    @property
    def num_micro_batches(self) -> int:
        """Micro-batches of a call: D*G*R."""
        return self.device_iterations * self.accumulation * self.replicas

    def micro_batches(self) -> Iterator[MicroBatch]:
        """All micro-batches of a call, in the order of the host."""
        for iteration in range(self.device_iterations):
            for step in range(self.accumulation):
                for replica in range(self.replicas):
                    yield MicroBatch(iteration, step, replica)

    def find_micro_batch_size(self, shape: tuple[int, ...]) -> int | None:
        """B, the batch dimension of one part of an input; None if it has no B.

        An input without dimensions goes to a single micro-batch whole.
        """
        # A scalar cannot be cut, so it has a share only where there is one part.
        if not shape:
            return 1 if self.num_shares == 1 else None
        size, shares = shape[0], self.num_shares
        return None if size % shares or size < shares else size // shares

    def share_of(self, place: MicroBatch) -> int:
        """Index of the part that the micro-batch at `place` reads."""
        # Replicas change fastest, as PopTorch's documentation orders the batch
        # dimension: scripts that compare with a loop over micro-batches rely on this
        # order.
        step = place.device_iteration * self.accumulation + place.accumulation_step
        return step * self.num_input_groups + self._input_group(place.replica)

    def _input_group(self, replica: int) -> int:
        if self.input_groups is InputGroups.ORTHOGONAL:
            return replica % self.num_input_groups
        return replica // self.input_group_size


@dataclass(frozen=True)
class OutputPlan:
    """Which micro-batches' outputs a call returns.

    A call must hold whole return periods, unless `may_be_short`.
    """

    mode: Returned
    device_iterations: int = 1
    accumulation: int = 1
    replicas: int = 1
    return_period: int = 1
    may_be_short: bool = False

    def __post_init__(self) -> None:
        _check_positive(
            device_iterations=self.device_iterations,
            accumulation=self.accumulation,
            replicas=self.replicas,
            return_period=self.return_period,
        )
        # A period in the options of the model has to divide the iterations. An output
        # with a mode of its own may have any period: what is left over is dropped.
        if not self.may_be_short and self.device_iterations % self.period:
            raise UsageError(
                f"every {self.return_period}-th iteration is to be returned, but "
                f"{self.device_iterations} device iterations are not a multiple of "
                "that."
            )

    @property
    def period(self) -> int:
        """The return period; 1 in the modes that have none."""
        return self.return_period if self.mode is Returned.EVERY_N else 1

    @property
    def num_steps(self) -> int:
        """Micro-batches each replica runs: D*G."""
        return self.device_iterations * self.accumulation

    @property
    def factor(self) -> int:
        """How many micro-batches' worth of output a call returns."""
        # One output of each replica: its last, or the sum of all that it made.
        if self.mode in (Returned.FINAL, Returned.SUM):
            return self.replicas
        return self.num_steps // self.period * self.replicas

    def is_returned(self, place: MicroBatch) -> bool:
        """Whether the output at `place` is part of the result."""
        if self.mode is Returned.SUM:
            return True
        number = self._step_of(place)
        if self.mode is Returned.FINAL:
            return number == self.num_steps
        return number % self.period == 0

    def is_sent(self, place: MicroBatch) -> bool:
        """Whether something goes to the host after this micro-batch.

        Sums stay on the device until the last step has been added.
        """
        if self.mode is Returned.SUM:
            return self._step_of(place) == self.num_steps
        return self.is_returned(place)

    def _step_of(self, place: MicroBatch) -> int:
        """Number of the replica's micro-batch, from 1."""
        step = place.device_iteration * self.accumulation + place.accumulation_step
        return step + 1

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of the result for outputs of `shape`."""
        if self.factor == 1:
            return shape
        if not shape:
            return (self.factor,)
        return (self.factor * shape[0], *shape[1:])
