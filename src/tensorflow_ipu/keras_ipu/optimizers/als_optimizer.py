"""Automatic loss scaling: keeps gradients in half precision within their range.

The loss is multiplied by a factor before it is differentiated and gradients are divided
by it before they are applied. Gradients of type float16 are counted by magnitude: every
`update_frequency` steps the factor is made smaller if too many have overflowed, and
larger otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ipu import gradient_accumulation
from tensorflow.python.ipu.ops import cross_replica_ops, statistics_ops
from tf_keras.src.optimizers.legacy.optimizer_v2 import OptimizerV2

from tensorflow_ipu._types import DTypeLike, GradientsAndVariables, Optimizer

from ._als_settings import OfInner, ReadOnly, Setting, check_power_of_two
from .gradient_accumulation_optimizer import GradientAccumulationOptimizer
from .optimizer_v2_wrapper import _OptimizerV2Wrapper, inner_optimizer

__all__ = ["ALSDefaults", "ALSGradientAccumulationOptimizer", "ALSOptimizer"]

Reduction = gradient_accumulation.GradientAccumulationReductionMethod


class ALSDefaults:
    """How loss scaling is set up where the user does not say otherwise."""

    initial_loss_scaling_factor = 1
    update_frequency = 8
    increase_factor = 2
    max_loss_scaling_factor = 32768
    accumulate_statistics_over_update_period = True
    ratio_threshold = 10e-6
    captured_grads_only = False
    lpf_alpha = 0.0
    histogram_bin_edge = 2**13


def _check_frequency(_: Any, name: str, value: Any) -> None:
    if value <= 0:
        raise ValueError(f"{name} must be nonzero and positive, not {value}.")


def _check_ratio(_: Any, name: str, value: Any) -> None:
    if not 0.0 < value < 1.0:
        raise ValueError(
            f"{name} must be greater than zero and less than one, not {value}."
        )


def _check_initial(optimizer: Any, name: str, value: Any) -> None:
    check_power_of_two(optimizer, name, value)
    largest = optimizer.max_loss_scaling_factor
    for what, factor in ((name, 1), (f"{name} x increase_factor", None)):
        if value * (factor or optimizer.increase_factor) >= largest:
            raise ValueError(
                f"{what} must be less than max_loss_scaling_factor ({largest})."
            )


class ALSOptimizer(_OptimizerV2Wrapper):
    """Scales the loss of the optimiser inside, by a factor that it looks for itself.

    With `captured_grads_only` only gradients captured by layers are counted. A
    `lpf_alpha` above 0 lets new counts in to the share of 1 - `lpf_alpha`. Gradients
    from `histogram_bin_edge` on count as overflowed; more than `ratio_threshold` of
    them make the factor smaller.
    """

    update_frequency = Setting(tf.int32, _check_frequency)
    increase_factor = Setting(tf.float32, check_power_of_two)
    max_loss_scaling_factor = Setting(tf.float32, check_power_of_two)
    ratio_threshold = Setting(tf.float32, _check_ratio)
    initial_loss_scaling_factor = Setting(tf.float32, _check_initial)
    accumulate_statistics_over_update_period = Setting(tf.bool)
    captured_grads_only = Setting(tf.bool, resets=True)
    lpf_alpha = Setting(tf.float32, resets=True)
    histogram_bin_edge = Setting(tf.float32, resets=True)

    def __init__(
        self,
        opt: Optimizer,
        initial_loss_scaling_factor: int = ALSDefaults.initial_loss_scaling_factor,
        update_frequency: int = ALSDefaults.update_frequency,
        increase_factor: int = ALSDefaults.increase_factor,
        max_loss_scaling_factor: int = ALSDefaults.max_loss_scaling_factor,
        accumulate_statistics_over_update_period: bool = (
            ALSDefaults.accumulate_statistics_over_update_period
        ),
        ratio_threshold: float = ALSDefaults.ratio_threshold,
        captured_grads_only: bool = ALSDefaults.captured_grads_only,
        lpf_alpha: float = ALSDefaults.lpf_alpha,
        histogram_bin_edge: float = ALSDefaults.histogram_bin_edge,
        name: str = "ALSOptimizer",
    ) -> None:
        super().__init__(opt, name)
        self._settings: dict[str, tuple[Any, Any]] = {}
        self.update_frequency = update_frequency
        self.increase_factor = increase_factor
        self.max_loss_scaling_factor = max_loss_scaling_factor
        self.ratio_threshold = ratio_threshold
        self.initial_loss_scaling_factor = initial_loss_scaling_factor
        self.accumulate_statistics_over_update_period = (
            accumulate_statistics_over_update_period
        )
        self.captured_grads_only = captured_grads_only
        self.lpf_alpha = lpf_alpha
        self.histogram_bin_edge = histogram_bin_edge
        self._hist = self._new_state("gradient_histogram", [0.0, 0.0], tf.float32)
        self._n = self._new_state("lsf_update_counter", 0, tf.int32)
        first = initial_loss_scaling_factor
        self._lsf = self._new_state("loss_scaling_factor", first, tf.float32)
        self._prev_lsf = self._new_state("prev_loss_scaling_factor", first, tf.float32)

    def _new_state(self, name: str, value: Any, dtype: DTypeLike) -> tf.Variable:
        shape = tf.TensorShape([2] if isinstance(value, list) else [])
        initializer = tf.constant_initializer(value)
        return OptimizerV2.add_weight(
            self, name, shape, dtype=dtype, initializer=initializer, trainable=False
        )

    def _setting(self, name: str) -> Any:
        return self._settings[name][1]

    @property
    def supports_captured_grads(self) -> bool:
        """Whether `apply_gradients` makes use of captured gradients."""
        return True

    @ReadOnly
    def histogram(self) -> tf.Tensor:
        """How many gradients were within the range, and how many not."""
        return tf.convert_to_tensor(self._hist)

    @ReadOnly
    def normalized_histogram(self) -> tf.Tensor:
        """The shares of gradients within the range and outside."""
        return statistics_ops.histogram_normalize(self.histogram)

    @ReadOnly
    def loss_scaling_factor(self) -> tf.Tensor:
        """The factor of the loss."""
        return tf.convert_to_tensor(self._lsf)

    @ReadOnly
    def previous_loss_scaling_factor(self) -> tf.Tensor:
        """The factor before it was last changed."""
        return tf.convert_to_tensor(self._prev_lsf)

    @ReadOnly
    def update_counter(self) -> tf.Tensor:
        """Steps since the factor was last looked at."""
        return tf.convert_to_tensor(self._n)

    @ReadOnly
    def decrease_factor(self) -> float:
        """By what the factor is multiplied to make it smaller."""
        return 1.0 / self.increase_factor

    def get_name(self) -> str:
        """The name of the optimiser."""
        return self._name

    def get_scaled_loss(self, loss: tf.Tensor) -> tf.Tensor:
        """The loss multiplied by the factor."""
        return tf.cast(self._lsf, loss.dtype) * loss

    def get_gradients(
        self, loss: tf.Tensor | Callable[[], tf.Tensor], params: Any
    ) -> list[Any]:
        """Gradients of the scaled loss."""
        return self._opt.get_gradients(self.get_scaled_loss(loss), params)

    def _compute_gradients(
        self,
        loss: tf.Tensor | Callable[[], tf.Tensor],
        var_list: Sequence[tf.Variable],
        grad_loss: Any = None,
        tape: Any = None,
    ) -> Any:
        # As a function, so that the product is recorded on the tape.
        def scaled_loss() -> tf.Tensor:
            return self.get_scaled_loss(loss() if callable(loss) else loss)

        return super()._compute_gradients(scaled_loss, var_list, grad_loss, tape)

    def apply_gradients(
        self,
        grads_and_vars: GradientsAndVariables,
        captured_grads: dict[str, Any] | None = None,
        global_step: tf.Variable | None = None,
        name: str | None = None,
        **options: Any,
    ) -> tf.Operation | None:
        """Count and unscale gradients of the scaled loss, update, adapt the factor."""
        pairs = self._prepare_for_accumulation(list(grads_and_vars), captured_grads)
        return self._apply_accumulated(pairs, name=name, **options)

    def _accumulated_variables(self, variables: Any) -> list[Any]:
        """What is accumulated over steps: gradients of these variables, and counts."""
        return [*variables, self._hist]

    def _prepare_for_accumulation(
        self, grads_and_vars: list[tuple[Any, Any]], captured: dict[str, Any] | None
    ) -> list[tuple[Any, Any]]:
        """The gradients of one step, unscaled, and how many are out of range."""
        lsf = tf.identity(self._lsf)
        unscaled = [
            (None if grad is None else _divided(grad, lsf), variable)
            for grad, variable in grads_and_vars
        ]
        return [*unscaled, self._counted(grads_and_vars, captured)]

    def _apply_accumulated(
        self, pairs: list[tuple[Any, Any]], **options: Any
    ) -> tf.Operation | None:
        """Update with gradients of one step or of several, then adapt the factor."""
        *gradients, (counts, _) = pairs
        applied = self._opt.apply_gradients(gradients, **options)
        self._adapt(counts)
        return applied

    def _counted(
        self, grads_and_vars: list[tuple[Any, Any]], captured: dict[str, Any] | None
    ) -> tuple[Any, Any]:
        own = self._counts([grad for grad, _ in grads_and_vars])
        own = tf.where(self._setting("captured_grads_only"), tf.zeros([2]), own)
        return own + self._counts(tf.nest.flatten(captured or {})), self._hist

    def _counts(self, gradients: list[Any]) -> tf.Tensor:
        """How many gradients in half precision are below the edge, and how many not."""
        edge = self._setting("histogram_bin_edge")
        halves = [g for g in gradients if g is not None and g.dtype == tf.float16]
        if not halves:
            return tf.zeros([2])
        below = tf.add_n(
            [
                tf.math.count_nonzero(tf.abs(tf.cast(g, tf.float32)) < edge, None)
                for g in map(tf.convert_to_tensor, halves)
            ]
        )
        total = sum(g.shape.num_elements() for g in halves)
        return tf.cast(tf.stack([below, total - below]), tf.float32)

    def _adapt(self, counts: Any) -> None:
        """Take in the counts of a step; at the end of a period, judge them."""
        # All replicas must come to the same factor.
        counts = cross_replica_ops.cross_replica_sum(counts)
        frequency = self._setting("update_frequency")
        due = (self._n > 0) & tf.equal(self._n % frequency, 0)
        due = due | tf.equal(frequency, 1)
        collect = due | self._setting("accumulate_statistics_over_update_period")
        new = (1.0 - self._setting("lpf_alpha")) * counts
        hist = self._hist + tf.where(collect, new, tf.zeros([2]))
        lsf = tf.where(due, self._judged(hist), tf.identity(self._lsf))
        changed = tf.not_equal(lsf, self._lsf)
        previous = tf.where(changed, self._lsf, self._prev_lsf)
        self._prev_lsf.assign(previous)
        self._lsf.assign(lsf)
        self._hist.assign(tf.where(due, tf.zeros([2]), hist))
        self._n.assign(tf.where(due, 0, self._n + 1))

    def _judged(self, hist: Any) -> tf.Tensor:
        """The factor for the next period; the old one if it would leave its range."""
        increase = self._setting("increase_factor")
        overflows = hist[1] / tf.reduce_sum(hist) > self._setting("ratio_threshold")
        lsf = tf.where(overflows, self._lsf / increase, self._lsf * increase)
        fits = tf.math.is_finite(lsf) & (lsf >= 1.0)
        fits = fits & (lsf < self._setting("max_loss_scaling_factor"))
        return tf.where(fits, lsf, tf.identity(self._lsf))

    def reset(self) -> None:
        """Forget the counts and go back to the first factor."""
        self._hist.assign(tf.zeros([2]))
        self._n.assign(0)
        self._lsf.assign(tf.cast(self.initial_loss_scaling_factor, tf.float32))

    def get_config(self) -> dict[str, Any]:
        """The configuration: settings and the optimiser inside."""
        return {
            **super().get_config(),
            **{n: v for n, (v, _) in self._settings.items()},
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Mapping[str, object] | None = None
    ) -> ALSOptimizer:
        """The optimiser that a configuration describes."""
        inner, rest = inner_optimizer(config)
        return cls(inner, **rest)


class ALSGradientAccumulationOptimizer(GradientAccumulationOptimizer):
    """Accumulates gradients of an `ALSOptimizer`, whose factor adapts each update."""

    histogram = OfInner()
    normalized_histogram = OfInner()
    loss_scaling_factor = OfInner()
    previous_loss_scaling_factor = OfInner()
    update_counter = OfInner()
    update_frequency = OfInner()
    increase_factor = OfInner()
    decrease_factor = OfInner()
    initial_loss_scaling_factor = OfInner()
    max_loss_scaling_factor = OfInner()
    accumulate_statistics_over_update_period = OfInner()
    ratio_threshold = OfInner()
    supports_captured_grads = OfInner()
    captured_grads_only = OfInner()
    lpf_alpha = OfInner()
    histogram_bin_edge = OfInner()

    def __init__(
        self,
        als_optimizer: ALSOptimizer,
        num_mini_batches: int,
        offload_weight_update_variables: bool | str | None = None,
        replicated_optimizer_state_sharding: bool | str | None = False,
        dtype: DTypeLike | None = None,
        reduction_method: Any = Reduction.SUM,
        name: str = "ALSGradientAccumulationOptimizer",
    ) -> None:
        if not isinstance(als_optimizer, ALSOptimizer):
            raise ValueError(
                "ALSGradientAccumulationOptimizer can only be used with instances of "
                f"ALSOptimizer, not {type(als_optimizer).__name__}."
            )
        super().__init__(
            als_optimizer,
            num_mini_batches,
            offload_weight_update_variables,
            replicated_optimizer_state_sharding,
            dtype,
            reduction_method,
            name,
        )

    @property
    def als_optimizer(self) -> ALSOptimizer:
        """The optimiser that scales the loss."""
        return self._opt

    def get_gradients(
        self, loss: tf.Tensor | Callable[[], tf.Tensor], params: Any
    ) -> list[Any]:
        """Gradients of the scaled loss."""
        return self._opt.get_gradients(loss, params)

    def apply_gradients(
        self,
        grads_and_vars: GradientsAndVariables,
        captured_grads: dict[str, Any] | None = None,
        name: str | None = None,
        experimental_aggregate_gradients: bool = True,
    ) -> tf.Operation | None:
        """Count, unscale and accumulate; apply in every n-th iteration."""
        pairs = self._opt._prepare_for_accumulation(
            list(grads_and_vars), captured_grads
        )
        return super().apply_gradients(pairs, name, experimental_aggregate_gradients)

    def _apply_totals(self, totals: Any, **options: Any) -> tf.Operation | None:
        return self._opt._apply_accumulated(totals, **options)


def _divided(gradient: tf.Tensor, factor: Any) -> tf.Tensor | tf.IndexedSlices | None:
    if isinstance(gradient, tf.IndexedSlices):
        values = _divided(gradient.values, factor)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return saturated(gradient) / tf.cast(factor, gradient.dtype)


def saturated(gradient: tf.Tensor) -> tf.Tensor:
    """Half precision as on the device, where what overflows is the largest number.

    An infinity would stay one, whatever it is divided by.
    """
    if gradient.dtype != tf.float16:
        return gradient
    return tf.clip_by_value(gradient, tf.float16.min, tf.float16.max)
