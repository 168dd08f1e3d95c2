"""Floating-point exceptions: which operations stop a program, and what is left then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402

from popple.pipeline import modelled  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_pod")

v1 = tf.compat.v1
InternalError = tf.errors.InternalError
ALL = ("inv", "div0", "oflo")


def configure(*flags: str, num_ipus: int = 1) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = num_ipus
    for flag in flags:
        setattr(config.floating_point_behaviour, flag, True)
    config.configure_ipu_system()


def run(function: Any, *inputs: Any, flags: Any = ALL, num_ipus: int = 1) -> Any:
    configure(*flags, num_ipus=num_ipus)
    tensors = [tf.constant(each) for each in inputs]
    return ipu.ipu_strategy.IPUStrategy().run(tf.function(function), tensors)


def half(*values: float) -> Any:
    return np.array(values, np.float16)


def single(*values: float) -> Any:
    return np.array(values, np.float32)


INF, NAN = np.inf, np.nan

WRONG = [
    ("inv", "RealDiv", lambda x: x / x, single(1, 0)),
    ("inv", "Sqrt", tf.sqrt, single(-1)),
    ("inv", "Log", tf.math.log, half(-1)),
    ("inv", "Sub", lambda x: x - x, single(INF)),
    ("inv", "Less", lambda x: x < 1.0, single(NAN)),
    ("inv", "Cast", lambda x: tf.cast(x, tf.int32), half(NAN)),
    ("inv", "Cast", lambda x: tf.cast(x, tf.int32), single(1e10)),
    ("div0", "RealDiv", lambda x: 1.0 / x, single(1, 0)),
    ("div0", "Reciprocal", tf.math.reciprocal, half(0)),
    ("div0", "Log", tf.math.log, single(0)),
    ("oflo", "Mul", lambda x: x * x, single(1e30)),
    ("oflo", "Mul", lambda x: x * x, half(300)),
    ("oflo", "Exp", tf.exp, half(20)),
    ("oflo", "Sum", tf.reduce_sum, half(60000, 60000)),
    ("oflo", "RealDiv", lambda x: x / half(0.001), half(300)),
    ("oflo", "Cast", lambda x: tf.cast(x, tf.float16), single(1e9)),
]


@pytest.mark.parametrize(("flag", "kind", "function", "x"), WRONG)
def test_a_mistake_stops_the_program(
    flag: str, kind: str, function: Any, x: Any
) -> None:
    with pytest.raises(InternalError, match="Tiles in excepted state") as raised:
        run(function, x, flags=[flag])
    assert f"({kind})" in raised.value.message
    assert f"floating_point_behaviour.{flag}" in raised.value.message
    others = [each for each in ALL if each != flag]
    run(function, x, flags=others)  # which is no exception of another kind


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: x + 1.0, single(NAN, INF)),  # passed on, not made
        (lambda x: tf.where(x > 0.0, x, -INF) * 2.0, single(-1, 1)),
        (lambda x: tf.nn.softmax(x + tf.constant([-INF, 0.0])), single(1, 2)),
        (lambda x: tf.math.divide_no_nan(1.0, x), single(0)),
        (lambda x: tf.pow(x, -0.5), single(0)),
        (lambda x: tf.reshape(x, [2, 1]) == x, single(NAN, 1)),
    ],
)
def test_what_is_no_mistake(function: Any, x: Any) -> None:
    run(function, x)


@pytest.mark.parametrize("num_ipus", [1, 2])
def test_a_program_that_stops_leaves_its_variables(num_ipus: int) -> None:
    variable = tf.Variable(1.0)

    def program(x: Any) -> Any:
        variable.assign_add(1.0)
        return 1.0 / x

    with pytest.raises(InternalError, match="division by zero"):
        run(program, single(0), num_ipus=num_ipus)
    assert float(variable) == 1.0


@pytest.mark.parametrize("is_early", [True, False])
def test_a_session_stops_wherever_the_device_is_configured(is_early: bool) -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [])
        if is_early:
            configure("div0")
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            (result,) = ipu.ipu_compiler.compile(lambda x: 1.0 / x, [x])
        if not is_early:
            configure("div0")
        assert session.run(result, {x: 2.0}) == 0.5
        with pytest.raises(InternalError, match="division by zero"):
            session.run(result, {x: 0.0})


def test_steps_of_loops_and_branches_are_checked() -> None:
    def program(x: Any) -> Any:
        power = ipu.loops.repeat(3, lambda x: x * x, [x])  # x to the 8th
        return tf.cond(power > 2.0, lambda: 1.0 / (power - 256.0), lambda: power)

    assert float(run(program, np.float32(1.0))) == 1.0
    with pytest.raises(InternalError, match="overflow"):
        run(program, np.float32(1e10))
    with pytest.raises(InternalError, match="division by zero"):
        run(program, np.float32(2.0))


def test_gradients_pass_and_are_checked() -> None:
    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sqrt(x)
        return tape.gradient(y, x)

    assert float(run(slope, np.float32(4.0))) == 0.25
    with pytest.raises(InternalError, match="Tiles in excepted state"):
        run(slope, np.float32(0.0))


def test_a_changed_configuration_counts_for_functions_that_were_traced() -> None:
    strategy = ipu.ipu_strategy.IPUStrategy()
    divide = tf.function(lambda x: 1.0 / x)
    zero = tf.constant(0.0)
    configure()
    assert np.isinf(strategy.run(divide, [zero]))
    configure("div0")
    with pytest.raises(InternalError, match="division by zero"):
        strategy.run(divide, [zero])
    configure()
    assert np.isinf(strategy.run(divide, [zero]))


def test_keras_models_stop_too() -> None:
    configure(*ALL)
    with ipu.ipu_strategy.IPUStrategy().scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
        model.compile("sgd", "mse", steps_per_execution=2)
        before = model.get_weights()
        model.fit(np.ones([4, 2]), np.ones([4, 1]), batch_size=1, verbose=0)
        after = model.get_weights()
        assert not np.array_equal(before[0], after[0])
        with pytest.raises(InternalError, match="an overflow"):
            model.fit(np.full([4, 2], 1e30), np.ones([4, 1]), batch_size=1, verbose=0)
        np.testing.assert_array_equal(model.get_weights()[0], after[0])


def test_checks_cost_nothing() -> None:
    def kinds(*flags: str) -> list[str]:
        configure(*flags)
        strategy = ipu.ipu_strategy.IPUStrategy()
        function = tf.function(lambda x: tf.exp(x) / (x @ x))
        strategy.run(function, [tf.ones([4, 4], tf.float16)])
        return [op.kind for op in modelled(strategy).graph.ops]

    assert kinds(*ALL) == kinds()
