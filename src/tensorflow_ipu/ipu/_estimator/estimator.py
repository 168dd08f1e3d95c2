"""Trains, evaluates and uses a model that a function builds."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow.compat.v2 as tf
from tensorflow.python.training import evaluation, training_util, warm_starting_util

from tensorflow_ipu._types import Tensors

from . import model_fn as specs
from . import saved_model
from .mode_keys import ModeKeys
from .run_config import RunConfig

v1 = tf.compat.v1

# Everything that starts a variable, by the name of the variable.
_ALL_VARIABLES = ".*"


class WarmStartSettings(NamedTuple):
    """Which variables start from which checkpoint."""

    ckpt_to_initialize_from: str
    vars_to_warm_start: Any = _ALL_VARIABLES
    var_name_to_vocab_info: Any = None
    var_name_to_prev_var_name: Any = None


class Estimator:
    """A model and the directory of its checkpoints.

    Every call builds the model anew, from the last checkpoint if there is one.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None = None,
        config: RunConfig | None = None,
        params: Mapping[str, Any] | None = None,
        warm_start_from: Any = None,
    ) -> None:
        self._check_model_fn(model_fn)
        config = config or RunConfig()
        self._config: Any = config.replace(model_dir=_chosen_dir(model_dir, config))
        self._model_fn = model_fn
        self._params = dict(params or {})
        self._warm_start = _warm_start_settings(warm_start_from)

    @property
    def model_dir(self) -> str:
        """Where checkpoints and summaries are."""
        return self._config.model_dir

    @property
    def config(self) -> RunConfig:
        """The settings, with the directory that was chosen."""
        return self._config

    @property
    def params(self) -> dict[str, Any]:
        """A copy of the model's parameters."""
        return dict(self._params)

    @property
    def model_fn(self) -> Callable[..., Any]:
        """The function that builds the model."""
        return self._model_fn

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[Any] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[Any] | None = None,
    ) -> Estimator:
        """Train for `steps` more steps, or up to `max_steps`; the estimator itself."""
        _check_steps(steps, max_steps)
        if max_steps is not None and self._trained_steps() >= max_steps:
            return self
        every_hook = [*specs.checked_hooks(hooks), *self._stop_hooks(steps, max_steps)]
        with self._graph(self.config.train_distribute):
            step = self._create_global_step()
            spec = self._model(input_fn, ModeKeys.TRAIN)
            self._start_warm()
            every_hook += [*_loss_hooks(self.config, spec, step), *spec.training_hooks]
            saver = self._saver_hook(spec.scaffold, saving_listeners)
            with v1.train.MonitoredTrainingSession(
                master=self.config.master,
                checkpoint_dir=self.model_dir,
                scaffold=spec.scaffold,
                hooks=every_hook,
                chief_only_hooks=[saver, *spec.training_chief_hooks],
                save_checkpoint_secs=0,  # the saver above does it
                save_summaries_steps=self.config.save_summary_steps,
                config=self.config.session_config,
                log_step_count_steps=self.config.log_step_count_steps,
            ) as session:
                while not session.should_stop():
                    session.run([spec.train_op, spec.loss])
        return self

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Metrics, the loss and the global step, after `steps` steps."""
        _check_steps(steps, None)
        every_hook = [*specs.checked_hooks(hooks), *self._eval_stop_hooks(steps)]
        with self._graph(self.config.eval_distribute):
            step = self._create_global_step()
            spec = self._model(input_fn, ModeKeys.EVAL)
            metrics = dict(spec.eval_metric_ops)
            metrics[specs.LOSS_METRIC_KEY] = v1.metrics.mean(spec.loss)
            values = {key: value for key, (value, _) in metrics.items()}
            results: Any = evaluation._evaluate_once(
                checkpoint_path=checkpoint_path or self.latest_checkpoint(),
                master=self.config.master,
                scaffold=spec.scaffold,
                eval_ops=tf.group(*(update for _, update in metrics.values())),
                final_ops={**values, v1.GraphKeys.GLOBAL_STEP: step},
                hooks=[*every_hook, *spec.evaluation_hooks],
                config=self.config.session_config,
            )
        _write_summary(self.eval_dir(name), results)
        return results

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Sequence[str] | str | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """The predictions for all of the data: of each example, or of each batch."""
        every_hook = specs.checked_hooks(hooks)
        with self._graph(None):
            self._create_global_step()
            spec = self._model(input_fn, ModeKeys.PREDICT)
            predictions = _chosen(spec.predictions, predict_keys)
            creator = v1.train.ChiefSessionCreator(
                scaffold=spec.scaffold,
                checkpoint_filename_with_path=checkpoint_path
                or self.latest_checkpoint(),
                master=self.config.master,
                config=self.config.session_config,
            )
            with v1.train.MonitoredSession(
                creator, hooks=[*every_hook, *spec.prediction_hooks]
            ) as session:
                while not session.should_stop():
                    batch = session.run(predictions)
                    yield from slices(batch) if yield_single_examples else [batch]

    def export_saved_model(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:
        """Write the model for serving; the path of a new directory."""
        return self.experimental_export_all_saved_models(
            export_dir_base,
            {experimental_mode: serving_input_receiver_fn},
            assets_extra,
            as_text,
            checkpoint_path,
        )

    def experimental_export_all_saved_models(
        self,
        export_dir_base: str,
        input_receiver_fn_map: Mapping[str, Callable[[], Any]],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
    ) -> bytes:
        """Write the model for several modes; the path of a new directory."""
        return saved_model.write(
            self,
            export_dir_base,
            input_receiver_fn_map,
            checkpoint_path or self._checkpoint(),
            self.config.session_config,
            assets_extra,
            as_text,
        )

    def exported(self, receiver: Any, mode: str) -> specs.EstimatorSpec:
        """The model for a receiver's inputs, as it is exported."""
        v1.set_random_seed(self.config.tf_random_seed)
        self._create_global_step()
        labels = getattr(receiver, "labels", None)
        given = self._arguments(mode)
        return specs.call_model_fn(self._model_fn, receiver.features, labels, given)

    def latest_checkpoint(self) -> str | None:
        """The path of the last checkpoint, if there is one."""
        return tf.train.latest_checkpoint(self.model_dir)

    def get_variable_names(self) -> list[str]:
        """The names of the variables in the last checkpoint."""
        return [name for name, _ in tf.train.list_variables(self._checkpoint())]

    def get_variable_value(self, name: str) -> np.ndarray:
        """The value of a variable in the last checkpoint, as an array."""
        return tf.train.load_variable(self._checkpoint(), name)

    def eval_dir(self, name: str | None = None) -> str:
        """Where the summaries of an evaluation are."""
        return os.path.join(self.model_dir, f"eval_{name}" if name else "eval")

    def _check_model_fn(self, model_fn: Callable[..., Any]) -> None:
        if "features" not in specs.argument_names(model_fn):
            raise ValueError(f"model_fn ({model_fn}) must include features argument.")

    def _model(self, input_fn: Callable[..., Any], mode: str) -> specs.EstimatorSpec:
        """Build the model for a mode into the graph in scope."""
        with tf.device("/device:CPU:0"):
            inputs = specs.call_with(input_fn, self._arguments(mode))
            start = []
            if isinstance(inputs, tf.data.Dataset | v1.data.Dataset):
                iterator = v1.data.make_initializable_iterator(inputs)
                start = [StartHook(iterator.initializer)]
                inputs = iterator.get_next()
        features, labels = unpacked(inputs, mode)
        spec = specs.call_model_fn(
            self._model_fn, features, labels, self._arguments(mode)
        )
        if not isinstance(spec, specs.EstimatorSpec):
            raise ValueError("model_fn should return an EstimatorSpec.")
        name = HOOKS_OF_MODE[mode]
        return spec._replace(**{name: (*start, *getattr(spec, name))})

    def _arguments(self, mode: str) -> dict[str, Any]:
        """What a user's function can ask for."""
        return {"mode": mode, "params": self.params, "config": self.config}

    def _create_global_step(self) -> tf.Variable:
        return training_util.create_global_step()

    def _stop_hooks(self, steps: int | None, max_steps: int | None) -> list[Any]:
        """Hooks that end training."""
        if steps is None and max_steps is None:
            return []
        return [v1.train.StopAtStepHook(steps, max_steps)]

    def _eval_stop_hooks(self, steps: int | None) -> list[Any]:
        """Hooks that end an evaluation."""
        return [evaluation._StopAfterNEvalsHook(num_evals=steps)]

    @contextlib.contextmanager
    def _graph(self, strategy: Any) -> Iterator[None]:
        """A graph of its own, in the strategy's scope if there is one."""
        scope = contextlib.nullcontext() if strategy is None else strategy.scope()
        with tf.Graph().as_default(), scope:
            v1.set_random_seed(self.config.tf_random_seed)
            yield

    def _saver_hook(self, scaffold: Any, listeners: Sequence[Any] | None) -> Any:
        if scaffold.saver is None:
            scaffold._saver = v1.train.Saver(
                max_to_keep=self.config.keep_checkpoint_max,
                keep_checkpoint_every_n_hours=(
                    self.config.keep_checkpoint_every_n_hours
                ),
                defer_build=True,
                save_relative_paths=True,
            )
        return v1.train.CheckpointSaverHook(
            self.model_dir,
            save_secs=self.config.save_checkpoints_secs,
            save_steps=self.config.save_checkpoints_steps,
            scaffold=scaffold,
            listeners=list(listeners or ()),
        )

    def _start_warm(self) -> None:
        if self._warm_start is not None and self.latest_checkpoint() is None:
            warm_starting_util.warm_start(*self._warm_start)

    def _checkpoint(self) -> str:
        found = self.latest_checkpoint()
        if found is None:
            raise ValueError(
                f"Couldn't find trained model at {self.model_dir}: train it first."
            )
        return found

    def _trained_steps(self) -> int:
        """The global step of the last checkpoint."""
        if self.latest_checkpoint() is None:
            return 0
        return int(self.get_variable_value(v1.GraphKeys.GLOBAL_STEP))


