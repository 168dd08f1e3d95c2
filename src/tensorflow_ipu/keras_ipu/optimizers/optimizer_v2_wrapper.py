"""An optimiser around another one: base of those that change gradients on their way.

What the wrapper has not itself (learning rate, slots, weights, clipping) is that of the
optimiser inside; both count the same iterations.
"""

from __future__ import annotations

from typing import Any

from tf_keras.src import optimizers
from tf_keras.src.optimizers.legacy.optimizer_v2 import OptimizerV2

from tensorflow_ipu._types import GradientsAndVariables, Optimizer, ShapeLike

__all__ = ["_OptimizerV2Wrapper", "inner_optimizer"]

_TYPE = "inner_optimizer_type"
_CONFIG = "inner_optimizer_config"


class _OptimizerV2Wrapper(OptimizerV2):
    """An `OptimizerV2` that does everything through the one it is given."""

    def __init__(self, opt: Optimizer, name: str | None = None, **kwargs: Any) -> None:
        self._opt = opt
        super().__init__(name=name, **kwargs)
        self._track_trackable(opt, name="base_optimizer")

    def __getattr__(self, name: str) -> Any:
        hyper = _hyper_of(self, name)
        if hyper is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return self._opt._get_hyper(hyper)

    def __setattr__(self, name: str, value: Any) -> None:
        hyper = None if hasattr(type(self), name) else _hyper_of(self, name)
        if hyper is None:
            super().__setattr__(name, value)
        else:
            self._opt._set_hyper(hyper, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._opt._hyper})

    def _create_hypers(self) -> None:
        self._opt._create_hypers()

    def _create_all_weights(self, var_list: Any) -> None:
        self._opt._create_all_weights(var_list)

    def get_gradients(self, loss: Any, params: Any) -> list[Any]:
        """Gradients as the optimiser inside computes them."""
        return self._opt.get_gradients(loss, params)

    def apply_gradients(
        self, grads_and_vars: GradientsAndVariables, **options: Any
    ) -> Any:
        """Update the variables."""
        return self._opt.apply_gradients(grads_and_vars, **options)

    def get_slot(self, var: Any, slot_name: str) -> Any:
        """A slot of the optimiser inside."""
        return self._opt.get_slot(var, slot_name)

    def add_slot(
        self,
        var: Any,
        slot_name: str,
        initializer: Any = "zeros",
        shape: ShapeLike | None = None,
    ) -> Any:
        """Add a slot to the optimiser inside."""
        return self._opt.add_slot(var, slot_name, initializer, shape)

    def get_slot_names(self) -> list[str]:
        """Names of the slots of the optimiser inside."""
        return self._opt.get_slot_names()

    def get_weights(self) -> list[Any]:
        """Values of the variables of the optimiser inside."""
        return self._opt.get_weights()

    def set_weights(self, weights: list[Any]) -> None:
        """Set the variables of the optimiser inside."""
        self._opt.set_weights(weights)

    def variables(self) -> list[Any]:
        """The variables of the optimiser inside."""
        return self.weights

    @property
    def weights(self) -> list[Any]:
        """The variables of the optimiser inside."""
        return self._opt.weights

    @weights.setter
    def weights(self, _: Any) -> None:
        raise AttributeError("can't set attribute `weights`: use `set_weights`.")

    @property
    def iterations(self) -> Any:
        """How many updates the optimiser inside has made."""
        return self._opt.iterations

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        self._opt.iterations = variable

    @property
    def clipnorm(self) -> float | None:
        """The largest norm of a gradient."""
        return self._opt.clipnorm

    @clipnorm.setter
    def clipnorm(self, value: Any) -> None:
        self._opt.clipnorm = value

    @property
    def global_clipnorm(self) -> float | None:
        """The largest norm of all gradients together."""
        return self._opt.global_clipnorm

    @global_clipnorm.setter
    def global_clipnorm(self, value: Any) -> None:
        self._opt.global_clipnorm = value

    @property
    def clipvalue(self) -> float | None:
        """The largest magnitude in a gradient."""
        return self._opt.clipvalue

    @clipvalue.setter
    def clipvalue(self, value: Any) -> None:
        self._opt.clipvalue = value

    def get_config(self) -> dict[str, Any]:
        """The name, and class and configuration of the optimiser inside."""
        return {
            _CONFIG: self._opt.get_config(),
            _TYPE: type(self._opt),
            "name": self._name,
        }


def inner_optimizer(config: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The optimiser that a wrapper's configuration has inside, and the rest of it."""
    missing = [key for key in (_CONFIG, _TYPE) if key not in config]
    if missing:
        raise ValueError(
            f"The configuration of a wrapped optimizer must contain {missing[0]}: make "
            "it with `get_config()`."
        )
    rest = dict(config)
    kind, inner = rest.pop(_TYPE), rest.pop(_CONFIG)
    if isinstance(kind, str):
        # A saved model keeps the name of the class.
        return optimizers.deserialize({"class_name": kind, "config": inner}), rest
    if not issubclass(kind, OptimizerV2):
        raise ValueError(
            f"{_TYPE} must be a class derived from Keras OptimizerV2, not {kind}."
        )
    return kind.from_config(inner), rest


def _hyper_of(optimizer: Optimizer, name: str) -> str | None:
    """The hyperparameter of the optimiser inside that a name stands for."""
    inner = vars(optimizer).get("_opt")
    hyper = "learning_rate" if name == "lr" else name
    known = inner is not None and not name.startswith("_") and hyper in inner._hyper
    return hyper if known else None
