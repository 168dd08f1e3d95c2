"""Candidate samplers with a seed: the device draws the same classes at every call.

In: the functions that make a sampler. Out: functions of the same arguments. In programs
for the IPU, what a sampler with a seed of its own draws follows from the seed alone.
TensorFlow's kernels go on from call to call, and still do where the seed is only that
of the graph or the device. Distributions and expected counts are TensorFlow's.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import tensorflow.compat.v2 as tf

from popple.engine.tensorflow import region

from .._programs import compilation

__all__ = ["complete"]


@dataclass(frozen=True)
class _Distribution:
    """How probable a class is, and the class at a point of the cumulated distribution.

    Both are of numbers in double precision and the number of classes.
    """

    probability: Callable[[tf.Tensor, int], tf.Tensor]
    class_at: Callable[[tf.Tensor, int], tf.Tensor]


def _log_probability(classes: tf.Tensor, count: int) -> tf.Tensor:
    return tf.math.log((classes + 2) / (classes + 1)) / math.log(count + 1)


_UNIFORM = _Distribution(
    lambda classes, count: tf.ones_like(classes) / count,
    lambda u, count: tf.floor(u * count),
)
_LOG_UNIFORM = _Distribution(
    _log_probability,
    lambda u, count: tf.floor(tf.exp(u * math.log(count + 1))) - 1,
)
_SAMPLERS: Mapping[str, tuple[str, _Distribution]] = {
    "log_uniform_candidate_sampler": ("LogUniformCandidateSampler", _LOG_UNIFORM),
    "uniform_candidate_sampler": ("UniformCandidateSampler", _UNIFORM),
}


class _OfGraph(int):
    """A seed that the graph handed out: the program set none on the operation."""


def complete(module: ModuleType, front: ModuleType) -> None:
    """Replace functions of `gen_candidate_sampling_ops`.

    `front` is `candidate_sampling_ops`, which asks for seeds and calls them.
    """
    stock = front.random_seed.get_seed

    def get_seed(own: int | None) -> tuple[int | None, int | None]:
        first, second = stock(own)
        is_handed_out = own is None and second is not None
        return first, _OfGraph(second) if is_handed_out else second

    front.random_seed = SimpleNamespace(get_seed=get_seed)
    for name, (operator, distribution) in _SAMPLERS.items():
        result = getattr(module, f"_{operator}Output")
        made = _completed(getattr(module, name), operator, distribution, result)
        setattr(module, name, made)


def _completed(
    stock: Callable[..., Any],
    operator: str,
    distribution: _Distribution,
    result: Callable[..., Any],
) -> Callable[..., Any]:
    signature = inspect.signature(stock)

    @functools.wraps(stock)
    def sample(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        settings = given.arguments
        is_ours = compilation.compiling() and _has_own_seed(settings)
        if not is_ours or _needs_no_draw(settings):
            return stock(*args, **kwargs)
        true_classes = tf.convert_to_tensor(settings["true_classes"], tf.int64)
        with (
            tf.name_scope(settings["name"] or operator),
            # For the cost model it stays the one operator.
            region("generic", framework_op=operator),
        ):
            return result(*_sampled(true_classes, settings, distribution))

    return sample


def _has_own_seed(settings: Mapping[str, Any]) -> bool:
    seeds = settings["seed"], settings["seed2"]
    return any(seeds) and not isinstance(seeds[1], _OfGraph)


def _needs_no_draw(settings: Mapping[str, Any]) -> bool:
    """Of one class there is nothing to draw; of too few, the kernel says so."""
    count = settings["range_max"]
    return count <= 1 or (settings["unique"] and settings["num_sampled"] > count)


def _sampled(
    true_classes: tf.Tensor, settings: Mapping[str, Any], distribution: _Distribution
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The classes drawn, and how often true and drawn ones are expected."""
    size, count = settings["num_sampled"], settings["range_max"]
    seed = [settings["seed"] or 0, settings["seed2"] or 0]
    if settings["unique"]:
        samples, tries = _unique(size, count, seed, distribution)
    else:
        u = tf.random.stateless_uniform([size], seed, dtype=tf.float64)
        samples = tf.minimum(distribution.class_at(u, count), count - 1)
        tries = tf.constant(size, tf.float64)
    wide = (tf.cast(true_classes, tf.float64), samples)
    chances = [distribution.probability(classes, count) for classes in wide]
    expected = [_expected(p, tries, size) for p in chances]
    return tf.cast(samples, tf.int64), expected[0], expected[1]


def _unique(
    size: int, count: int, seed: list[int], distribution: _Distribution
) -> tuple[tf.Tensor, tf.Tensor]:
    """Classes, none twice, and how many draws it took to find them.

    As if drawn over and over until there are enough different ones, without a loop:
    classes come up in the order of exponential waiting times, and the draws between two
    new ones are geometric in the probability of those that are left.
    """
    drawn = tf.random.stateless_uniform([count + size - 1], seed, dtype=tf.float64)
    logs = tf.math.log1p(-drawn)  # of numbers above 0, up to 1
    chances = distribution.probability(tf.range(count, dtype=tf.float64), count)
    order = tf.argsort(-logs[:count] / chances)
    left = tf.cumsum(tf.gather(chances, order), reverse=True)[1:size]
    tries = 1 + tf.floor(logs[count:] / tf.math.log1p(-left))
    return tf.cast(order[:size], tf.float64), 1 + tf.reduce_sum(tries)


def _expected(p: tf.Tensor, tries: tf.Tensor, size: int) -> tf.Tensor:
    """How often a class is expected: once at most, if draws were thrown away."""
    at_most_once = -tf.math.expm1(tries * tf.math.log1p(-p))
    return tf.cast(tf.where(tf.equal(tries, size), size * p, at_most_once), tf.float32)