HOOKS_OF_MODE = {
    ModeKeys.TRAIN: "training_hooks",
    ModeKeys.EVAL: "evaluation_hooks",
    ModeKeys.PREDICT: "prediction_hooks",
}


class StartHook(v1.train.SessionRunHook):
    """Runs an operation in every new session, once variables have their values."""

    def __init__(self, operation: Any) -> None:
        self._operation = operation

    def after_create_session(self, session: tf.compat.v1.Session, coord: Any) -> None:
        del coord
        session.run(self._operation)


def unpacked(inputs: Any, mode: str) -> tuple[Any, Any]:
    """The features and labels in what an `input_fn` gives; predictions need none."""
    if not isinstance(inputs, list | tuple):
        return inputs, None
    if mode == ModeKeys.PREDICT:
        return inputs[0], None
    if len(inputs) != 2:
        raise ValueError(
            "input_fn should return (features, labels) as a len 2 tuple. It returned"
            f" {len(inputs)} elements."
        )
    return inputs[0], inputs[1]


def slices(batch: Any) -> Iterator[Any]:
    """The elements of a batch, or of a dictionary of batches, one after another."""
    if not isinstance(batch, dict):
        yield from batch
        return
    lengths = {len(values) for values in batch.values()}
    if len(lengths) != 1:
        raise ValueError(
            f"Batch length of predictions should be same, but there are {lengths}. Use"
            " yield_single_examples=False."
        )
    for index in range(lengths.pop()):
        yield {name: values[index] for name, values in batch.items()}


