"""Where tensors live: on the chip or beside it, on compute or on I/O tiles.

These options change cost, never values. A `TensorLocationSettings` describes one
kind of tensor; `Options.TensorLocations` holds one for each kind.
"""

from __future__ import annotations

from typing import Any

from .base import OptionsDict, OptionSpec, check_type, setter

__all__ = ["TensorLocationSettings", "_TensorLocationOptions"]

_MIN_IO_TILES = 32
_MAX_IO_TILES = 192


class TensorLocationSettings(OptionsDict):
    """Where one kind of tensor is kept; what is not set is left to the compiler."""

    minElementsForOffChip = setter(
        OptionSpec(
            "minElementsForOffChip",
            "Tensors with fewer elements stay on the chip.",
            accepts=int,
            argument="min_elements",
        )
    )
    minElementsForReplicatedTensorSharding = setter(
        OptionSpec(
            "minElementsForReplicatedTensorSharding",
            "Tensors with fewer elements are not split over replicas.",
            accepts=int,
            argument="min_elements",
        )
    )
    useReplicatedTensorSharding = setter(
        OptionSpec(
            "useReplicatedTensorSharding",
            "Keep one part of the tensor on each replica.",
            accepts=bool,
            stored=int,
            argument="use",
            argument_default=True,
        )
    )
    useIOTilesToLoad = setter(
        OptionSpec(
            "useIOTilesToLoad",
            "Load through I/O tiles (True) or compute tiles (False).",
            accepts=bool,
            stored=int,
            argument="use",
            argument_default=True,
        )
    )
    useIOTilesToStore = setter(
        OptionSpec(
            "useIOTilesToStore",
            "Keep the tensor on I/O tiles (True) or compute tiles (False).",
            accepts=bool,
            stored=int,
            argument="use",
            argument_default=True,
        )
    )

    def useOnChipStorage(self, use: bool | None = True) -> TensorLocationSettings:
        """Keep the tensor on the chip (True), beside it (False), or either (None)."""
        if use is None:
            self.deleteIfExists("onChip")
            return self
        check_type("onChip", use, bool)
        self.createOrSet(onChip=int(use))
        return self


def _wrong_io_tiles(num_tiles: int) -> str:
    in_range = _MIN_IO_TILES <= num_tiles <= _MAX_IO_TILES
    if in_range and num_tiles % 2 == 0:
        return ""
    return (
        f"is {num_tiles}, but numIOTiles must be an even number between "
        f"{_MIN_IO_TILES} and {_MAX_IO_TILES}"
    )


def _location(kind: str, described: str) -> Any:
    """Setter of the location of one kind of tensor."""
    return setter(
        OptionSpec(
            f"location_{kind}",
            f"Where {described} are kept.",
            accepts=TensorLocationSettings,
            stored=lambda location: location.toDict(),
            argument="location",
        )
    )


class _TensorLocationOptions(OptionsDict):
    """Where activations, weights, optimiser state and accumulators are kept."""

    setActivationLocation = _location("activation", "activations")
    setWeightLocation = _location("weight", "weights")
    setOptimizerLocation = _location("optimizer", "optimiser states")
    setAccumulatorLocation = _location("accumulator", "gradient accumulators")

    numIOTiles = setter(
        OptionSpec(
            "numIOTiles",
            "Tiles of each IPU set aside for transfers.",
            accepts=int,
            complain=_wrong_io_tiles,
            argument="num_tiles",
        )
    )
