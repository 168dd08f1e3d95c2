"""What the `set_..._options` methods of an extended model set.

In: the arguments of those methods. Out: one frozen :class:`Options` value, checked, and
its form in a saved model's configuration (arguments that are merely handed on to the
pipeline or the accumulating optimiser have none: they need not be serialisable).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ipu import gradient_accumulation
from tensorflow.python.ipu.ops import op_util

from tensorflow_ipu._translate import (
    TRANSLATED,
    WITHOUT_EFFECT,
    note_if_set,
    note_without_effect,
    refuse_listed,
)

__all__ = ["OptionSetters", "Options", "ReplicatedMetricReductionMethod"]

# Whose keywords `set_gradient_accumulation_options` takes.
_OPTIMIZER = "GradientAccumulationOptimizerV2"

Reduction = gradient_accumulation.GradientAccumulationReductionMethod


class ReplicatedMetricReductionMethod(enum.Enum):
    """What is returned for a metric of which every replica has its own value.

    * NONE: the value of the last replica.
    * LIST: the values of all replicas; the progress bar shows their mean.
    * SUM: the sum over the replicas.
    * MEAN: the mean over the replicas.
    """

    NONE = 1
    LIST = 2
    SUM = 3
    MEAN = 4

    @classmethod
    def parse(
        cls, value: ReplicatedMetricReductionMethod | str
    ) -> ReplicatedMetricReductionMethod:
        """The member that a name, in any case, or a member stands for."""
        if isinstance(value, cls):
            return value
        if isinstance(value, str) and value.upper() in cls.__members__:
            return cls[value.upper()]
        raise ValueError(
            f"Cannot parse {value} as a ReplicatedMetricReductionMethod. Choose one "
            f"of {', '.join(cls.__members__)}."
        )


@dataclass(frozen=True)
class Options:
    """How a model is trained, evaluated and run on the device."""

    gradient_accumulation_steps_per_replica: int | None = None
    gradient_accumulation_reduction_method: Reduction = Reduction.SUM
    gradient_accumulation_optimizer_kwargs: Mapping[str, Any] = field(
        default_factory=dict
    )
    use_v2_gradient_accumulation_optimizer: bool = False
    pipelining_gradient_accumulation_steps_per_replica: int | None = None
    pipelining_device_mapping: list[int] | None = None
    pipelining_accumulate_outfeed: bool | None = None
    pipelining_kwargs: Mapping[str, Any] = field(default_factory=dict)
    replicated_metric_reduction_method: ReplicatedMetricReductionMethod = (
        ReplicatedMetricReductionMethod.NONE
    )
    asynchronous_callbacks: bool = False
    infeed_kwargs: Mapping[str, Any] = field(default_factory=dict)
    outfeed_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def with_accumulation(
        self,
        steps: int | None,
        method: Reduction | str,
        use_v2: bool,
        kwargs: Mapping[str, Any],
    ) -> Options:
        """Options changed by `set_gradient_accumulation_options`."""
        _check_steps(steps)
        _check_accumulation_kwargs(kwargs)
        note_if_set(
            "set_gradient_accumulation_options",
            use_v2_gradient_accumulation_optimizer=(use_v2, False),
        )
        return replace(
            self,
            gradient_accumulation_steps_per_replica=_or(
                steps, self.gradient_accumulation_steps_per_replica
            ),
            gradient_accumulation_reduction_method=Reduction.parse(method),
            gradient_accumulation_optimizer_kwargs=dict(kwargs),
            use_v2_gradient_accumulation_optimizer=use_v2,
        )

    def with_pipelining(
        self,
        steps: int | None,
        device_mapping: list[int] | None,
        accumulate_outfeed: bool | None,
        method: Reduction | str,
        kwargs: Mapping[str, Any],
    ) -> Options:
        """Options changed by `set_pipelining_options`."""
        _check_steps(steps)
        _check_device_mapping(device_mapping)
        refuse_listed("set_pipelining_options", kwargs, "pipelining_kwargs")
        return replace(
            self,
            pipelining_gradient_accumulation_steps_per_replica=_or(
                steps, self.pipelining_gradient_accumulation_steps_per_replica
            ),
            pipelining_device_mapping=_or(
                device_mapping, self.pipelining_device_mapping
            ),
            pipelining_accumulate_outfeed=_or(
                accumulate_outfeed, self.pipelining_accumulate_outfeed
            ),
            gradient_accumulation_reduction_method=Reduction.parse(method),
            pipelining_kwargs=dict(kwargs),
        )

    def with_callbacks(self, asynchronous: bool) -> Options:
        """Options changed by `set_asynchronous_callbacks`."""
        return replace(self, asynchronous_callbacks=asynchronous)

    def with_replication(
        self, method: ReplicatedMetricReductionMethod | str
    ) -> Options:
        """Options changed by `set_replication_options`."""
        return replace(
            self,
            replicated_metric_reduction_method=ReplicatedMetricReductionMethod.parse(
                method
            ),
        )

    def with_infeed(self, kwargs: Mapping[str, Any]) -> Options:
        """Options changed by `set_infeed_queue_options`."""
        refuse_listed("set_infeed_queue_options", kwargs, "kwargs")
        return replace(self, infeed_kwargs=dict(kwargs))

    def with_outfeed(self, kwargs: Mapping[str, Any]) -> Options:
        """Options changed by `set_outfeed_queue_options`."""
        refuse_listed("set_outfeed_queue_options", kwargs, "kwargs")
        return replace(self, outfeed_kwargs=dict(kwargs))

    def to_config(self) -> dict[str, Any]:
        """The options that a saved model keeps, as plain values."""
        return {name: _plain(getattr(self, name)) for name in _SAVED}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Options:
        """The options kept in a saved model's configuration."""
        default = cls()
        return replace(
            default,
            **{
                name: _revived(config[name], getattr(default, name))
                for name in _SAVED
                if name in config
            },
        )


