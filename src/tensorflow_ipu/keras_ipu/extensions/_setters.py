"""The `set_...` methods of an extended model, and its options under their old names."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from ._options import Options, ReplicatedMetricReductionMethod

__all__ = ["OptionSetters"]


class _Option:
    """Reads one of the options from a model."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        return self if model is None else getattr(model._ipu_options, self._name)


class OptionSetters:
    """Sets options; what was traced with others is forgotten."""

    _ipu_options: Options

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
        gradient_accumulation_reduction_method: Any = "sum",
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
        gradient_accumulation_reduction_method: Any = "sum",
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
    def _set_options(self: Any, options: Options) -> None:
        self._ipu_options = options
        self._reset_ipu_extension()
