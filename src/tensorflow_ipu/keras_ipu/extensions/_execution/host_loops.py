"""`fit`, `evaluate` and `predict` of an extended model: what the host does.

In: the arguments that Keras users know. Out: what Keras returns. Data are cut into
steps, the model is built, and callbacks hear of executions, not of single steps, unless
they are asynchronous.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ipu.ipu_infeed_queue import IPUIterator
from tensorflow.python.platform import tf_logging as logging
from tf_keras.src import callbacks as callbacks_module
from tf_keras.src.engine import data_adapter, training, training_utils
from tf_keras.src.optimizers import optimizer as new_optimizer
from tf_keras.src.utils import tf_utils, version_utils

from tensorflow_ipu._types import Callbacks, Data, Tensors

from ..data_adapter import IPUDataHandler
from .epoch_runner import EpochRunner
from .step_programs import Mode

__all__ = ["ExtendedLoops"]


class ExtendedLoops:
    """The loops over epochs and executions, for models that run on the device.

    Mixed into a Keras model by :class:`.extensions_base.KerasExtensionBase`.
    """

    def fit(
        self,
        x: Data | None = None,
        y: Data | None = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int | str = "auto",
        callbacks: Callbacks | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: Mapping[int, float] | None = None,
        sample_weight: Data | None = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: Any = 1,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> callbacks_module.History:
        """Train the model on the device; the arguments are those of Keras."""
        _check_ready(self, "fit")
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = (
                data_adapter.train_validation_split(
                    (x, y, sample_weight), validation_split=validation_split
                )
            )
        feeding = _feeding(max_queue_size, workers, use_multiprocessing)
        validation = _Validation.of(
            self,
            validation_data,
            validation_freq,
            batch_size=validation_batch_size or batch_size,
            steps=validation_steps,
            **feeding,
        )
        trainable = training_utils.RespectCompiledTrainableState(self)
        with self.distribute_strategy.scope(), trainable:
            handler = IPUDataHandler(
                x,
                y,
                sample_weight,
                batch_size=batch_size,
                steps_per_epoch=steps_per_epoch,
                initial_epoch=initial_epoch,
                epochs=epochs,
                shuffle=shuffle,
                class_weight=class_weight,
                model=self,
                steps_per_execution=self._steps_per_execution,
                replication_factor=None,
                **feeding,
            )
            _build_for(self, handler)
            self._log_updates(handler)
            listed = _listed(self, callbacks, verbose, handler, epochs)
            return _fit(self, handler, listed, validation, initial_epoch)

    def evaluate(
        self,
        x: Data | None = None,
        y: Data | None = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        sample_weight: Data | None = None,
        steps: int | None = None,
        callbacks: Callbacks | None = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        return_dict: bool = False,
        **kwargs: Any,
    ) -> list[float] | float | dict[str, float]:
        """Loss and metrics of the model on the device; the arguments are Keras'."""
        _check_ready(self, "evaluate")
        handler = kwargs.pop("_popple_data_handler", None)
        if kwargs:
            raise TypeError(f"Invalid keyword arguments: {list(kwargs)}")
        with self.distribute_strategy.scope():
            if handler is None:
                handler = IPUDataHandler(
                    x,
                    y,
                    sample_weight,
                    batch_size=batch_size,
                    steps_per_epoch=steps,
                    max_queue_size=max_queue_size,
                    workers=workers,
                    use_multiprocessing=use_multiprocessing,
                    model=self,
                    steps_per_execution=self._steps_per_execution,
                    replication_factor=None,
                )
            _build_for(self, handler)
            listed = _listed(self, callbacks, verbose, handler)
            logs = _evaluate(self, handler, listed)
        if return_dict:
            return logs
        return training.flatten_metrics_in_order(logs, self.metrics_names)

    def predict(
        self,
        x: Data,
        batch_size: int | None = None,
        verbose: int | str = 0,
        steps: int | None = None,
        callbacks: Callbacks | None = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
    ) -> Tensors:
        """Predictions of the model on the device; the arguments are those of Keras."""
        _check_ready(self, "predict")
        with self.distribute_strategy.scope():
            handler = IPUDataHandler(
                x,
                batch_size=batch_size,
                steps_per_epoch=steps,
                max_queue_size=max_queue_size,
                workers=workers,
                use_multiprocessing=use_multiprocessing,
                model=self,
                steps_per_execution=self._steps_per_execution,
                replication_factor=None,
            )
            _build_for(self, handler)
            listed = _listed(self, callbacks, verbose, handler)
            outputs = _predict(self, handler, listed)
        return tf_utils.sync_to_numpy_or_python_type(outputs)

    def train_on_batch(
        self: Any, *args: Any, **kwargs: Any
    ) -> list[float] | float | dict[str, float]:
        """One step on one batch, handed over by the host; the arguments are Keras'."""
        with self.distribute_strategy._host_iterators():
            return super().train_on_batch(*args, **kwargs)

    def test_on_batch(
        self: Any, *args: Any, **kwargs: Any
    ) -> list[float] | float | dict[str, float]:
        """Metrics of one batch, handed over by the host; the arguments are Keras'."""
        with self.distribute_strategy._host_iterators():
            return super().test_on_batch(*args, **kwargs)

    def predict_on_batch(self, *args: Any, **kwargs: Any) -> Tensors:
        """Predictions for one batch, handed over by the host."""
        with self.distribute_strategy._host_iterators():
            return super().predict_on_batch(*args, **kwargs)