class _Option:
    """Reads one of the options from a model."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, model: tf.keras.Model, owner: type | None = None) -> Any:
        return self if model is None else getattr(model._ipu_options, self._name)


class OptionSetters:
    """The `set_..._options` methods of a model, and its options under their old names.

    A model with other options is another program: what was traced is forgotten.
    """

    # Options are a frozen value, so all models may begin with the same one.
    _ipu_options = Options()

    _asynchronous_callbacks = _Option("asynchronous_callbacks")
    _gradient_accumulation_optimizer_kwargs = _Option(
        "gradient_accumulation_optimizer_kwargs"
    )
    _gradient_accumulation_reduction_method = _Option(
        "gradient_accumulation_reduction_method"
    )
    _gradient_accumulation_steps_per_replica = _Option(
        "gradient_accumulation_steps_per_replica"
    )
    _infeed_kwargs = _Option("infeed_kwargs")
    _outfeed_kwargs = _Option("outfeed_kwargs")
    _pipelining_accumulate_outfeed = _Option("pipelining_accumulate_outfeed")
    _pipelining_device_mapping = _Option("pipelining_device_mapping")
    _pipelining_gradient_accumulation_steps_per_replica = _Option(
        "pipelining_gradient_accumulation_steps_per_replica"
    )
    _pipelining_kwargs = _Option("pipelining_kwargs")
    _replicated_metric_reduction_method = _Option("replicated_metric_reduction_method")

    def set_asynchronous_callbacks(self, asynchronous: bool = False) -> None:
        """Choose when callbacks hear of batches.

        With `asynchronous=True` they are called after every step and replica, from a
        thread of their own, while the device goes on; otherwise once per execution of
        `steps_per_execution` steps. A pipeline that accumulates its outfeed has no
        results of single steps and ignores this in `fit` and `evaluate`.
        """
        self._set_options(self._ipu_options.with_callbacks(asynchronous))

    def set_replication_options(
        self,
        replicated_metric_reduction_method: ReplicatedMetricReductionMethod
        | str = "NONE",
    ) -> None:
        """Choose what is returned for a metric that every replica has its own of."""
        self._set_options(
            self._ipu_options.with_replication(replicated_metric_reduction_method)
        )

    def set_gradient_accumulation_options(
        self,
        gradient_accumulation_steps_per_replica: int | None = None,
        gradient_accumulation_reduction_method: Reduction | str = "sum",
        use_v2_gradient_accumulation_optimizer: bool = False,
        **gradient_accumulation_optimizer_kwargs: Any,
    ) -> None:
        """Make one weight update out of several steps, in a model without pipeline.

        Each replica sums up the gradients of so many steps (or takes their mean, or
        running mean); the sums of all replicas are added and applied once. The number
        must divide `steps_per_execution`; it has no effect on `evaluate` and `predict`.
        Further keywords are those of the accumulating optimiser (`dtype`,
        `offload_weight_update_variables`, ...); they are not saved with the model.
        """
        self._set_options(
            self._ipu_options.with_accumulation(
                gradient_accumulation_steps_per_replica,
                gradient_accumulation_reduction_method,
                use_v2_gradient_accumulation_optimizer,
                gradient_accumulation_optimizer_kwargs,
            )
        )

    def set_pipelining_options(
        self,
        gradient_accumulation_steps_per_replica: int | None = None,
        device_mapping: list[int] | None = None,
        accumulate_outfeed: bool | None = None,
        gradient_accumulation_reduction_method: Reduction | str = "sum",
        **pipelining_kwargs: Any,
    ) -> None:
        """Say how a pipelined model runs.

        Training needs the number of steps whose gradients make one update; it must
        divide `steps_per_execution`. `device_mapping` has the IPU of each stage;
        stages that share weights must share the IPU. With `accumulate_outfeed` metrics
        are summed on the device and handed out once per update. Further keywords are
        those of `pipelining_ops.pipeline`; they are not saved with the model.
        """
        self._set_options(
            self._ipu_options.with_pipelining(
                gradient_accumulation_steps_per_replica,
                device_mapping,
                accumulate_outfeed,
                gradient_accumulation_reduction_method,
                pipelining_kwargs,
            )
        )

    def set_infeed_queue_options(self, **kwargs: Any) -> None:
        """Options of the `IPUInfeedQueue` that feeds the model its batches."""
        self._set_options(self._ipu_options.with_infeed(kwargs))

    def set_outfeed_queue_options(self, **kwargs: Any) -> None:
        """Options of the `IPUOutfeedQueue` that brings back the model's results."""
        self._set_options(self._ipu_options.with_outfeed(kwargs))

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def _set_options(self, options: Options) -> None:
        self._ipu_options = options
        self._reset_ipu_extension()


