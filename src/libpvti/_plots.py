"""Figures over time: line graphs and heatmaps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from libpvti._tracing import TRACING

__all__ = ["Graph", "HeatmapDouble", "Series", "decodeHeatmapData"]


class Series:
    """A line of a graph; made by `Graph.addSeries`."""

    def __init__(self, graph: Graph, name: str) -> None:
        self._graph = graph
        self._name = name

    def add(self, value: float) -> None:
        """The figure as it is now."""
        if TRACING.is_on and self._graph.enabled:
            from popple.trace import Series as Key

            key = Key(self._graph.name, self._graph.unit, self._name)
            TRACING.session.add_sample(key, float(value))


class Graph:
    """A line graph with one or more series of the same unit."""

    def __init__(self, name: str, unit: str = "", enable: bool = True) -> None:
        self.name = name
        self.unit = unit
        self.enabled = enable

    def addSeries(self, name: str) -> Series:
        """A new line."""
        return Series(self, name)


class HeatmapDouble:
    """How values are distributed over bins, as time goes by.

    A bin holds the values from its lower edge up to the next edge; the last one holds
    its upper edge too. Values that no bin holds, NaN among them, are counted apart.
    """

    def __init__(self, name: str, edges: Sequence[float], unit: str = "") -> None:
        from popple.trace import Heatmap

        self._heatmap = Heatmap(name, unit, tuple(float(edge) for edge in edges))

    def add(self, values: Iterable[float]) -> None:
        """The values of this moment."""
        if not TRACING.is_on:
            return
        import numpy as np

        array = np.fromiter(values, np.float64)
        finite = array[np.isfinite(array)]
        counts, _ = np.histogram(finite, bins=self._heatmap.edges)
        num_outside = array.size - int(counts.sum())
        TRACING.session.add_histogram(
            self._heatmap, tuple(counts.tolist()), num_outside
        )


def decodeHeatmapData(data: bytes | Sequence[int]) -> list[int]:
    """The counts behind a `bin_quantities` of the table HEATMAP_DATA."""
    from popple.trace import decode_counts

    return list(decode_counts(bytes(data)))
