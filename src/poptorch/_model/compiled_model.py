"""A compiled model: the core's session and modelled cost under PopTorch's names."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

import torch

from popple.engine.torch.session import CompiledStep, TorchSession
from popple.errors import ArithmeticTrap, UsageError, suggest
from popple.session import ModelledCost, log_run

from .._arguments.args import BoundArgs
from .._arguments.structure import rebuild, watch_backward
from .._errors import Error, check
from .._logging import logger
from .tensor_names import NamedOp, named_ops, tensor_names

__all__ = ["CompiledModel"]


@dataclass(frozen=True)
class CompiledModel:
    """What a wrapped model became for the arguments of its first call.

    `name` is the model's in logs and reports. Names of ops begin with the modules they
    are in if `has_scopes`.
    """

    name: str
    session: TorchSession
    cost: ModelledCost
    arguments: BoundArgs
    compilation_time: timedelta
    has_scopes: bool = True

    @property
    def step(self) -> CompiledStep:
        """The traced micro-batch."""
        return self.session.step

    def run(self, bound: BoundArgs) -> Any:
        """Run a call; what forward returns, with the tensors of this call."""
        log_run(self.name)
        try:
            tensors = self.session.run(bound.tensors(self.arguments))
        except ArithmeticTrap as trap:
            raise Error(f"Floating-point exception: {trap}") from trap
        except UsageError as error:
            raise Error(str(error)) from error
        watch_backward(tensors)
        return rebuild(self.step.facts.example, tensors)

    # -- what is inside

    @cached_property
    def ops(self) -> list[NamedOp]:
        """The results of the forward pass by name."""
        return named_ops(self.step.traced, self.step.lowered, self.has_scopes)

    def tensor_names(self, settings: Iterable[str]) -> list[str]:
        """Tensors of the step, weights after their update, the optimiser's numbers."""
        return tensor_names(self.step, self.has_scopes, settings)

    def describe_ops(self) -> str:
        """The ops of the forward pass as JSON, by the original's names."""
        ops = [
            {"name": named.name, "type": named.kind, "inputs": list(named.op.inputs)}
            for named in self.ops
        ]
        return json.dumps({"maingraph": ops})

    def anchored(self, short_name: str) -> torch.Tensor:
        """What the newest call left in an anchored tensor."""
        seen = self.session.seen
        check(
            short_name in seen,
            f"No tensor was anchored as {short_name}, or the model has not run. "
            f"{suggest(short_name, seen)}",
        )
        return seen[short_name]

    # -- random numbers

    def read_random(self) -> list[int]:
        """Seed and state of the device's random numbers."""
        if not self.session.random.is_read:
            logger.debug("Reading random seed")
            logger.debug("Reading RNG state")
        return self.session.random.read()

    def write_random(self, state: list[int]) -> None:
        """Go on from a seed and state that were read before."""
        try:
            self.session.random.write(state)
        except UsageError as error:
            raise Error(str(error)) from error

    def send_random(self) -> None:
        """Load what is known of the random numbers onto newly held IPUs."""
        random = self.session.random
        if random.seed is not None:
            logger.debug("Setting random seed to %d", random.seed)
        if random.has_state:
            logger.debug("Setting RNG state")