_HANDED_ON = {
    "gradient_accumulation_optimizer_kwargs",
    "pipelining_kwargs",
    "use_v2_gradient_accumulation_optimizer",
}
_SAVED = [each.name for each in fields(Options) if each.name not in _HANDED_ON]


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value


def _revived(value: Any, default: Any) -> Any:
    return type(default)(value) if isinstance(default, enum.Enum) else value


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _check_steps(steps: Any) -> None:
    if steps is not None and (not isinstance(steps, int) or steps < 1):
        raise ValueError(
            "Expected `gradient_accumulation_steps_per_replica` to be a positive "
            f"integer, but got {steps} instead."
        )


def _check_device_mapping(mapping: Any) -> None:
    if mapping is None:
        return
    if not isinstance(mapping, list) or not all(isinstance(x, int) for x in mapping):
        raise ValueError(
            "Expected `device_mapping` to be a list of integers, one per pipeline "
            f"stage, but got {mapping}."
        )


def _check_accumulation_kwargs(kwargs: Mapping[str, Any]) -> None:
    """Refuse keywords that the accumulating optimiser does not take."""
    where = "gradient_accumulation_optimizer_kwargs"
    refuse_listed("set_gradient_accumulation_options", kwargs, where)
    for key in kwargs:
        if f"{_OPTIMIZER}.{key}" not in {**TRANSLATED, **WITHOUT_EFFECT}:
            raise TypeError(f"{_OPTIMIZER} has no argument {key!r}.")
        note_without_effect(f"{_OPTIMIZER}.{key}")
    op_util.check_offload(
        kwargs.get("offload_weight_update_variables"),
        kwargs.get("replicated_optimizer_state_sharding"),
    )
