"""`tf.contrib.layers`: initialisers, a regulariser and the layer norm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as tf
from tensorflow.python.util import deprecation as _deprecation

from tensorflow_ipu._types import DTypeLike as _DTypeLike

from .. import absent as _absent

__all__ = [
    "l1_regularizer",
    "l2_regularizer",
    "layer_norm",
    "variance_scaling_initializer",
    "xavier_initializer",
    "xavier_initializer_conv2d",
]

# A normal distribution cut at two deviations has 1 / 1.3 of the variance.
_CUT = 1.3 * 0.87962566103423978**2

_Regularizer = Callable[[tf.Tensor], tf.Tensor]


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: _DTypeLike = tf.float32,
) -> Any:
    """Weights whose variance is `factor` over the number of inputs or outputs."""
    # The initialiser of today has the exact variance, this one said 1.3.
    with _deprecation.silence():  # TensorFlow would have the type elsewhere
        return tf.initializers.variance_scaling(
            scale=factor if uniform else factor * _CUT,
            mode=mode.lower(),
            distribution="uniform" if uniform else "truncated_normal",
            seed=seed,
            dtype=dtype,
        )


def xavier_initializer(
    uniform: bool = True, seed: int | None = None, dtype: _DTypeLike = tf.float32
) -> Any:
    """Weights that keep the variance of activations and of their gradients."""
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def l1_regularizer(scale: float, scope: str | None = None) -> _Regularizer:
    """The sum of absolute values, times `scale`."""

    def regularize(weights: tf.Tensor) -> tf.Tensor:
        with tf.name_scope(scope, "l1_regularizer"):
            return scale * tf.reduce_sum(tf.abs(weights))

    return regularize


def l2_regularizer(scale: float, scope: str | None = None) -> _Regularizer:
    """Half the sum of squares, times `scale`."""

    def regularize(weights: tf.Tensor) -> tf.Tensor:
        with tf.name_scope(scope, "l2_regularizer"):
            return scale * tf.nn.l2_loss(weights)

    return regularize


def layer_norm(
    inputs: tf.Tensor,
    center: bool = True,
    scale: bool = True,
    activation_fn: Callable[[tf.Tensor], tf.Tensor] | None = None,
    reuse: bool | None = None,
    variables_collections: Sequence[str] | None = None,
    outputs_collections: Sequence[str] | None = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> tf.Tensor:
    """Inputs with mean 0 and variance 1 over all axes from `begin_norm_axis` on.

    `beta` and `gamma` have the shape of the axes from `begin_params_axis` on.
    """
    rank = inputs.shape.ndims
    axes = list(range(begin_norm_axis % rank, rank))
    shape = inputs.shape[begin_params_axis % rank :]

    def parameter(name: str, initializer: Any) -> tf.Variable:
        return tf.get_variable(
            name,
            shape,
            inputs.dtype,
            initializer,
            trainable=trainable,
            collections=variables_collections,
        )

    with tf.variable_scope(scope, "LayerNorm", [inputs], reuse=reuse):
        beta = parameter("beta", tf.zeros_initializer()) if center else None
        gamma = parameter("gamma", tf.ones_initializer()) if scale else None
        mean, variance = tf.nn.moments(inputs, axes, keep_dims=True)
        epsilon = 1e-3 if inputs.dtype == tf.float16 else 1e-12
        outputs = tf.nn.batch_normalization(
            inputs, mean, variance, beta, gamma, epsilon
        )
        outputs = activation_fn(outputs) if activation_fn else outputs
    tf.add_to_collections(outputs_collections or [], outputs)
    return outputs


def __getattr__(name: str) -> Any:
    raise _absent(f"layers.{name}")
