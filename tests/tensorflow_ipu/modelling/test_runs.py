"""Runs of programs: events, transfers of variables, runs in reports."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu import test_utils  # noqa: E402
from tensorflow.python.ipu._device import trace_events  # noqa: E402

import pva  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_pod")


def configure(directory: Path | None = None, **engine: str) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    test_utils.enable_ipu_events(config)
    if directory is not None:
        config.compilation_poplar_options = {
            "autoReport.directory": str(directory),
            "autoReport.all": "true",
            **{f"autoReport.{name}": value for name, value in engine.items()},
        }
    config.configure_ipu_system()
    trace_events.drain()


def counts() -> dict[str, int]:
    """How many events of each kind there are since the last time."""
    kinds = ipu.utils.extract_all_events(trace_events.drain())
    return Counter(trace_events.IpuTraceEvent.Type.Name(each.type) for each in kinds)


def num_runs(directory: Path) -> int:
    (report,) = directory.glob("*/profile.pop")
    return len(pva.openReport(str(report)).execution.runs)


@tf.function
def double(x: Any) -> Any:
    return 2 * x


def run(times: int = 1, function: Any = double) -> None:
    strategy = ipu.ipu_strategy.IPUStrategyV1()
    for _ in range(times):
        strategy.run(function, [tf.ones((2,))])


def test_a_program_is_compiled_and_loaded_once_and_run_often() -> None:
    configure()
    run(times=3)
    assert counts() == {
        "COMPILE_BEGIN": 1,
        "COMPILE_END": 1,
        "LOAD_ENGINE": 1,
        "EXECUTE": 3,
    }


def test_forgotten_programs_are_compiled_again() -> None:
    configure()
    run()
    ipu._device.forget_programs()
    run()
    assert counts()["COMPILE_END"] == 2


def test_variables_stay_until_the_host_changes_one() -> None:
    configure()
    weight = tf.Variable(3.0)
    add = tf.function(lambda x: weight.assign_add(tf.reduce_sum(x)))
    run(times=2, function=add)
    assert counts()["HOST_TO_DEVICE_TRANSFER"] == 1
    weight.assign(1.0)
    run(times=2, function=add)
    moved = counts()
    assert moved["DEVICE_TO_HOST_TRANSFER"] == moved["HOST_TO_DEVICE_TRANSFER"] == 1


def test_sessions_fetch_variables_when_they_are_read() -> None:
    configure()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with tf.device("/device:IPU:0"):
            x = tf.compat.v1.placeholder(tf.float32, (2,))
            weight = tf.compat.v1.get_variable(
                "w", initializer=[1.0, 2.0], use_resource=True
            )
            loss = tf.reduce_sum(x * weight)
            train = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        trace = test_utils.ReportJSON(None, session)
        session.run(weight.initializer)
        trace.reset()
        for _ in range(2):
            session.run([train, loss], {x: [1.0, 1.0]})
        trace.parse_log()
        trace.assert_host_to_device_event_names(["1.0"])
        trace.assert_num_host_to_device_transfer_events(1)
        session.run(weight)
        trace.parse_log()
        # After the loss: the one variable that the program changes.
        trace.assert_device_to_host_event_names(["out_1.0"])


def test_a_report_shows_the_runs_up_to_a_limit(tmp_path: Path) -> None:
    configure(tmp_path, executionProfileProgramRunCount="3")
    run(times=2)
    assert num_runs(tmp_path) == 2
    run(times=2)
    assert num_runs(tmp_path) == 3


def test_a_report_that_was_removed_stays_away(tmp_path: Path) -> None:
    configure(tmp_path)
    run()
    (report,) = tmp_path.glob("*/profile.pop")
    report.unlink()
    run()
    assert not report.exists()


def test_what_the_host_only_waits_for_is_no_program() -> None:
    configure()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with tf.device("/device:IPU:0"):
            x = tf.compat.v1.placeholder(tf.float32, (2,))
            total = x + x
        with tf.device("cpu"), tf.control_dependencies([total]):
            one = tf.constant(1.0) + 0
        session.run(one, {x: [1.0, 2.0]})
        assert counts() == {}
        session.run(total, {x: [1.0, 2.0]})
        assert counts()["EXECUTE"] == 1


def test_first_values_of_variables_are_computed_on_the_device() -> None:
    configure()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with tf.device("/device:IPU:0"):
            drawn = tf.compat.v1.get_variable("drawn", (2,), use_resource=True)
            given = tf.compat.v1.get_variable("w", initializer=[1.0], use_resource=True)
        session.run(given.initializer)
        assert counts() == {}
        session.run(drawn.initializer)
        assert counts()["COMPILE_END"] == 1


def compiled() -> test_utils.ReportJSON:
    """The newest compilation."""
    trace = test_utils.ReportJSON(None)
    trace.parse_events(trace_events.drain())
    return trace


def test_a_compilation_says_where_tensors_lie() -> None:
    configure()
    run(function=tf.function(lambda x: tf.matmul(x[None], x[:, None])))
    tensors = list(compiled().get_tensor_map().all_tensors())
    (argument,) = (tensor for tensor in tensors if tensor.inst.startswith("arg0"))
    assert sum(tile.num_elements for tile in argument.tiles) == 2
    assert sum(tensor.inst.startswith("dot.") for tensor in tensors) == 1


def train(layers: list[Any], x: Any) -> None:
    """One step of training in a program."""
    model = tf.keras.Sequential([tf.keras.Input(x.shape[1:]), *layers])
    optimizer = tf.keras.optimizers.legacy.SGD(0.1)

    @tf.function
    def step(_: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x))
        variables = model.trainable_variables
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    run(function=step)


def test_a_compilation_says_what_products_are_for() -> None:
    configure()
    run(function=tf.function(lambda x: tf.matmul(x[None], x[:, None])))
    assert compiled().get_ml_type_counts() == [1, 0, 0, 0]
    dense = [tf.keras.layers.Dense(4, "relu", use_bias=False) for _ in range(2)]
    train(dense, tf.ones((2, 4)))
    # What comes first has no gradient.
    assert compiled().get_ml_type_counts() == [0, 2, 1, 2]
    conv = {"filters": 4, "kernel_size": 2, "activation": "relu", "use_bias": False}
    convs = [tf.keras.layers.Conv2D(**conv) for _ in range(2)]
    train(convs, tf.ones((1, 4, 4, 4)))
    # The gradient of an input turns the weights round and convolves once more.
    assert compiled().get_ml_type_counts() == [0, 4, 0, 2]
