"""The feeds of a model, one pair for each of training, evaluation and prediction.

Kept from call to call, so that a traced function stays valid; an infeed is made anew
with every dataset, an outfeed once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from tensorflow.python.ipu import ipu_infeed_queue, ipu_outfeed_queue

__all__ = ["InfeedManager", "OutfeedManager"]


class InfeedManager:
    """The infeed last used in each mode."""

    def __init__(self) -> None:
        self._infeeds: dict[Hashable, Any] = {}

    def get_infeed(
        self, mode: Hashable, dataset: Any, infeed_kwargs: Mapping[str, Any]
    ) -> ipu_infeed_queue.IPUIterator:
        """An iterator over `dataset` for programs, in the place of the last one.

        The last one goes on with the new data where they have the same structure: a
        program that reads it stays valid.
        """
        infeed = self._infeeds.get(mode)
        if infeed is not None and infeed.element_spec == dataset.element_spec:
            # A new infeed would mean a new trace of the program, for every call of
            # `fit`.
            infeed._infeed_queue._restart(dataset)
        else:
            infeed = ipu_infeed_queue.IPUIterator(dataset, **infeed_kwargs)
            self._infeeds[mode] = infeed
        return infeed

    def reset(self) -> None:
        """Let go of all infeeds."""
        self._infeeds.clear()


class OutfeedManager:
    """The outfeed of each mode."""

    def __init__(self) -> None:
        self._outfeeds: dict[Hashable, Any] = {}

    def get_outfeed(
        self, mode: Hashable, outfeed_kwargs: Mapping[str, Any]
    ) -> ipu_outfeed_queue.IPUOutfeedQueue:
        """The outfeed of a mode, made when it is first asked for."""
        if mode not in self._outfeeds:
            queue = ipu_outfeed_queue.IPUOutfeedQueue(**outfeed_kwargs)
            self._outfeeds[mode] = queue
        return self._outfeeds[mode]

    def reset(self) -> None:
        """Let go of all outfeeds."""
        self._outfeeds.clear()
