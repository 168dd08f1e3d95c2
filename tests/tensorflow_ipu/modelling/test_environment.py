"""Variables of the environment that a TensorFlow program sees the effect of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu import _modelling  # noqa: E402

from popple import logs  # noqa: E402
from popple.program import StreamCopy  # noqa: E402
from popple.sim import Simulation  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_pod")


@pytest.fixture(autouse=True)
def _silent_again() -> Iterator[None]:
    yield
    logs.configure({})


def traced() -> Any:
    @tf.function
    def program(x: Any) -> Any:
        return tf.matmul(x, x) + 1.0

    return program.get_concrete_function(tf.TensorSpec((4, 4)))


def fed() -> Any:
    """A program that reads an infeed, adds it up and writes an outfeed."""
    total = tf.Variable(tf.zeros((4, 4)))
    data = tf.data.Dataset.from_tensors(tf.ones((4, 4))).repeat()
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(data)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def body(x: Any) -> None:
        total.assign_add(x)
        outfeed.enqueue(tf.matmul(x, x))

    @tf.function
    def program() -> None:
        ipu.loops.repeat(2, body, infeed_queue=infeed)

    return program.get_concrete_function()


def streams(concrete: Any) -> set[str]:
    program = _modelling.record("program", concrete.graph)
    steps = (row.step for row in program.modelled().simulation.steps)
    return {s.direction.value for s in steps if isinstance(s, StreamCopy)}


def test_a_program_that_does_not_fit_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = json.dumps({"debug.allowOutOfMemory": "false"})
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", given)
    monkeypatch.setattr(Simulation, "fits", property(lambda self: False))
    concrete = traced()
    phrase = "Out of memory: Cannot fit all variable data onto one or more tiles"
    for _ in range(2):
        with pytest.raises(tf.errors.ResourceExhaustedError, match=phrase):
            _modelling.record("program", concrete.graph).add_run()


def test_log_lines_of_a_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POPLAR_LOG_LEVEL", "INFO")
    _modelling.record("program", traced().graph).add_run()
    lines = capsys.readouterr().err
    assert "I: Compiling program" in lines
    assert "I: Running program" in lines


@pytest.mark.parametrize(
    ("flags", "left"),
    [
        ("", {"fromHost", "toHost"}),
        ("--synthetic_data_categories=infeed", {"toHost"}),
        ("--synthetic_data_categories=outfeed", {"fromHost"}),
        ("--use_synthetic_data --synthetic_data_initializer=random", set()),
    ],
)
def test_synthetic_data_do_not_travel(
    flags: str, left: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_POPLAR_FLAGS", flags)
    assert streams(fed()) == left
