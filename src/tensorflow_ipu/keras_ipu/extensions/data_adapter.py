"""How the data given to `fit`, `evaluate` and `predict` is cut into steps.

In: what the user passed (arrays, tensors, a dataset). Out: a dataset of batches with
static shapes, and the steps of an epoch: one step is one batch on one replica, so an
epoch has (batches // replicas) steps, of which `steps_per_execution` run at a time.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow.compat.v2 as tf
from tensorflow.python.data.ops import prefetch_op
from tensorflow.python.platform import tf_logging as logging
from tf_keras.src.engine import base_layer_utils, data_adapter

__all__ = ["IPUDataHandler"]


class IPUDataHandler(data_adapter.DataHandler):
    """The epochs and steps of one call of `fit`, `evaluate` or `predict`.

    With `replication_factor=None` the number of steps is open until
    :meth:`set_replication_factor` is called: a model may have to be built first.
    """

    def __init__(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        batch_size: int | None = None,
        steps_per_epoch: int | None = None,
        initial_epoch: int = 0,
        epochs: int = 1,
        shuffle: bool = False,
        class_weight: Mapping[int, float] | None = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        model: tf.keras.Model | None = None,
        steps_per_execution: Any = None,
        replication_factor: int | None = 1,
    ) -> None:
        _check_no_generator(x, y)
        _advise_tensors(x, y)
        self._replication_factor: int | None = None
        super().__init__(
            x,
            y,
            sample_weight,
            batch_size,
            steps_per_epoch,
            initial_epoch,
            epochs,
            shuffle,
            class_weight,
            max_queue_size,
            workers,
            use_multiprocessing,
            model,
            steps_per_execution,
        )
        self._steps_per_execution_value = self._steps_per_execution.numpy().item()
        if replication_factor is not None:
            self.set_replication_factor(replication_factor)

    @property
    def steps_per_execution_value(self) -> int:
        """Steps that run on the device at a time, at most those of an epoch."""
        return self._steps_per_execution.numpy().item()

    @property
    def element_spec(self) -> Any:
        """Shapes and types of one batch."""
        return self._dataset.element_spec

    @property
    def batch_size(self) -> int | None:
        """Samples in one batch, where that is known."""
        size = self._adapter.batch_size()
        specs = tf.nest.flatten(self.element_spec)
        if size is None and specs and specs[0].shape:
            size = specs[0].shape[0]
        return size

    @property
    def is_divided(self) -> bool:
        """Whether the number of replicas, and so of steps, is known."""
        return self._replication_factor is not None

    def set_replication_factor(self, value: int) -> None:
        """Say how many replicas share the batches; checks that they come out even."""
        self._replication_factor = value
        self._inferred_steps = self._infer_steps(self._steps_per_epoch, self._dataset)
        self._check_enough_data()
        _check_static_shapes(self._dataset)
        self._validate_data_handler()

    def enumerate_epochs_with_reuse(
        self, manager: Any, mode: Any, infeed_kwargs: Any
    ) -> Iterator[tuple[int, Any]]:
        """Yield every epoch with the infeed its steps take their batches from."""
        self._require_replication_factor()
        with self._truncate_execution_to_epoch():
            infeed = None
            for epoch in range(self._initial_epoch, self._epochs):
                if infeed is None or self._adapter.should_recreate_iterator():
                    infeed = manager.get_infeed(mode, self._dataset, infeed_kwargs)
                yield epoch, infeed
                self._adapter.on_epoch_end()

    def _configure_dataset_and_inferred_steps(
        self,
        strategy: Any,
        x: Any,
        steps_per_epoch: int | None,
        class_weight: Mapping[int, float],
        distribute: bool,
    ) -> None:
        """Called by Keras once the data are wrapped, before anything is counted."""
        if self._adapter.has_partial_batch():
            raise ValueError(
                "The provided set of data has a partial batch, which the device cannot "
                "take. Choose a `batch_size` (now "
                f"{self._adapter.batch_size()}) that divides the number of samples, or "
                "pad the data."
            )
        self._dataset = _prepared(self._adapter.get_dataset(), class_weight)
        self._inferred_steps = None

    def _infer_steps(self, steps: int | None, dataset: tf.data.Dataset) -> int:
        count = super()._infer_steps(steps, dataset)
        if count is None:
            raise ValueError(
                "Could not infer the size of the data set: say how many steps there "
                "are, with `steps_per_epoch` or `steps`."
            )
        replicas = self._require_replication_factor()
        left = count % replicas
        if left and dataset.cardinality() >= 0:
            logging.warn(
                f"{count} batches do not come out even on {replicas} replicas: the "
                f"last {left} will be dropped."
            )
        return count // replicas

    def _require_replication_factor(self) -> int:
        if self._replication_factor is None:
            raise RuntimeError(
                "The steps of an epoch are not known before the replication factor is: "
                "call `set_replication_factor` first."
            )
        return self._replication_factor

    def _check_enough_data(self) -> None:
        size = int(self._dataset.cardinality())
        if size == tf.data.UNKNOWN_CARDINALITY:
            logging.info(
                "The size of the data is not known: the run fails if they end early."
            )
        if size < 0:
            return
        needed: Any = self._inferred_steps
        if not self._adapter.should_recreate_iterator():
            needed *= self._epochs - self._initial_epoch
        if needed > size:
            raise ValueError(
                "Your input does not have enough data. Make sure that your dataset or "
                f"generator can generate at least {needed} batches (currently it can "
                f"only generate {size} batches), for instance with `repeat()`."
            )

    def _validate_data_handler(self) -> None:
        super()._validate_data_handler()
        steps = self._inferred_steps
        if steps == 0:
            raise ValueError(self._fewer_batches_than_replicas())
        at_a_time = self._steps_per_execution_value
        if at_a_time > steps:
            logging.warn(
                f"The data set{self._to_whom()} has {steps} batches, fewer than the "
                f"{at_a_time} of `steps_per_execution`: {steps} are run at a time."
            )
        elif steps % at_a_time:
            raise ValueError(
                f"`steps_per_execution` ({at_a_time}) must be a divisor of the number "
                f"of batches ({steps}) in the dataset provided{self._to_whom()}."
            )

    def _to_whom(self) -> str:
        return " to this replica" if self._require_replication_factor() > 1 else ""

    def _fewer_batches_than_replicas(self) -> str:
        replicas = self._require_replication_factor()
        steps = super()._infer_steps(None, self._dataset)
        each = math.ceil(steps / replicas)
        return (
            f"The provided dataset contains {len(self._dataset)} items, but all "
            f"{replicas} replicas are requested to run {each} steps each. Make sure "
            f"the dataset contains at least {each * replicas} items."
        )


class _Advice:
    """Which advice was given already: once in the life of a program is enough."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def is_second(self, name: str) -> bool:
        """Whether `name` is met for the second time."""
        self._seen[name] = self._seen.get(name, 0) + 1
        return self._seen[name] == 2


