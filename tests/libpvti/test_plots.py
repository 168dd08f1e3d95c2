"""Line graphs and heatmaps."""

from __future__ import annotations

import math
from collections.abc import Callable

import libpvti
from popple.trace import Heatmap, Series, Trace, encode_counts

Finish = Callable[[], Trace]


def test_series_of_a_graph(finish: Finish) -> None:
    graph = libpvti.Graph("Loss", "nat")
    training, validation = graph.addSeries("training"), graph.addSeries("validation")
    training.add(2)
    validation.add(3.5)
    libpvti.Graph("Off", enable=False).addSeries("none").add(1)
    samples = [(s.series, s.value) for s in finish().batch.samples]
    assert samples == [
        (Series("Loss", "nat", "training"), 2.0),
        (Series("Loss", "nat", "validation"), 3.5),
    ]


def test_heatmaps_count_values_in_bins(finish: Finish) -> None:
    heatmap = libpvti.HeatmapDouble("w", [0, 1, 2], "x")
    heatmap.add([0, 0.5, 1, 2, 2.1, -1, math.nan, math.inf])
    (found,) = finish().batch.histograms
    assert found.heatmap == Heatmap("w", "x", (0.0, 1.0, 2.0))
    # [0, 1): 0 and 0.5; [1, 2]: 1 and 2; outside: 2.1, -1, NaN, infinity
    assert (found.counts, found.num_outside) == ((2, 2), 4)


def test_counts_are_decoded() -> None:
    assert libpvti.decodeHeatmapData(encode_counts([0, 0, 7])) == [0, 0, 7]
    assert libpvti.decodeHeatmapData(list(encode_counts([1, 2]))) == [1, 2]


def test_off_records_nothing() -> None:
    libpvti.Graph("g").addSeries("s").add(1)
    libpvti.HeatmapDouble("h", [0, 1]).add([0.5])
    assert libpvti.getCurrentTraceFilename() == ""
