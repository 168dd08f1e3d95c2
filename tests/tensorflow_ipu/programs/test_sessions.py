"""Sessions of TensorFlow 1: when they need the device, what runs on the host."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.eager import context

v1 = tf.compat.v1
DEVICE = "/device:IPU:0"
REFUSED = tf.errors.InvalidArgumentError
NEVER = ipu.config.DeviceConnectionType.NEVER


@pytest.fixture(autouse=True)
def graph(own_pod: None) -> Iterator[Any]:
    del own_pod
    with tf.Graph().as_default() as graph:
        yield graph


def configure(**connection: Any) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    for name, value in connection.items():
        setattr(config.device_connection, name, value)
    config.configure_ipu_system()


def variable(first: Any) -> Any:
    with ipu.scopes.ipu_scope(DEVICE):
        return v1.get_variable("w", initializer=first)


def test_first_values_are_computed_beside_their_variables() -> None:
    variable(lambda: tf.random.uniform([2]))
    configure(type=NEVER, version="ipu2")
    with v1.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(v1.global_variables_initializer())


def test_first_values_on_the_host_need_no_device() -> None:
    w = variable(lambda: tf.random.uniform([2], 1.0, 2.0))
    ipu.utils.move_variable_initialization_to_cpu()
    configure(type=NEVER, version="ipu2")
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        with tf.device("/device:CPU:0"):
            filled = v1.is_variable_initialized(w)
        assert session.run(filled)


def program(body: Any) -> Any:
    with ipu.scopes.ipu_scope(DEVICE):
        return ipu.ipu_compiler.compile(body, [tf.constant(2.0)])


@pytest.mark.parametrize("shape", [lambda y: y, lambda y: {"y": [y]}, lambda y: None])
def test_the_host_acts_though_nothing_waits_for_it(
    shape: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    def body(x: Any) -> Any:
        y = x * x
        with ipu.scopes.outside_compilation_scope():
            tf.print(y, output_stream=sys.stderr)
        return shape(y)

    outputs = program(body)
    with v1.Session() as session:
        session.run(outputs)
    assert "4\n" in capfd.readouterr().err


def on_the_host(x: Any) -> Any:
    with ipu.scopes.outside_compilation_scope():
        return x + 1.0


def in_loop(x: Any) -> Any:
    return ipu.loops.repeat(2, on_the_host, [x])


def test_loops_cannot_wait_for_the_host() -> None:
    outputs = program(in_loop)
    with v1.Session() as session:
        assert session.run(tf.constant(3)) == 3  # only what is wrong is refused
        with pytest.raises(tf.errors.UnimplementedError, match="control flow"):
            session.run(outputs)


def test_functions_refuse_it_when_they_are_traced() -> None:
    @tf.function
    def run() -> Any:
        return program(in_loop)

    refusal = pytest.raises(tf.errors.UnimplementedError, match="control flow")
    with context.eager_mode(), refusal:
        run()


def old_variable() -> Any:
    """What adds to a variable of TensorFlow 1 that is no resource, on the device."""
    with tf.device(DEVICE):
        held = v1.Variable(1.0, use_resource=False)
        return held.initializer, v1.assign_add(held, 1.0)


def test_variables_that_are_no_resources_are_refused() -> None:
    configure()
    first, added = old_variable()
    with v1.Session() as session, pytest.raises(REFUSED) as refusal:
        session.run([first, added])
    lines = str(refusal.value).splitlines()
    assert {"Colocation Debug Info:", "AssignAdd: CPU", "VariableV2: CPU"} < {*lines}


def test_the_host_holds_them_where_a_program_asks_for_soft_placement() -> None:
    configure()
    first, added = old_variable()
    with v1.Session(config=v1.ConfigProto(allow_soft_placement=True)) as session:
        session.run(first)
        assert session.run(added) == 2.0
