"""The part of a system that one program runs on.

In: a `System` and how many chips and replicas a program takes. Out: a `Target`, which
is what planning and simulation are given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from popple.errors import TargetError
from popple.target.library import find_larger_system, load_system
from popple.target.machine import Chip, System


@dataclass(frozen=True)
class Target:
    """`num_replicas` copies of a program, each on `num_chips` chips of a system."""

    system: System
    num_chips: int = 1
    num_replicas: int = 1

    def __post_init__(self) -> None:
        for key in ("num_chips", "num_replicas"):
            count: int = getattr(self, key)
            if count < 1:
                raise TargetError(
                    f"{key} must be positive, but is {count}.",
                    where=self.system.name,
                    remedy=f"Set {key} to 1 or more.",
                )
        if self.num_chips * self.num_replicas > self.system.num_chips:
            raise self._make_size_error()

    @property
    def chip(self) -> Chip:
        """The kind of chip, the same everywhere in the system."""
        return self.system.chip

    @property
    def tiles_per_chip(self) -> int:
        """Tiles of one chip."""
        return self.chip.num_tiles

    @property
    def num_tiles(self) -> int:
        """Tiles of one replica."""
        return self.num_chips * self.chip.num_tiles

    def with_chips(self, num_chips: int) -> Target:
        """The same system with another number of chips for each replica."""
        return replace(self, num_chips=num_chips)

    def with_replicas(self, num_replicas: int) -> Target:
        """The same system with another number of replicas."""
        return replace(self, num_replicas=num_replicas)

    def _make_size_error(self) -> TargetError:
        needed = self.num_chips * self.num_replicas
        product = f"num_chips {self.num_chips} x num_replicas {self.num_replicas}"
        return TargetError(
            f"{needed} chips are needed ({product}), but {self.system.name} has "
            f"{self.system.num_chips}.",
            remedy=_advise_larger(self.system, needed)
            + " or use fewer chips or replicas.",
        )


def load_target(
    name_or_path: str | Path, num_chips: int = 1, num_replicas: int = 1
) -> Target:
    """A target on the system that `load_system` finds."""
    return Target(load_system(name_or_path), num_chips, num_replicas)


def _advise_larger(system: System, num_chips: int) -> str:
    larger = find_larger_system(system, num_chips)
    if larger is None:
        return f"Describe a system with num_chips = {num_chips} in a .toml file,"
    return f"Take {larger.name!r}, which has {larger.num_chips},"
