"""The loops of an estimator's model on the device: one for each mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.framework import func_graph, ops
from tensorflow.python.training import training_util

from popple import marks
from tensorflow_ipu._types import Infeed, Returned

from .. import ipu_outfeed_queue, loops
from .._programs import compilation
from ..ops import cross_replica_ops
from . import model_fn as specs
from .mode_keys import ModeKeys


class Loops:
    """A model that is given features and labels step by step."""

    def __init__(
        self,
        call_model_fn: Callable[[Any, Any, str], Any],
        mode: str,
        run_config: Any,
        infeed: Infeed,
    ) -> None:
        self._call_model_fn = call_model_fn
        self._mode = mode
        self._run_config = run_config
        self._infeed = infeed
        self._outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
        self.hooks: Sequence[Any] = ()
        # Set when the program is built, which may be more than once.
        self._host_function: Callable[..., Any] | None = None
        self._metrics_function: Callable[..., Any] | None = None

    def run(self) -> Returned:
        """Build the loop: the mean loss and what the host is given, or an operation."""
        if self._mode == ModeKeys.PREDICT:
            return self._loop(self._predict)
        if self._mode == ModeKeys.EVAL:
            return self._mean(self._loop(self._evaluate, tf.constant(0.0)))
        if self._run_config.iterations_per_loop > 1:
            return self._mean(self._loop(self._train_repeatedly, tf.constant(0.0)))
        args, kwargs = loops._body_arguments(self._infeed._dequeue())
        loss, *for_host = self._train(tf.constant(0.0), *args, **kwargs)
        return [self._mean(loss), *for_host]

    def spec(self, outputs: Any) -> specs.EstimatorSpec:
        """The model as the session sees it."""
        if self._mode == ModeKeys.PREDICT:
            with tf.control_dependencies([outputs]):
                found = self._outfeed.dequeue()
            return specs.EstimatorSpec(self._mode, predictions=found)
        loss, *for_host = outputs
        if self._mode == ModeKeys.EVAL:
            metrics = self._metrics(loss)
            return specs.EstimatorSpec(self._mode, loss=loss, eval_metric_ops=metrics)
        train_op = loss
        if self._host_function is not None:
            train_op = self._host_function(*for_host)
            specs.checked_tensor_or_operation(train_op, "`host_call` return value")
        return specs.EstimatorSpec(self._mode, loss=loss, train_op=train_op)

    def _loop(self, step: Callable[..., Any], *inputs: Any) -> Returned:
        iterations = self._run_config.iterations_per_loop
        return loops.repeat(iterations, step, list(inputs), self._infeed)

    def _mean(self, total: tf.Tensor) -> tf.Tensor:
        """The mean over the steps of a loop and over the replicas."""
        if self._run_config.num_replicas > 1:
            total = cross_replica_ops.cross_replica_mean(total)
        return total / self._run_config.iterations_per_loop

    def _train_repeatedly(
        self, total: tf.Tensor, *args: Any, **kwargs: Any
    ) -> tf.Tensor:
        loss, *_ = self._train(total, *args, **kwargs)
        if self._host_function is not None:
            raise ValueError("host_call is not allowed for iterations_per_loop > 1")
        return loss

    def _train(self, total: tf.Tensor, *args: Any, **kwargs: Any) -> list[Any]:
        """The loss so far, once the step is done, and what the host is given."""
        spec = self._built(args, kwargs)
        self.hooks = spec.training_hooks
        host_call = getattr(spec, "host_call", None) or (None, [])
        self._host_function, for_host = host_call
        with tf.control_dependencies([spec.train_op]):
            total += tf.cast(spec.loss, tf.float32)
        operations = list(_operations_in_scope())
        _check_global_step_is_kept(operations)
        if self._run_config.num_replicas > 1:
            _check_replicas_exchange(operations)
        return [total, *for_host]

    def _evaluate(self, total: tf.Tensor, *args: Any, **kwargs: Any) -> list[Any]:
        spec = self._built(args, kwargs)
        self.hooks = spec.evaluation_hooks
        on_host = getattr(spec, "eval_metrics", None)
        if not spec.eval_metric_ops and not on_host:
            raise ValueError(
                "For evaluation a model must contain either eval_metric_ops or"
                " eval_metrics: add one to what `model_fn` returns."
            )
        if spec.eval_metric_ops and on_host:
            raise ValueError(
                "A model cannot contain both eval_metric_ops and eval_metrics: keep"
                " those of the device, or those of the host."
            )
        self._metrics_function, shown = on_host or (None, None)
        if on_host is None:
            shown = {name: update for name, (_, update) in spec.eval_metric_ops.items()}
        enqueue = self._outfeed.enqueue(shown)
        return [total + tf.cast(spec.loss, tf.float32), enqueue]

    def _metrics(self, loss: tf.Tensor) -> Any:
        """Metrics of the host, or the last values of those of the device."""
        if self._metrics_function is None:
            found = self._outfeed.dequeue()
            return {
                name: (tf.reduce_mean(values[-1]), tf.no_op())
                for name, values in found.items()
            }
        with tf.control_dependencies([loss]):
            args, kwargs = loops._body_arguments(self._outfeed.dequeue())
        return self._metrics_function(*args, **kwargs)

    def _predict(self, *args: Any, **kwargs: Any) -> tf.Operation:
        spec = self._built(args, kwargs)
        self.hooks = spec.prediction_hooks
        return self._outfeed.enqueue(spec.predictions)

    def _built(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> specs.EstimatorSpec:
        """The model for one element of the data set."""
        features = kwargs or args[0]
        has_labels = len(args) == 2 and self._mode != ModeKeys.PREDICT
        return self._call_model_fn(
            features, args[1] if has_labels else None, self._mode
        )


def _operations_in_scope() -> Iterator[Any]:
    """The operations of the graph in scope, of its functions, and around it."""
    graph: Any = ops.get_default_graph()
    yield from compilation.operations_of(graph)


def _check_global_step_is_kept(operations: Sequence[Any]) -> None:
    step: Any = training_util.get_global_step(_outermost(ops.get_default_graph()))
    for op in operations:
        if op.type == "AssignAddVariableOp" and _handle(op.inputs[0]) is step.handle:
            raise ValueError(
                "Illegal increment of the `global_step` variable in the `model_fn`: the"
                " estimator counts the steps itself. Leave `global_step` out of the"
                " call of `minimize()`."
            )


def _check_replicas_exchange(operations: Sequence[Any]) -> None:
    labels = (op.node_def.attr[marks.REGION].s.decode() for op in operations)
    if not any(label.startswith(marks.EXCHANGE) for label in labels):
        raise ValueError(
            "This is not a valid replicated training graph because its replicas"
            " exchange no gradients. Did you remember to use the"
            " `tensorflow.python.ipu.optimizers.CrossReplicaOptimizer`?"
        )


def _outermost(graph: tf.Graph) -> tf.Graph:
    outer: Any = graph
    while isinstance(outer, func_graph.FuncGraph):
        outer = outer.outer_graph
    return outer


def _handle(tensor: tf.Tensor) -> tf.Tensor:
    """The variable's own handle, outside of loops and functions."""
    while True:
        outside = _outside(tensor)
        if outside is None:
            return tensor
        tensor = outside


def _outside(tensor: tf.Tensor) -> tf.Tensor | None:
    """What a tensor of a loop or function stands for outside of it, if it does."""
    if tensor.op.type in ("Enter", "Identity"):
        return tensor.op.inputs[0]
    captures = getattr(tensor.graph, "captures", ())
    return next((outer for outer, inner in captures if inner is tensor), None)