def _chosen(predictions: Tensors, keys: Sequence[str] | str | None) -> Any:
    """Predictions of the given names only."""
    if keys is None:
        return predictions
    if not isinstance(predictions, dict):
        raise ValueError("predict_keys argument is not valid in case of non-dict.")
    wanted = [keys] if isinstance(keys, str) else keys
    found = {key: value for key, value in predictions.items() if key in wanted}
    if not found:
        raise ValueError(
            f"Expected to run at least one output from {list(predictions)}, provided"
            f" {wanted}."
        )
    return found


def _chosen_dir(model_dir: str | None, config: RunConfig | None) -> str:
    """Where to write: as given, as configured, or somewhere temporary."""
    if model_dir and config.model_dir and os.fspath(model_dir) != config.model_dir:
        raise ValueError(
            "model_dir is set both in constructor and RunConfig, to different values:"
            f" {model_dir} and {config.model_dir}."
        )
    return os.fspath(model_dir or config.model_dir or tempfile.mkdtemp())


def _warm_start_settings(given: Any) -> WarmStartSettings | None:
    if given is None or isinstance(given, WarmStartSettings):
        return given
    return WarmStartSettings(os.fspath(given))


def _check_steps(steps: int | None, max_steps: int | None) -> None:
    if steps is not None and max_steps is not None:
        raise ValueError("Can not provide both steps and max_steps.")
    for name, number in (("steps", steps), ("max_steps", max_steps)):
        if number is not None and number <= 0:
            raise ValueError(f"Must specify {name} > 0, given: {number}")


def _loss_hooks(
    config: RunConfig, spec: specs.EstimatorSpec, step: tf.Variable
) -> list[Any]:
    """Hooks that stop at a loss that is no number, and log it; and its summary."""
    v1.summary.scalar(specs.LOSS_METRIC_KEY, spec.loss)
    hooks: list[Any] = [v1.train.NanTensorHook(spec.loss)]
    if config.log_step_count_steps:
        shown = {specs.LOSS_METRIC_KEY: spec.loss, "step": step}
        every = config.log_step_count_steps
        hooks.append(v1.train.LoggingTensorHook(shown, every_n_iter=every))
    return hooks


def _write_summary(folder: str, results: Mapping[str, Any]) -> None:
    """Write the scalars of an evaluation for TensorBoard."""
    summary = v1.Summary()
    for name, value in results.items():
        if name != v1.GraphKeys.GLOBAL_STEP and getattr(value, "shape", None) == ():
            summary.value.add(tag=name, simple_value=float(value))
    with tf.Graph().as_default():  # writers are refused in eager mode
        writer = v1.summary.FileWriterCache.get(folder)
        writer.add_summary(summary, results[v1.GraphKeys.GLOBAL_STEP])
        writer.flush()
