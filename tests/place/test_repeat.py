"""RepeatOnDevice: only what the execution says changes."""

from __future__ import annotations

from popple.place import RepeatOnDevice, Replicate, run_passes
from tests.place.graphs import chain


def test_it_counts_iterations_and_samples() -> None:
    before = chain((0, 0))
    after = run_passes(before, [Replicate(2), RepeatOnDevice(3, micro_batch=4)])
    assert after.ops == before.ops
    assert after.execution.device_iterations == 3
    # 4 samples x 1 micro-batch x 2 replicas x 3 iterations
    assert after.execution.samples_per_run == 24