def _feeding(
    max_queue_size: int, workers: int, use_multiprocessing: bool
) -> dict[str, int | bool]:
    """How data are fetched, as Keras names it."""
    return {
        "max_queue_size": max_queue_size,
        "workers": workers,
        "use_multiprocessing": use_multiprocessing,
    }


class _Validation:
    """The data that `fit` evaluates the model on, and after which epochs."""

    @classmethod
    def of(
        cls, model: tf.keras.Model, data: Data, freq: Any, **options: Any
    ) -> _Validation | None:
        """None where there are no data to validate on."""
        return cls(model, data, freq, **options) if data else None

    def __init__(
        self,
        model: tf.keras.Model,
        data: Data,
        freq: Any,
        batch_size: Any,
        steps: Any,
        **feeding: Any,
    ) -> None:
        x, y, sample_weight = data_adapter.unpack_x_y_sample_weight(data)
        self._model = model
        self._freq = freq
        self._arguments = {
            "x": x,
            "y": y,
            "sample_weight": sample_weight,
            "batch_size": batch_size,
            **feeding,
        }
        self._steps = steps
        self._handler: IPUDataHandler | None = None

    def is_due(self, epoch: int) -> bool:
        """Whether to evaluate after this epoch."""
        return self._model._should_eval(epoch, self._freq)

    def run(self, callbacks: Callbacks) -> dict[str, Any]:
        """Loss and metrics, their names beginning with `val_`."""
        if self._handler is None:
            self._handler = IPUDataHandler(
                **self._arguments,
                steps_per_epoch=self._steps,
                model=self._model,
                steps_per_execution=self._model._steps_per_execution,
                replication_factor=None,
            )
        logs = self._model.evaluate(
            **self._arguments,
            steps=self._steps,
            callbacks=callbacks,
            return_dict=True,
            _popple_data_handler=self._handler,
        )
        return {f"val_{name}": value for name, value in logs.items()}


def _fit(
    model: tf.keras.Model,
    handler: IPUDataHandler,
    callbacks: Callbacks,
    validation: _Validation | None,
    initial_epoch: int,
) -> callbacks_module.History:
    model.stop_training = False
    model._train_counter.assign(0)
    callbacks.on_train_begin()
    counters = model._maybe_load_initial_counters_from_ckpt(
        handler.inferred_steps, initial_epoch
    )
    handler._initial_epoch, handler._initial_step = counters
    logs = None
    for epoch, infeed in _epochs(model, Mode.FIT, handler):
        model.reset_metrics()
        callbacks.on_epoch_begin(epoch)
        logs = _train_epoch(model, handler, infeed, callbacks)
        if validation and validation.is_due(epoch):
            logs.update(validation.run(callbacks))
        callbacks.on_epoch_end(epoch, logs)
        if model.stop_training:
            break
    if isinstance(model.optimizer, new_optimizer.Optimizer):
        model.optimizer.finalize_variable_values(model.trainable_variables)
    callbacks.on_train_end(logs=logs)
    return model.history


