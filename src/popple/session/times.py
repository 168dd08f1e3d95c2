"""Host times of inputs and outputs of a call: performance counters and latencies.

Four times per micro-batch, in seconds of the host's clock: the input is asked for and
complete, the output is ready and has been taken. All tensors of a micro-batch travel
together.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

clock = time.perf_counter

PerfCounters = dict[str, list[list[float]]]
Latency = tuple[float, float, float]


class CallTimes:
    """The times of the newest call; lists of equal length belong together."""

    def __init__(self) -> None:
        self.input: list[float] = []
        self.input_complete: list[float] = []
        self.output: list[float] = []
        self.output_complete: list[float] = []

    def add_input(self, asked: float) -> None:
        """Note that an input that was asked for at `asked` is complete now."""
        self.input.append(asked)
        self.input_complete.append(clock())

    def add_output(self, ready: float) -> None:
        """Note that an output that was ready at `ready` has been taken now."""
        self.output.append(ready)
        self.output_complete.append(clock())

    def counters(self, num_inputs: int, num_outputs: int) -> PerfCounters:
        """The times by event and tensor, as PopTorch's `getPerfCounters` has them."""
        return {
            "input": _for_each(num_inputs, self.input),
            "input_complete": _for_each(num_inputs, self.input_complete),
            "output": _for_each(num_outputs, self.output),
            "output_complete": _for_each(num_outputs, self.output_complete),
        }

    def host_to_device(self) -> Latency:
        """Latency from the request for an input to its arrival."""
        return _latency(self.input, self.input_complete)

    def compute(self) -> Latency:
        """Latency from the arrival of the input to the output being ready."""
        return _latency(self.input_complete, self.output)

    def device_to_host(self) -> Latency:
        """Latency from the output being ready to the host having taken it."""
        return _latency(self.output, self.output_complete)

    def round_trip(self) -> Latency:
        """Latency from the request for an input to the host having its output."""
        return _latency(self.input, self.output_complete)


def _for_each(count: int, times: list[float]) -> list[list[float]]:
    # A list of its own for each tensor: callers may change what they are given. Without
    # tensors there still is one empty list.
    return [list(times) for _ in range(count)] or [[]]


def _latency(starts: Sequence[float], ends: Sequence[float]) -> Latency:
    """Least, greatest and average time between the first start and its end.

    Several inputs may make one output: the first of them counts.
    """
    if not ends:
        return (0.0, 0.0, 0.0)
    share = len(starts) // len(ends)
    spans = [end - starts[i * share] for i, end in enumerate(ends)]
    least, greatest = min(spans), max(spans)
    # Rounding must not put the average outside of what it is the average of.
    average = min(max(sum(spans) / len(spans), least), greatest)
    return (least, greatest, average)
