"""Loss scale: the factor on the loss that keeps float16 gradients from underflowing.

The step multiplies the gradient of the loss by it and the update divides the gradients
of the weights by it. It may adapt itself: the step then also returns which share of the
gradients it saw is large, and the factor halves when that is too much, else doubles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from popple.errors import UsageError


@dataclass(frozen=True)
class AutomaticScaling:
    """When the loss scale adapts.

    Gradients above `bin_edge` of the largest float16 are large; the scale is halved if
    their share is above `threshold`. It changes every `period` updates.
    """

    bin_edge: float = 0.125
    threshold: float = 1e-7
    period: int = 1

    def __post_init__(self) -> None:
        for name in ("bin_edge", "threshold"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise UsageError(f"{name} must be between 0 and 1, not {value}.")
        if self.period < 1:
            raise UsageError(f"period must be at least 1, not {self.period}.")

    @property
    def large(self) -> float:
        """Gradients beyond this are large."""
        return self.bin_edge * torch.finfo(torch.float16).max


class LossScale:
    """The loss scale on the device: `factor` times what the optimiser asks for.

    `factor` is 1 unless it adapts itself. `value` is what the last step used,
    `argument` the same as a tensor.
    """

    def __init__(
        self, automatic: AutomaticScaling | None = None, device: str = "cpu"
    ) -> None:
        self.automatic = automatic
        self.factor = torch.ones(())
        self.value = 1.0
        self.argument = torch.ones((), device=device)
        self._shares: list[Tensor] = []
        self._num_updates = 0

    def argument_for(self, scaling: float) -> Tensor:
        """What the step takes when the optimiser asks for this scaling."""
        value = scaling * float(self.factor)
        if value != self.value:
            # In place: a captured graph reads this tensor.
            self.argument.fill_(value)
            self.value = value
        return self.argument

    def count(self, share: Tensor) -> None:
        """Take note of the share of large gradients in a micro-batch."""
        self._shares.append(share)

    def adapt(self, mean: Callable[[Tensor], Tensor] = lambda share: share) -> None:
        """Change `factor` if it is time to; called after each update.

        `mean` gives the mean over all processes, which must keep the same factor.
        """
        shares, self._shares = self._shares, []
        if self.automatic is None or not shares:
            return
        is_due = self._num_updates % self.automatic.period == 0
        self._num_updates += 1
        if is_due:
            share = float(mean(torch.stack(shares).mean()))
            self.factor *= 0.5 if share > self.automatic.threshold else 2.0
