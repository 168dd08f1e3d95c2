"""Half precision in programs: what is too large is the largest number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu._arithmetic import compiled  # noqa: E402

from popple.graph import DType  # noqa: E402
from popple.pipeline import modelled  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_pod")

LARGEST = 65504.0


def half(*values: float) -> Any:
    return tf.constant(values, tf.float16)


def on_device(function: Any, nanoo: bool = False) -> Any:
    """What a function without arguments gives as a program for the device."""
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.floating_point_behaviour.nanoo = nanoo
    config.configure_ipu_system()
    return ipu.ipu_strategy.IPUStrategy().run(tf.function(function))


def test_results_too_large_are_the_largest_number() -> None:
    result = on_device(lambda: half(300, -300, 2) * half(300, 300, 2))
    np.testing.assert_array_equal(result, [LARGEST, -LARGEST, 4])
    # Outside a program, the arithmetic is TensorFlow's.
    assert np.isinf(half(300) * half(300))


def test_a_device_may_give_no_number_for_results_too_large() -> None:
    result = on_device(lambda: half(300, 2) * half(300, 2), nanoo=True)
    np.testing.assert_array_equal(result, [np.nan, 4])
    converted = on_device(lambda: tf.cast([1e9, -np.inf, 1], tf.float16), nanoo=True)
    np.testing.assert_array_equal(converted, [np.nan, -np.inf, 1])


def test_quotients_too_large_are_the_largest_number() -> None:
    # 1 / 0 is an infinity on purpose.
    result = on_device(lambda: half(300, -300, 1, 8) / half(0.001, 0.001, 0, 4))
    np.testing.assert_array_equal(result, [LARGEST, -LARGEST, np.inf, 2])


def test_sums_have_room_for_what_they_add_up() -> None:
    means = on_device(lambda: tf.reduce_mean(tf.fill([2, 500], half(300)[0]), 1))
    np.testing.assert_array_equal(means, [300, 300])
    # 2048 + 1 is 2048 in half precision, if it is added one by one.
    total = on_device(lambda: tf.reduce_sum(tf.ones([4000], tf.float16)))
    assert float(total) == 4000


@pytest.mark.parametrize("tape", [True, False])
def test_gradients_pass_what_was_cut_off(tape: bool) -> None:
    def gradient() -> Any:
        x = half(300)
        if not tape:
            return tf.gradients(x * x, x)[0]
        with tf.GradientTape() as recorded:
            recorded.watch(x)
            y = x * x
        return recorded.gradient(y, x)

    assert float(on_device(gradient)[0]) == 600


@pytest.mark.parametrize("nanoo", [False, True])
@pytest.mark.parametrize("tape", [True, False])
def test_gradients_pass_conversions_and_quotients(tape: bool, nanoo: bool) -> None:
    def gradient() -> Any:
        x = tf.constant([8.0])
        with tf.GradientTape() as recorded:
            recorded.watch(x)
            y = half(3) * (tf.cast(x, tf.float16) / half(2))
        return recorded.gradient(y, x) if tape else tf.gradients(y, x)[0]

    assert float(on_device(gradient, nanoo)[0]) == 1.5


def test_numbers_too_large_to_convert_are_infinite() -> None:
    result = on_device(lambda: tf.cast([1e9, -np.inf, 2], tf.float16))
    np.testing.assert_array_equal(result, [np.inf, -np.inf, 2])


def test_a_list_of_results_is_a_list() -> None:
    kinds: list[type] = []

    def net() -> Any:
        parts = tf.split(half(1, 2), 2)
        kinds.append(type(parts))
        return parts[0]

    on_device(net)
    assert set(kinds) == {list}


def updated(optimizer: Any, value: float, gradient: float) -> Any:
    """What a step on the device makes of a value."""
    variable = tf.Variable(half(value))
    optimizer._create_all_weights([variable])

    def step() -> None:
        optimizer.apply_gradients([(half(gradient), variable)])

    on_device(step)
    states = [state.numpy() for state in optimizer.variables()]
    assert np.isfinite(np.concatenate([np.ravel(state) for state in states])).all()
    return variable.numpy()


@pytest.mark.parametrize(
    "settings", [{}, {"momentum": 0.5}, {"momentum": 0.5, "nesterov": True}]
)
def test_updates_are_cut_off(settings: dict[str, Any]) -> None:
    optimizer = tf.keras.optimizers.legacy.SGD(1.0, **settings)
    assert updated(optimizer, 65000, -600) == LARGEST


def test_moments_are_cut_off() -> None:
    # 300 times 300 is the largest number, of which 0.001 is the second moment, 65.5;
    # the first one is 0.1 * 300. The rate is 0.01 * sqrt(0.001) / 0.1.
    found = updated(tf.keras.optimizers.legacy.Adam(0.01), 1, 300)
    np.testing.assert_allclose(found, 1 - 0.00316 * 30 / 8.09, rtol=1e-3)


def test_updates_of_old_optimisers_are_cut_off_and_come_back() -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable = tf.compat.v1.get_variable(
            "v", initializer=half(65000, 1), use_resource=True
        )
        gradients = [(half(-600, 2), variable)]
        optimizer = tf.compat.v1.train.MomentumOptimizer(1.0, 0.5)

        def program() -> Any:
            return optimizer.apply_gradients(gradients)

        with tf.device("/device:IPU:0"):
            train = ipu.ipu_compiler.compile(program)
        session.run(tf.compat.v1.global_variables_initializer())
        session.run(train)
        np.testing.assert_array_equal(session.run(variable), [LARGEST, -1])


def operators_run(strategy: Any, function: Any, arguments: list[Any]) -> set[str]:
    """Types of the operations that a program runs, with what only the model reads."""
    strategy.run(function, arguments)
    concrete = function.get_concrete_function(*arguments)
    return {op.type for op in concrete.graph.get_operations()}


SGD, ADAM = tf.keras.optimizers.legacy.SGD, tf.keras.optimizers.legacy.Adam
OLD = tf.compat.v1.train
# Enough for a kernel of its own, in a shape that is no vector.
LARGE = (256, 128)
OPTIMIZERS = {
    "descent": lambda: SGD(0.5),
    "momentum": lambda: SGD(0.5, momentum=0.75),
    "nesterov": lambda: SGD(0.5, momentum=0.75, nesterov=True),
    "adam": lambda: ADAM(0.01, epsilon=1e-4),
    "old momentum": lambda: OLD.MomentumOptimizer(0.5, 0.75),
    "old nesterov": lambda: OLD.MomentumOptimizer(0.5, 0.75, use_nesterov=True),
}


def trained(optimizer: Any, dtype: Any, gradient: Any) -> tuple[Any, set[str]]:
    """A variable of ones after two steps, and the operators that took them."""
    variable = tf.Variable(tf.ones(gradient.shape, dtype))
    pairs = [(tf.cast(gradient, dtype), variable)]
    optimizer.apply_gradients([(tf.zeros_like(variable), variable)])  # makes states
    strategy = ipu.ipu_strategy.IPUStrategy()
    step = tf.function(lambda: optimizer.apply_gradients(pairs) and None)
    for _ in range(2):
        strategy.run(step)
    made = step.get_concrete_function().graph.get_operations()
    return variable.numpy().astype(np.float64), {op.type for op in made}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("shape", [(8,), LARGE])
def test_updates_are_those_of_single_precision(name: str, shape: tuple[int]) -> None:
    random = np.random.default_rng(0)
    gradient = tf.constant(random.uniform(0.5, 1, shape).astype(np.float16))
    halves, operators = trained(OPTIMIZERS[name](), tf.float16, gradient)
    singles, _ = trained(OPTIMIZERS[name](), tf.float32, gradient)
    # Two steps of values below 4, each within half a unit in the last place, 2^-10.
    np.testing.assert_allclose(halves, singles, rtol=0, atol=2 * 2.0**-10)
    # The operator in half precision is not there, and large updates are one call.
    assert not any(kind.startswith("ResourceApply") for kind in operators)
    assert ("PartitionedCall" in operators) == (shape == LARGE)


def test_a_kernel_rounds_and_cuts_off_where_operators_do() -> None:
    # Squares of 300 are the largest number, those of 1e-4 are 0: see `moments` above.
    values = np.resize(np.float16([300, 1e-4, 1]), LARGE)
    large, _ = trained(OPTIMIZERS["adam"](), tf.float16, tf.constant(values))
    small, _ = trained(OPTIMIZERS["adam"](), tf.float16, tf.constant(values[0, :3]))
    np.testing.assert_array_equal(np.ravel(large)[:3], small)


def test_updates_step_by_step_cost_what_one_costs() -> None:
    variable = tf.Variable(half(1, 2))
    optimizer = tf.keras.optimizers.legacy.Adam(0.01)
    optimizer._create_all_weights([variable])
    strategy = ipu.ipu_strategy.IPUStrategy()

    @tf.function
    def step(x: Any) -> None:
        optimizer.apply_gradients([(tf.sin(x), variable)])

    # The operator itself, which would compute in half precision, is not there.
    assert "ResourceApplyAdam" not in operators_run(strategy, step, [half(1, 2)])
    kinds = [op.kind for op in modelled(strategy).graph.ops if "Assign" not in op.name]
    assert kinds == ["sin", "adam_update"]


def test_what_a_session_runs_on_the_device_is_cut_off_too() -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            result = half(300) * half(300)
        assert session.run(result).tolist() == [LARGEST]


@pytest.mark.parametrize("tape", [True, False])
def test_products_are_rounded_once(tape: bool) -> None:
    random = np.random.default_rng(0)
    x, kernel = (
        random.standard_normal(shape).astype(np.float16)
        for shape in ((2, 9, 9, 16), (3, 3, 16, 8))
    )

    def results(x: Any, kernel: Any) -> list[Any]:
        with tf.GradientTape() as recorded:
            recorded.watch([x, kernel])
            y = tf.nn.conv2d(x, kernel, 1, "SAME")
        if tape:
            return [y, *recorded.gradient(y, [x, kernel])]
        return [y, *tf.gradients(y, [x, kernel])]

    halves = [tf.constant(each) for each in (x, kernel)]
    found = on_device(lambda: results(*halves))
    wide = tf.function(lambda: results(*(tf.cast(h, tf.float32) for h in halves)))
    for own, other in zip(found, wide(), strict=True):
        assert own.dtype == tf.float16
        np.testing.assert_array_equal(own, tf.cast(other, tf.float16))


@pytest.mark.parametrize("rows", [3, 1 << 12])
@pytest.mark.parametrize("nanoo", [True, False])
def test_a_bias_is_added_as_half_precision_adds(rows: int, nanoo: bool) -> None:
    random = np.random.default_rng(0)
    x, bias = (random.uniform(-9e4, 9e4, s) for s in ((rows, 16), (16,)))
    x, bias = (each.clip(-LARGEST, LARGEST).astype(np.float16) for each in (x, bias))

    def results() -> Any:
        given = tf.constant(x), tf.constant(bias)
        y = tf.nn.bias_add(*given)
        return y, *tf.gradients(y, given)

    y, of_x, of_bias = on_device(results, nanoo)
    with np.errstate(over="ignore"):
        expected = x + bias  # rounded once, infinities where too large
    too_large = np.nan if nanoo else np.sign(expected) * LARGEST
    np.testing.assert_array_equal(y, np.where(np.isinf(expected), too_large, expected))
    assert np.isinf(expected).any()
    assert (of_x.numpy() == 1).all()
    assert (of_bias.numpy() == rows).all()


def test_products_too_large_are_the_largest_number() -> None:
    result = on_device(lambda: tf.matmul([half(300, 300)], [[300.0], [300.0]]))
    np.testing.assert_array_equal(result, [[LARGEST]])


def test_a_product_in_half_precision_is_modelled_as_one() -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.configure_ipu_system()
    strategy = ipu.ipu_strategy.IPUStrategy()
    strategy.run(tf.function(lambda x: tf.matmul(x, x)), [tf.ones([8, 8], tf.float16)])
    (product,) = (op for op in modelled(strategy).graph.ops if op.kind == "matmul")
    graph = modelled(strategy).graph
    kinds = {str(graph.values[name].type.dtype) for name in product.inputs}
    assert kinds == {str(graph.values[product.outputs[0]].type.dtype)}
    assert product.name.endswith("MatMul")


@pytest.mark.parametrize("tape", [True, False])
def test_pools_choose_the_same_numbers(tape: bool) -> None:
    # Windows 0 1 | 2 3 of four numbers: 5 and 7 are chosen, and get the gradients.
    x = tf.reshape(half(1, 5, 7, 2), [1, 1, 4, 1])

    def results() -> list[Any]:
        with tf.GradientTape() as recorded:
            recorded.watch(x)
            y = tf.nn.max_pool2d(x, [1, 2], [1, 2], "VALID")
        loss = y * tf.reshape(half(3, 4), [1, 1, 2, 1])
        return [y, recorded.gradient(y, x) if tape else tf.gradients(loss, x)[0]]

    pooled, gradient = on_device(results)
    assert np.ravel(pooled).tolist() == [5, 7]
    assert np.ravel(gradient).tolist() == ([0, 1, 1, 0] if tape else [0, 3, 4, 0])


def test_a_pool_in_half_precision_is_modelled_as_one() -> None:
    strategy = ipu.ipu_strategy.IPUStrategy()

    @tf.function
    def gradient(x: Any) -> Any:
        return tf.gradients(tf.sin(tf.nn.max_pool2d(x, 2, 2, "VALID")), x)[0]

    strategy.run(gradient, [tf.ones([1, 4, 4, 2], tf.float16)])
    graph = modelled(strategy).graph
    assert {"max_pool", "max_pool_grad"} <= {op.kind for op in graph.ops}
    names = [name for op in graph.ops for name in (*op.inputs, *op.outputs)]
    assert {graph.values[name].type.dtype for name in names} == {DType.F16}


@pytest.mark.parametrize("tape", [True, False])
def test_large_results_are_cut_off_by_a_kernel(tape: bool) -> None:
    # 300 * 300, -300 * 300, 2 * 2: gradients 2 * x, also of what was cut off.
    values = np.resize(np.float16([300, -300, 2]), LARGE)

    def results() -> list[Any]:
        x = tf.constant(values)
        with tf.GradientTape() as recorded:
            recorded.watch(x)
            y = x * tf.abs(x)
        return [y, recorded.gradient(y, x) if tape else tf.gradients(y, x)[0]]

    product, gradient = on_device(results)
    expected = np.resize(np.float16([LARGEST, -LARGEST, 4]), LARGE)
    np.testing.assert_array_equal(product, expected)
    np.testing.assert_array_equal(gradient, 2 * np.abs(values))


def cost_ops() -> list[tuple[str, str]]:
    """What the cost model has of a product, a sum and their gradients."""
    strategy = ipu.ipu_strategy.IPUStrategy()

    @tf.function
    def step(x: Any) -> Any:
        return tf.gradients(tf.matmul(x, x) + tf.sin(x), x)[0]

    strategy.run(step, [tf.ones([256, 256], tf.float16)])
    return [(op.kind, op.name) for op in modelled(strategy).graph.ops]


def test_kernels_cost_what_operators_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with_kernels = cost_ops()
    monkeypatch.setattr(compiled, "_MIN_ELEMENTS", 1 << 60)
    assert with_kernels == cost_ops()
