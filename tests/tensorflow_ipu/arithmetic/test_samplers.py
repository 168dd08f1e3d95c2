"""Candidate samplers, with a seed and without, in programs on the IPU and elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ops import candidate_sampling_ops as samplers  # noqa: E402

import popple  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_pod")
NAMES = ["uniform_candidate_sampler", "log_uniform_candidate_sampler"]


def program(
    name: str, size: int = 10, count: int = 1000, unique: bool = True, seed: Any = 42
) -> Any:
    @tf.function
    def sample() -> Any:
        true = tf.range(count, dtype=tf.int64)[tf.newaxis]
        draw = getattr(samplers, name)
        return draw(true, count, size, unique, count, seed=seed)

    return sample


def drawn(function: Any) -> list[Any]:
    strategy = ipu.ipu_strategy.IPUStrategy()
    return [x.numpy() for x in strategy.run(function)]


def compiled(seed: int | None) -> Any:
    """The samples of a program of TensorFlow 1."""

    def body(x: Any) -> Any:
        return tf.random.uniform_candidate_sampler(x, 2, 10, True, 1000, seed=seed)

    true = tf.constant([[1, 2]], tf.int64)
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        return ipu.ipu_compiler.compile(body, [true])[0]


def probabilities(name: str, count: int) -> Any:
    if name == "uniform_candidate_sampler":
        return np.full(count, 1 / count)
    k = np.arange(count)
    return np.log((k + 2) / (k + 1)) / np.log(count + 1)


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_seed_draws_the_same_at_every_call(name: str, unique: bool) -> None:
    sample = program(name, unique=unique)
    first, second = drawn(sample), drawn(sample)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    other = drawn(program(name, unique=unique, seed=43))
    assert not np.array_equal(first[0], other[0])
    assert [x.dtype for x in first] == [np.int64, np.float32, np.float32]


@pytest.mark.parametrize("name", NAMES)
def test_without_a_seed_calls_differ(name: str) -> None:
    sample = program(name, seed=None)
    assert not np.array_equal(drawn(sample)[0], drawn(sample)[0])


def test_seeds_of_the_device_and_the_graph_start_a_sequence() -> None:
    ipu.utils.reset_ipu_seed(42)
    sample = program(NAMES[0], seed=None)
    assert not np.array_equal(drawn(sample)[0], drawn(sample)[0])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.set_random_seed(42)
        samples = compiled(seed=None)
        assert not np.array_equal(session.run(samples), session.run(samples))


def test_elsewhere_calls_differ() -> None:
    sample = program(NAMES[0])
    assert not np.array_equal(sample()[0], sample()[0])


@pytest.mark.parametrize("seed_of_graph", [None, 1])
def test_runs_of_a_graph_of_tensorflow_1(seed_of_graph: int | None) -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.set_random_seed(seed_of_graph)
        samples = compiled(seed=42)
        first, second = session.run(samples), session.run(samples)
    assert np.array_equal(first, second)


@pytest.mark.parametrize("name", NAMES)
def test_repeated_draws_follow_the_distribution(name: str) -> None:
    size, count = 20_000, 20
    samples, true, of_samples = drawn(program(name, size, count, unique=False))
    chances = probabilities(name, count)
    found = np.bincount(samples, minlength=count) / size
    assert np.allclose(found, chances, atol=4 * np.sqrt(chances.max() / size))
    assert np.allclose(true[0], size * chances, rtol=1e-6)
    assert np.array_equal(of_samples, true[0][samples])


@pytest.mark.parametrize("name", NAMES)
def test_unique_draws_are_those_of_drawing_until_enough(name: str) -> None:
    size, count = 500, 1000
    samples, true, of_samples = drawn(program(name, size, count))
    assert len(set(samples)) == size
    assert np.array_equal(of_samples, true[0][samples])
    # How probable it is that so many tries find a class, for a whole number of them.
    chances = probabilities(name, count)
    # That of the last class is far enough from 1 to tell.
    tries = round(np.log1p(-float(true[0, -1])) / np.log1p(-chances[-1]))
    found = 1 - (1 - chances) ** tries
    assert np.allclose(true[0], found, rtol=1e-5)
    # So many tries find about as many classes, and about as many of the frequent ones.
    error = np.sqrt((found * (1 - found)).sum())
    assert abs(found.sum() - size) < 4 * error
    assert abs(found[:100].sum() - (samples < 100).sum()) < 4 * error
    assert abs(found[500:].sum() - (samples >= 500).sum()) < 4 * error


@pytest.mark.parametrize("name", NAMES)
def test_draws_of_which_none_was_thrown_away(name: str) -> None:
    _, true, _ = drawn(program(name, 1, 1000))
    assert np.allclose(true[0], probabilities(name, 1000), rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_all_classes_are_drawn_when_all_are_wanted(name: str) -> None:
    samples, *_ = drawn(program(name, 50, 50))
    assert sorted(samples) == list(range(50))


def test_more_unique_ones_than_there_are() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="range is too small"):
        drawn(program(NAMES[0], 3, 2))


def test_the_cost_model_sees_the_one_operator() -> None:
    def kinds(seed: Any) -> list[Any]:
        strategy = ipu.ipu_strategy.IPUStrategy()
        strategy.run(program(NAMES[0], seed=seed))
        ops = popple.modelled(strategy).graph.ops
        return [(op.kind, op.attrs.get("framework_op")) for op in ops]

    assert ("generic", "UniformCandidateSampler") in kinds(42)
    assert sorted(map(str, kinds(42))) == sorted(map(str, kinds(None)))


def test_floating_point_exceptions_find_nothing() -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.floating_point_behaviour.set_all = True
    config.configure_ipu_system()
    strategy = ipu.ipu_strategy.IPUStrategy()
    for unique in (False, True):
        samples, *_ = strategy.run(program(NAMES[1], unique=unique))
        assert samples.shape == [10]
        assert popple.modelled(strategy).graph.ops
