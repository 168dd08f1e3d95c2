"""What the estimators for the IPU share: feeds, the device and the global step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import tensorflow.compat.v2 as tf
from tensorflow.python.training import training_util

from tensorflow_ipu._types import Infeed, Returned

from .. import config, ipu_compiler, ipu_infeed_queue, ipu_run_config, scopes, utils
from . import estimator
from . import model_fn as specs
from .mode_keys import ModeKeys

v1 = tf.compat.v1

HOST = "/device:CPU:0"
_BATCH_SIZE = "batch_size"


class DeviceLoops(Protocol):
    """A model in loops on the device, and what the host makes of it."""

    @property
    def hooks(self) -> Sequence[Any]:
        """The model's own hooks, once it is built."""
        ...

    def run(self) -> Returned:
        """Build the loop that is compiled."""
        ...

    def spec(self, outputs: Returned) -> specs.EstimatorSpec:
        """The model as the session sees it; `outputs` are those of the loop."""
        ...


class IPUEstimatorBase(estimator.Estimator):
    """An estimator that compiles its model for the IPU."""

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None,
        config: ipu_run_config.RunConfig | None,
        params: dict[str, Any] | None,
        warm_start_from: Any,
        batch_sizes: Mapping[str, int | None],
    ) -> None:
        if not isinstance(config, ipu_run_config.RunConfig):
            raise ValueError(
                "`config` must be an `ipu_run_config.RunConfig`: give one."
            )
        if not isinstance(params, dict | None):
            raise ValueError(f"`params` must be a dict, not {type(params).__name__}.")
        given = {mode: size for mode, size in batch_sizes.items() if size is not None}
        if given and _BATCH_SIZE in (params or {}):
            raise ValueError(
                f"{_BATCH_SIZE} cannot be passed in params when a batch size argument"
                " is passed"
            )
        self._batch_sizes = {
            mode: _size_for_one(mode, size, config) for mode, size in given.items()
        }
        super().__init__(model_fn, model_dir, config, params, warm_start_from)

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[Any] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[Any] | None = None,
    ) -> estimator.Estimator:
        """Train for `steps` more steps, or up to `max_steps`; the estimator itself."""
        self._check_multiple(steps)
        return super().train(input_fn, hooks, steps, max_steps, saving_listeners)

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Metrics, the loss and the global step, after `steps` steps."""
        self._check_multiple(steps)
        return super().evaluate(input_fn, steps, hooks, checkpoint_path, name)

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Sequence[str] | str | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
        num_predictions: int | None = None,
    ) -> Iterator[Any]:
        """At most `num_predictions` predictions, of examples or of batches."""
        # What comes from the device has the steps of a loop as its first dimension.
        loops = super().predict(
            input_fn, predict_keys, hooks, checkpoint_path, yield_single_examples
        )
        found = itertools.chain.from_iterable(map(estimator.slices, loops))
        return itertools.islice(found, num_predictions)

    def _program(self, mode: str, infeed: Infeed) -> DeviceLoops:
        """The program that runs the model in a mode."""
        raise NotImplementedError

    def _model(self, input_fn: Callable[..., Any], mode: str) -> specs.EstimatorSpec:
        run_config = self.config.ipu_run_config
        dataset = self._dataset(input_fn, mode)
        _configure(run_config)
        infeed = ipu_infeed_queue.IPUInfeedQueue(
            dataset, prefetch_depth=run_config.prefetch_depth
        )
        program = self._program(mode, infeed)
        with scopes.ipu_scope(f"/device:IPU:{run_config.ordinal}"):
            outputs = ipu_compiler.compile(program.run)
        utils.move_variable_initialization_to_cpu()
        with tf.device(HOST):
            spec = program.spec(outputs)
        hooks = (estimator.StartHook(infeed.initializer), *program.hooks)
        return spec._replace(**{estimator.HOOKS_OF_MODE[mode]: hooks})

    def _dataset(self, input_fn: Callable[..., Any], mode: str) -> tf.data.Dataset:
        if mode in self._batch_sizes and "params" not in specs.argument_names(input_fn):
            raise ValueError(
                f"input_fn must have params argument to receive params['{_BATCH_SIZE}']"
            )
        with tf.device(HOST):
            dataset = specs.call_with(input_fn, self._arguments(mode))
        if not isinstance(dataset, tf.data.Dataset):
            raise ValueError(f"input_fn must return Dataset, not {type(dataset)}.")
        estimator.unpacked(dataset.element_spec, mode)
        return dataset

    def _arguments(self, mode: str) -> dict[str, Any]:
        arguments = super()._arguments(mode)
        if mode in self._batch_sizes:
            arguments["params"][_BATCH_SIZE] = self._batch_sizes[mode]
        return arguments

    def _create_global_step(self) -> tf.Variable:
        # A resource on the host, so that the device can read it and a wrong increment
        # is seen.
        with tf.device(HOST), tf.name_scope(""):
            return v1.get_variable(
                v1.GraphKeys.GLOBAL_STEP,
                shape=[],
                dtype=tf.int64,
                initializer=v1.zeros_initializer(),
                trainable=False,
                use_resource=True,
                collections=[
                    v1.GraphKeys.GLOBAL_VARIABLES,
                    v1.GraphKeys.GLOBAL_STEP,
                ],
            )

    def _stop_hooks(self, steps: int | None, max_steps: int | None) -> list[Any]:
        iterations = self.config.ipu_run_config.iterations_per_loop
        return [_CountingHook(iterations, steps, max_steps)]

    def _eval_stop_hooks(self, steps: int | None) -> list[Any]:
        return self._stop_hooks(steps, None)

    def _check_multiple(self, steps: int | None) -> None:
        iterations = self.config.ipu_run_config.iterations_per_loop
        if steps is not None and steps % iterations:
            raise ValueError(
                f"steps ({steps}) must be a multiple of iterations_per_loop"
                f" ({iterations})"
            )


class _CountingHook(v1.train.SessionRunHook):
    """Counts the steps of every loop, and stops after the last."""

    def __init__(
        self, iterations: int, num_steps: int | None, final_step: int | None
    ) -> None:
        if num_steps is None and final_step is None:
            raise ValueError(
                "One of `num_steps` or `final_step` must be specified: give `steps` or"
                " `max_steps`."
            )
        self._iterations = iterations
        self._num_steps = num_steps
        self._final_step = final_step
        self._step: Any = None
        self._increment: Any = None

    def begin(self) -> None:
        self._step = training_util.get_global_step()
        with tf.device(HOST):
            self._increment = self._step.assign_add(self._iterations)

    def after_create_session(self, session: tf.compat.v1.Session, coord: Any) -> None:
        del coord
        if self._final_step is None:
            self._final_step = session.run(self._step) + self._num_steps

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        if run_context.session.run(self._increment) >= self._final_step:
            run_context.request_stop()


def _configure(run_config: ipu_run_config.IPURunConfig) -> None:
    """Configure the device, if the estimator is to do so."""
    if run_config.ipu_options is None:
        return
    config.configure_ipu_system(run_config.ipu_options, HOST)
    device = f"/device:IPU:{run_config.ordinal}"
    ipu_run_config.check_devices(
        run_config.num_replicas,
        run_config.num_shards,
        utils.get_num_of_ipus_in_device(device),
    )


_NAMES = {
    ModeKeys.TRAIN: "train_batch_size",
    ModeKeys.EVAL: "eval_batch_size",
    ModeKeys.PREDICT: "predict_batch_size",
}


def _size_for_one(mode: str, batch_size: int, config: ipu_run_config.RunConfig) -> int:
    """The batch of one replica in one process."""
    name = _NAMES[mode]
    if batch_size < 1:
        raise ValueError(f"{name} (got {batch_size}) must be positive")
    strategies = {
        ModeKeys.TRAIN: config.train_distribute,
        ModeKeys.EVAL: config.eval_distribute,
    }
    num_workers = getattr(strategies.get(mode), "num_replicas_in_sync", 1)
    num_replicas = config.ipu_run_config.num_replicas
    if batch_size % (num_workers * num_replicas):
        raise ValueError(
            f"{name} (got {batch_size}) must be divisible by num_workers * num_replicas"
            f" ({num_workers} * {num_replicas})"
        )
    return batch_size // (num_workers * num_replicas)