_ADVICE = _Advice()


def _advise_tensors(x: Any, y: Any) -> None:
    """Arrays given again and again are better turned into tensors once."""
    for name, value in (("x", x), ("y", y)):
        if isinstance(value, np.ndarray) and _ADVICE.is_second(name):
            logging.warn(
                f"{name} is a NumPy array, which every call of `fit`, `evaluate` and "
                "`predict` turns into a tensor anew. Give a `tf.Tensor` to save that."
            )


def _check_no_generator(x: Any, y: Any) -> None:
    # Before Keras wraps the data: it would take the first batch and run the model.
    adapter = data_adapter.select_data_adapter(x, y)
    if not issubclass(adapter, data_adapter.GeneratorDataAdapter):
        return
    hint = "use `tf.data.Dataset.from_generator()` to specify the shape of your data."
    if isinstance(x, Iterator) and not isinstance(x, Generator):
        hint = (
            "wrap your iterator inside a generator like so:\n\n"
            "def generator:\n"
            "    while True:\n"
            "        yield next(iterator)\n\n"
            f"and {hint}"
        )
    raise ValueError(
        f"Data of type `{type(x).__name__}` do not tell their shape, which a program "
        f"for the IPU must know before it runs. Please {hint}"
    )


def _prepared(
    dataset: tf.data.Dataset, class_weight: Mapping[int, float]
) -> tf.data.Dataset:
    """The dataset with weights of classes and without double precision."""
    prepared = dataset
    if class_weight:
        weigh = data_adapter._make_class_weight_map_fn(class_weight)
        prepared = prepared.map(weigh)
    if base_layer_utils.v2_dtype_behavior_enabled():
        prepared = _in_single_precision(prepared)
    is_prefetched = isinstance(dataset, prefetch_op._PrefetchDataset)
    if prepared is not dataset and is_prefetched:
        return prepared.prefetch(int(dataset._buffer_size))
    return prepared


def _in_single_precision(dataset: tf.data.Dataset) -> tf.data.Dataset:
    spec = dataset.element_spec
    if all(each.dtype != tf.float64 for each in tf.nest.flatten(spec)):
        return dataset

    def cast(tensor: tf.Tensor) -> Any:
        return tf.cast(tensor, tf.float32) if tensor.dtype == tf.float64 else tensor

    def cast_all(*element: Any) -> Any:
        mapped = tf.nest.map_structure(cast, element)
        return mapped if isinstance(spec, tuple) else mapped[0]

    return dataset.map(cast_all)


def _check_static_shapes(dataset: tf.data.Dataset) -> None:
    for spec in tf.nest.flatten(dataset.element_spec):
        if not spec.shape.is_fully_defined():
            raise ValueError(
                f"The data have the shape {spec.shape}, which is not fully defined. A "
                "program for the IPU needs all dimensions: with `batch()`, set "
                "`drop_remainder=True`."
            )
