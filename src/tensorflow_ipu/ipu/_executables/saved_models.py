"""Writes functions as SavedModels for serving, and checks what is asked for.

In: a function of tensors with known shapes, and functions around it that run on the
host. Out: a directory with a SavedModel whose signature computes them one after
another, with the values that variables have now; and the same, loaded again.
"""

from __future__ import annotations

import inspect
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from tensorflow_ipu._types import Function

_FUNCTION = polymorphic_function.Function
Signature = Sequence[tf.TensorSpec]


@dataclass(frozen=True)
class Step:
    """A function, what it is called in messages, and the specs of its inputs."""

    name: str
    function: Callable[..., Any]
    signature: Signature

    def __call__(self, *values: Any) -> list[Any]:
        """The results of the function, as a list."""
        return as_list(self.function(*values))


@dataclass(frozen=True)
class Export:
    """What is written: steps that follow one another, and names of the results."""

    steps: Sequence[Step]
    output_names: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.output_names, str | list | None):
            raise TypeError(
                "output_names is a name or a list of names, not"
                f" {type(self.output_names)}."
            )

    def write(self, folder: str) -> Function:
        """Write the SavedModel; the function in it, loaded again."""
        holder: Any = tf.Module()
        signature = list(self.steps[0].signature)
        serve = tf.function(self._serve, input_signature=signature)
        concrete = serve.get_concrete_function()
        holder.serve = serve
        # What the functions use is saved with them.
        holder.kept = list(concrete.graph.variables)
        _save(holder, concrete, Path(folder))
        loaded: Any = tf.saved_model.load(folder)  # kept alive by the function
        return tf.function(lambda *given: loaded.serve(*given), signature)

    def _serve(self, *values: Any) -> list[tf.Tensor] | dict[str, tf.Tensor]:
        found: Any = list(values)
        before = ""
        for step in self.steps:
            if before:
                _check_fit(found, before, step)
            found, before = step(*found), step.name
        return self._named(found)

    def _named(self, values: list[Any]) -> list[tf.Tensor] | dict[str, tf.Tensor]:
        if not self.output_names:
            return values
        names = as_list(self.output_names)
        if len(names) != len(values):
            raise ValueError(
                f"Length of output_names ({len(names)}) does not match the number of"
                f" results ({len(values)}) of the exported function."
            )
        return dict(zip(names, values, strict=True))


def check_folder(folder: str, purge: bool) -> None:
    """Refuse a directory with something in it, or empty it."""
    if not os.path.isdir(folder) or not os.listdir(folder):
        return
    if not purge:
        raise ValueError(
            f'Directory "{folder}" is not empty. Please specify an empty directory, or'
            " purge_export_dir=True."
        )
    shutil.rmtree(folder)


def _save(holder: Any, concrete: Any, folder: Path) -> None:
    """Save beside the folder first: it is there completely, or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
        complete = Path(aside) / "model"
        tf.saved_model.save(holder, str(complete), signatures=concrete)
        if folder.is_dir():
            folder.rmdir()  # it is empty, see check_folder
        os.replace(complete, folder)


def _check_fit(values: Sequence[Any], before: str, step: Step) -> None:
    """Refuse results that the next step does not take."""
    if len(values) != len(step.signature):
        raise ValueError(
            f"`{before}` gives {len(values)} outputs, and the signature of"
            f" `{step.name}` has {len(step.signature)} entries: they must be as many."
        )
    for index, (value, spec) in enumerate(zip(values, step.signature, strict=True)):
        if not tf.is_tensor(value):
            raise ValueError(
                f"Value {index} that `{before}` returned is no tf.Tensor, but"
                f" {type(value).__name__}."
            )
        if value.shape != spec.shape or value.dtype != spec.dtype:
            raise ValueError(
                f"`{before}` returned Tensor at position {index}: it does not match"
                f" required `{step.name}` TensorSpec. It has shape {value.shape} and"
                f" type {value.dtype.name}, expected are {spec.shape} and"
                f" {spec.dtype.name}."
            )


def step_of(
    name: str,
    function: Callable[..., Any],
    signature: Any,
    dataset: tf.data.Dataset | None = None,
    inputs: Sequence[Any] = (),
) -> Step:
    """A step whose signature is given, that of a data set, or the function's own.

    The first arguments may be fixed `inputs`, which the signature need not contain.
    """
    if signature is None and dataset is not None:
        signature = dataset.element_spec
    if signature is None:
        signature = _own_signature(name, function)
    names = list(inspect.signature(_python(function)).parameters)
    specs = as_list(signature)
    if len(specs) == len(names):
        specs = specs[len(inputs) :]
    names = names[len(inputs) :]
    if len(specs) != len(names):
        raise ValueError(
            f"{name} takes {len(names)} arguments ({', '.join(names)}), and its"
            f" input_signature has {len(specs)} entries: {specs}."
        )
    named = [
        tf.TensorSpec(spec.shape, spec.dtype, name=argument)
        for spec, argument in zip(specs, names, strict=True)
    ]
    return Step(name, function, named)


def check_signature(name: str, signature: Any) -> None:
    """Refuse what is no list of specs."""
    if signature is None:
        return
    if not isinstance(signature, tuple | list):
        raise TypeError(
            f"`{name}` is a list or a tuple of specs, not {type(signature).__name__}."
        )
    if not signature:
        raise ValueError(f"`{name}` must be not empty.")
    for index, spec in enumerate(signature):
        if not isinstance(spec, tf.TensorSpec):
            raise TypeError(f"`{name}[{index}]` is not an instance of TensorSpec")


def check_dataset(dataset: tf.data.Dataset, signature: Any, name: str) -> None:
    """Refuse what is no data set, or one beside a signature."""
    if dataset is None:
        return
    if signature is not None:
        raise ValueError(
            f"Both `{name}_signature` and `input_dataset` cannot be provided. Please"
            " pass only one of them."
        )
    if not isinstance(dataset, tf.data.Dataset):
        raise TypeError(
            f"`input_dataset` is a tf.data.Dataset, not {type(dataset).__name__}."
        )


def _own_signature(name: str, function: Function) -> Signature:
    if not isinstance(function, _FUNCTION):
        raise ValueError(
            f"`{name}` does not tell its input_signature. Make it a tf.function with"
            f" one, or give `{name}_signature` or `input_dataset`."
        )
    if function.input_signature is None:
        raise ValueError(
            f"Empty `input_signature` inside provided tf.function `{name}`. Please"
            f" specify it or provide `{name}_signature` or `input_dataset`."
        )
    return function.input_signature


def _python(function: Function) -> Callable[..., Any]:
    return getattr(function, "python_function", function)


def as_list(value: Any) -> list[Any]:
    """A list of what may be one thing, nothing, a list or a tuple."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