def _train_epoch(
    model: tf.keras.Model,
    handler: IPUDataHandler,
    infeed: IPUIterator,
    callbacks: Callbacks,
) -> dict[str, Any]:
    logs = None
    results = EpochRunner(model, Mode.FIT, handler, infeed, callbacks).run()
    for each in results:
        logs = logs if each is None else each
        if model.stop_training:
            break
    results.close()
    if logs is None:
        raise ValueError("x has no data: give a non-empty array or dataset.")
    return copy.copy(tf_utils.sync_to_numpy_or_python_type(logs))


def _evaluate(
    model: tf.keras.Model, handler: IPUDataHandler, callbacks: Callbacks
) -> dict[str, Any]:
    model._test_counter.assign(0)
    callbacks.on_test_begin()
    logs: Any = {}
    for _, infeed in _epochs(model, Mode.EVALUATE, handler):
        model.reset_metrics()
        for each in EpochRunner(model, Mode.EVALUATE, handler, infeed, callbacks).run():
            logs = logs if each is None else each
    logs = tf_utils.sync_to_numpy_or_python_type(logs)
    callbacks.on_test_end(logs=logs)
    return logs


def _predict(
    model: tf.keras.Model, handler: IPUDataHandler, callbacks: Callbacks
) -> Tensors:
    model._predict_counter.assign(0)
    callbacks.on_predict_begin()
    batches: list[Any] = []
    for _, infeed in _epochs(model, Mode.PREDICT, handler):
        for each in EpochRunner(model, Mode.PREDICT, handler, infeed, callbacks).run():
            if each is not None:
                batches.extend(
                    each if model._ipu_options.asynchronous_callbacks else [each]
                )
    if not batches:
        raise ValueError("x has no data: give a non-empty array or dataset.")
    callbacks.on_predict_end()
    return tf.nest.map_structure(
        lambda *parts: training.potentially_ragged_concat(list(parts)), *batches
    )


def _epochs(
    model: tf.keras.Model, mode: Mode, handler: IPUDataHandler
) -> Iterator[tuple[int, Any]]:
    return handler.enumerate_epochs_with_reuse(
        model._infeed_manager, mode, model._ipu_options.infeed_kwargs
    )


def _check_ready(model: tf.keras.Model, method: str) -> None:
    version_utils.disallow_legacy_graph("Model", method)
    if method != "predict":
        model._assert_compile_was_called()
    model._check_call_args(method)
    training._disallow_inside_tf_function(method)
    if model.run_eagerly:
        raise RuntimeError(
            "A model of an `IPUStrategy` cannot run eagerly, as a program runs it: set "
            "`run_eagerly=False` in `compile`."
        )


def _build_for(model: tf.keras.Model, handler: IPUDataHandler) -> None:
    """Build the model for these data, then divide the data between its replicas."""
    x, _, _ = data_adapter.unpack_x_y_sample_weight(handler.element_spec)
    shapes = tf.nest.map_structure(_column_shape, x)
    dtypes = tf.nest.map_structure(lambda spec: spec.dtype, x)
    model._build_with_dtypes(shapes, dtypes)
    if not handler.is_divided:
        handler.set_replication_factor(model._get_replication_factor())
    if handler.steps_per_execution_value == 1:
        logging.info(
            f"The model `{model.name}` runs one step per execution. A larger "
            "`steps_per_execution` in `compile()` keeps it on the device for longer."
        )


def _column_shape(spec: tf.TensorSpec) -> tuple[int | None, ...]:
    shape = tuple(spec.shape.as_list())
    return (*shape, 1) if len(shape) == 1 else shape


def _listed(
    model: tf.keras.Model,
    callbacks: Callbacks,
    verbose: int | str,
    handler: IPUDataHandler,
    epochs: int = 1,
) -> callbacks_module.CallbackList:
    if isinstance(callbacks, callbacks_module.CallbackList):
        return callbacks
    verbose = training._get_verbosity(verbose, model.distribute_strategy)
    return callbacks_module.CallbackList(
        callbacks,
        add_history=True,
        add_progbar=verbose != 0,
        model=model,
        verbose=verbose,
        epochs=epochs,
        steps=handler.inferred_steps,
    )
