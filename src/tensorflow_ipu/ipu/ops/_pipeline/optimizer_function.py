"""What an optimiser function tells a pipeline: how its gradients are made and used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.training import optimizer

from tensorflow_ipu._types import Optimizer

from ...eager import backprop
from ...ipu_outfeed_queue import IPUOutfeedQueue


def is_optimizer_v2(opt: object) -> bool:
    """Whether this is a Keras optimiser, of whichever Keras."""
    # By name: there are as many classes of this name as there are Kerases.
    return any(kind.__name__ == "OptimizerV2" for kind in type(opt).__mro__)


class OptimizerFunctionOutput:
    """An optimiser, a loss, and how the optimiser is called.

    `compute_gradients_args/kwargs` and `apply_gradients_args/kwargs` are passed on to
    these methods. A Keras optimiser needs to know its variables: a list of
    `variables`, or the `tape` that watched them. Gradients captured in `tape` or
    `gradient_capture_context` can go to `captured_gradient_outfeed`. Every attribute is
    checked when it is set.
    """

    def __init__(
        self,
        opt: Optimizer,
        loss: tf.Tensor,
        compute_gradients_args: tuple[Any, ...] | None = None,
        compute_gradients_kwargs: dict[str, Any] | None = None,
        apply_gradients_args: tuple[Any, ...] | None = None,
        apply_gradients_kwargs: dict[str, Any] | None = None,
        variables: Any = None,
        tape: tf.GradientTape | None = None,
        gradient_capture_context: Any = None,
        captured_gradient_outfeed: Any = None,
    ) -> None:
        self._variables: Any = ()
        self._tape: Any = None
        self._gradient_capture_context: Any = None
        self.opt = opt
        self.loss = loss
        self.compute_gradients_args = compute_gradients_args or ()
        self.compute_gradients_kwargs = compute_gradients_kwargs or {}
        self.apply_gradients_args = apply_gradients_args or ()
        self.apply_gradients_kwargs = apply_gradients_kwargs or {}
        self.variables = variables or ()
        self.tape = tape
        self.gradient_capture_context = gradient_capture_context
        self.captured_gradient_outfeed = captured_gradient_outfeed

    @property
    def opt(self) -> Optimizer:
        """The optimiser."""
        return self._opt

    @opt.setter
    def opt(self, value: Any) -> None:
        if not isinstance(value, optimizer.Optimizer) and not is_optimizer_v2(value):
            raise TypeError(
                _text("opt must be a TensorFlow Optimizer or Keras OptimizerV2 object.")
            )
        self._opt = value

    @property
    def loss(self) -> tf.Tensor:
        """The loss."""
        return self._loss

    @loss.setter
    def loss(self, value: Any) -> None:
        if not isinstance(value, tf.Tensor):
            raise TypeError(_text("loss must be a TensorFlow Tensor object."))
        self._loss = value

    @property
    def compute_gradients_args(self) -> tuple[Any, ...]:
        """Further positional arguments of `compute_gradients`."""
        return self._compute_gradients_args

    @compute_gradients_args.setter
    def compute_gradients_args(self, value: tuple[Any, ...]) -> None:
        _check_kind("compute_gradients_args", value, tuple, "tuple")
        self._refuse_for_v2("compute_gradients_args", value)
        self._compute_gradients_args = value

    @property
    def compute_gradients_kwargs(self) -> dict[str, Any]:
        """Keyword arguments of `compute_gradients`."""
        return self._compute_gradients_kwargs

    @compute_gradients_kwargs.setter
    def compute_gradients_kwargs(self, value: dict[str, Any]) -> None:
        _check_kind("compute_gradients_kwargs", value, dict, "dict")
        self._refuse_for_v2("compute_gradients_kwargs", value)
        self._compute_gradients_kwargs = value

    @property
    def apply_gradients_args(self) -> tuple[Any, ...]:
        """Further positional arguments of `apply_gradients`."""
        return self._apply_gradients_args

    @apply_gradients_args.setter
    def apply_gradients_args(self, value: tuple[Any, ...]) -> None:
        _check_kind("apply_gradients_args", value, tuple, "tuple")
        self._apply_gradients_args = value

    @property
    def apply_gradients_kwargs(self) -> dict[str, Any]:
        """Keyword arguments of `apply_gradients`."""
        return self._apply_gradients_kwargs

    @apply_gradients_kwargs.setter
    def apply_gradients_kwargs(self, value: dict[str, Any]) -> None:
        _check_kind("apply_gradients_kwargs", value, dict, "dict")
        self._apply_gradients_kwargs = value

    @property
    def variables(self) -> Sequence[tf.Variable]:
        """The variables of a Keras optimiser."""
        return self._variables

    @variables.setter
    def variables(self, value: Any) -> None:
        _check_kind("variables", value, (tuple, list), "tuple or list")
        if value and not is_optimizer_v2(self.opt):
            raise ValueError(_text("variables may only be used with OptimizerV2."))
        if value and self.tape is not None:
            raise ValueError(
                _text(
                    "variables must be empty when OptimizerFunctionOutput.tape is used."
                )
            )
        self._variables = value

    @property
    def tape(self) -> tf.GradientTape | None:
        """The tape that watched the variables of a Keras optimiser."""
        return self._tape

    @tape.setter
    def tape(self, value: Any) -> None:
        if value is not None:
            self._check_tape(value)
        self._tape = value

    def _check_tape(self, value: Any) -> None:
        if not isinstance(value, tf.GradientTape):
            raise TypeError(_text("tape must be a GradientTape."))
        if not is_optimizer_v2(self.opt):
            raise ValueError(_text("tape may only be used with OptimizerV2."))
        for name in ("variables", "gradient_capture_context"):
            if getattr(self, name):
                raise ValueError(
                    _text("tape may not be used when ") + _text(f"{name} is nonempty.")
                )

    @property
    def gradient_capture_context(self) -> backprop.GradientCaptureContext | None:
        """The context that captures gradients."""
        return self._gradient_capture_context

    @gradient_capture_context.setter
    def gradient_capture_context(self, value: Any) -> None:
        kind = backprop.GradientCaptureContext
        if value is not None and not isinstance(value, kind):
            raise TypeError(
                _text("gradient_capture_context must be an ipu.eager.backprop.")
                + f"GradientCaptureContext; it is a {type(value).__name__}."
            )
        if value is not None and self.tape is not None:
            raise ValueError(
                _text("gradient_capture_context may not be used when ")
                + _text("tape is nonempty.")
            )
        self._gradient_capture_context = value

    @property
    def captured_gradient_outfeed(self) -> IPUOutfeedQueue | None:
        """Where captured gradients go."""
        return self._captured_gradient_outfeed

    @captured_gradient_outfeed.setter
    def captured_gradient_outfeed(self, value: Any) -> None:
        if value is not None and not isinstance(value, IPUOutfeedQueue):
            raise TypeError(
                _text("captured_gradient_outfeed must be an IPUOutfeedQueue.")
            )
        if value is not None and self.capturing is None:
            raise ValueError(
                _text("captured_gradient_outfeed needs something that captures: a ")
                + "GradientCaptureTape as tape, or a gradient_capture_context."
            )
        self._captured_gradient_outfeed = value

    @property
    def capturing(self) -> backprop.GradientCaptureContext | None:
        """What captures gradients: the tape or the context, if any."""
        if isinstance(self.tape, backprop.GradientCaptureTape):
            return self.tape
        return self.gradient_capture_context

    def _refuse_for_v2(self, name: str, value: Any) -> None:
        if value and is_optimizer_v2(self.opt):
            raise ValueError(
                _text(f"{name} may not be used with OptimizerV2 instances.")
            )


def _text(rest: str) -> str:
    return f"OptimizerFunctionOutput.{rest}"


def _check_kind(name: str, value: Any, kinds: Any, called: str) -> None:
    if not isinstance(value, kinds):
        raise TypeError(_text(f"{name} must be a {called}."))
