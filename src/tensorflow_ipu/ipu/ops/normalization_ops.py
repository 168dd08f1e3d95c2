"""Group, layer and instance normalisation, with their variables.

All three are one computation: the channels are dealt into groups, every example's group
is brought to mean 0 and variance 1, and each channel is scaled and shifted.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v2 as tf

from tensorflow_ipu._former_arguments import IGNORED, with_former

from .._arithmetic.norms import normalize_groups, per_channel
from ._tensors import Tensor, sizes

__all__ = ["group_norm", "instance_norm", "layer_norm"]

_LOG = logging.getLogger("tensorflow")
_SMALLEST_SAFE_EPSILON = 1.53e-5


@dataclass(frozen=True)
class _Variables:
    """Which variables a normalisation has and how they are made."""

    center: bool
    scale: bool
    initializers: dict[str, Any] | None
    collections: Any
    trainable: bool
    reuse: bool | None
    scope: Any

    def apply(self, normal: Tensor, axis: int) -> Tensor:
        """`normal` with every channel scaled by `gamma` and shifted by `beta`."""
        rank = normal.shape.rank
        beta = self._get("beta", normal, axis) if self.center else None
        gamma = self._get("gamma", normal, axis) if self.scale else None
        scaled = normal if gamma is None else normal * per_channel(gamma, rank, axis)
        return scaled if beta is None else scaled + per_channel(beta, rank, axis)

    def _get(self, name: str, normal: Tensor, axis: int) -> Tensor:
        v1 = tf.compat.v1
        usual = v1.zeros_initializer() if name == "beta" else v1.ones_initializer()
        collections = self.collections
        if isinstance(collections, dict):
            collections = collections.get(name)
        return v1.get_variable(
            name,
            shape=[sizes(normal)[axis]],
            dtype=normal.dtype.base_dtype,
            initializer=(self.initializers or {}).get(name, usual),
            collections=collections,
            trainable=self.trainable,
        )


@with_former(reduction_axes=IGNORED)
def group_norm(
    inputs: Tensor,
    groups: int = 2,
    channels_axis: int = -1,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1.53e-5,
    param_initializers: dict[str, Any] | None = None,
    reuse: bool | None = None,
    variables_collections: Sequence[str] | None = None,
    training: bool = True,
    trainable: bool = True,
    scope: str | tf.compat.v1.VariableScope | None = None,
    strided_channel_grouping: bool = True,
) -> Tensor:
    """`inputs` normalised within `groups` groups of channels.

    Channel c belongs to group c modulo `groups`; without `strided_channel_grouping`
    the groups are runs of neighbouring channels, as in most published models.
    `center` and `scale` ask for the variables `beta` and `gamma`, which are made in
    `scope` with `param_initializers`. `training` changes no value.
    """
    variables = _Variables(
        center,
        scale,
        param_initializers,
        variables_collections,
        trainable,
        reuse,
        scope,
    )
    return _norm(
        "group_norm",
        inputs,
        groups,
        channels_axis,
        epsilon,
        variables,
        strided_channel_grouping,
    )


@with_former(reduction_axes=IGNORED)
def layer_norm(
    inputs: Tensor,
    channels_axis: int = -1,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1.53e-5,
    param_initializers: dict[str, Any] | None = None,
    reuse: bool | None = None,
    variables_collections: Sequence[str] | None = None,
    training: bool = True,
    trainable: bool = True,
    scope: str | tf.compat.v1.VariableScope | None = None,
) -> Tensor:
    """`inputs` normalised over all that belongs to an example: one group."""
    variables = _Variables(
        center,
        scale,
        param_initializers,
        variables_collections,
        trainable,
        reuse,
        scope,
    )
    return _norm("layer_norm", inputs, 1, channels_axis, epsilon, variables)


@with_former(reduction_axes=IGNORED)
def instance_norm(
    inputs: Tensor,
    channels_axis: int = -1,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1.53e-5,
    param_initializers: dict[str, Any] | None = None,
    reuse: bool | None = None,
    variables_collections: Sequence[str] | None = None,
    training: bool = True,
    trainable: bool = True,
    scope: str | tf.compat.v1.VariableScope | None = None,
) -> Tensor:
    """`inputs` normalised in each channel by itself: as many groups as channels."""
    variables = _Variables(
        center,
        scale,
        param_initializers,
        variables_collections,
        trainable,
        reuse,
        scope,
    )
    return _norm("instance_norm", inputs, None, channels_axis, epsilon, variables)


_SCOPES = {
    "group_norm": "GroupNorm",
    "layer_norm": "LayerNorm",
    "instance_norm": "InstanceNorm",
}


def _norm(
    kind: str,
    inputs: Tensor,
    groups: int | None,
    channels_axis: int,
    epsilon: float,
    variables: _Variables,
    strided: bool = False,
) -> Tensor:
    """The normalisation called `kind`; `groups` is None for one group per channel."""
    inputs = tf.convert_to_tensor(inputs)
    axis = _channels_axis(inputs, channels_axis)
    if epsilon < _SMALLEST_SAFE_EPSILON:
        _LOG.warning(
            "The epsilon value of %s is too low: %g can lead to NaN values in half "
            "precision; use at least %g.",
            kind,
            epsilon,
            _SMALLEST_SAFE_EPSILON,
        )
    groups = sizes(inputs)[axis] if groups is None else groups
    _check_groups(sizes(inputs)[axis], groups)
    with tf.compat.v1.variable_scope(
        variables.scope, _SCOPES[kind], [inputs], reuse=variables.reuse
    ):
        normal = normalize_groups(inputs, axis, groups, epsilon, strided)
        return variables.apply(normal, axis)


def _channels_axis(inputs: Tensor, channels_axis: int) -> int:
    """The axis counted from the front, after checks."""
    rank = inputs.shape.rank
    if rank is None:
        raise ValueError(f"Inputs {inputs.name} has undefined rank.")
    if channels_axis > rank - 1:
        raise ValueError("Axis is out of bounds.")
    axis = channels_axis % rank
    if axis not in (1, rank - 1):
        raise ValueError(
            "Unsupported data format: the channels must be on axis 1 (NCHW) or on the "
            f"last axis (NHWC), not on axis {channels_axis} of {inputs.shape}."
        )
    if sizes(inputs)[axis] is None:
        raise ValueError(
            f"Inputs {inputs.name} has undefined channel dimension: {axis}."
        )
    return axis


def _check_groups(channels: int, groups: int) -> None:
    if groups > channels:
        raise ValueError(f"Invalid groups {groups} for {channels} channels.")
    if channels % groups:
        raise ValueError(
            f"{channels} channels is not commensurate with {groups} groups."
        )
