"""Times of inputs and outputs, and latencies made of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import poptorch
from popple.session.times import CallTimes
from poptorch import OutputMode
from tests.poptorch.models import options

LATENCIES = ("getHostIpuLatency", "getComputeLatency", "getIpuHostLatency")


class Sums(nn.Module):
    """Two inputs, one output."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


def run(opts: poptorch.Options) -> Any:
    model = poptorch.inferenceModel(Sums(), opts)
    model(torch.ones(8), torch.ones(8))
    return model


def sizes(counters: dict[str, list[list[float]]]) -> dict[str, list[int]]:
    return {event: [len(times) for times in lists] for event, lists in counters.items()}


def test_a_time_for_every_input_and_returned_output() -> None:
    counters = run(options(d=4, r=2, mode=OutputMode.Final)).getPerfCounters()
    assert sizes(counters) == {
        "input": [8, 8],  # two tensors, D x R times
        "input_complete": [8, 8],
        "output": [2],  # one tensor, once per replica
        "output_complete": [2],
    }


def test_sums_are_sent_once_per_replica() -> None:
    counters = run(options(d=4, r=2, mode=OutputMode.Sum)).getPerfCounters()
    assert sizes(counters)["output"] == [2]


def test_time_goes_on() -> None:
    counters = run(options(d=2)).getPerfCounters()
    events = ("input", "input_complete", "output", "output_complete")
    first = [counters[event][0][0] for event in events]
    assert first == sorted(first)
    assert counters["input"][0][1] >= counters["output"][0][0]


def test_the_newest_call_counts() -> None:
    model = run(options())
    before = model.getPerfCounters()["input"][0][0]
    model(torch.ones(8), torch.ones(8))
    assert len(model.getPerfCounters()["input"][0]) == 1
    assert model.getPerfCounters()["input"][0][0] > before


def test_nothing_travels_with_synthetic_data() -> None:
    opts = options(d=2)
    model = run(opts.enableSyntheticData(True))
    assert sizes(model.getPerfCounters())["input"] == [0, 0]
    assert model.getLatency() == (0.0, 0.0, 0.0)


def test_before_the_first_call_there_is_nothing() -> None:
    model: Any = poptorch.inferenceModel(Sums(), options())
    assert model.getPerfCounters()["output_complete"] == [[]]
    assert [getattr(model, name)() for name in LATENCIES] == [(0.0, 0.0, 0.0)] * 3


def times(**lists: list[float]) -> CallTimes:
    made = CallTimes()
    vars(made).update(lists)
    return made


def test_latencies_are_least_greatest_and_average() -> None:
    made = times(
        input=[0.0, 10.0],
        input_complete=[1.0, 13.0],
        output=[5.0, 14.0],
        output_complete=[5.5, 15.0],
    )
    assert made.host_to_device() == (1, 3, 2)
    assert made.compute() == (1, 4, 2.5)
    assert made.device_to_host() == (0.5, 1, 0.75)
    assert made.round_trip() == (5, 5.5, 5.25)


def test_several_inputs_make_one_output() -> None:
    # Two inputs each: from the first of them.
    made = times(input=[0.0, 1.0, 2.0, 3.0], output_complete=[4.0, 7.0])
    assert made.round_trip() == (4, 5, 4.5)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-9])
def test_the_average_is_never_outside(value: float) -> None:
    made = times(input=[0.0] * 7, input_complete=[value] * 7)
    least, greatest, average = made.host_to_device()
    assert least <= average <= greatest
