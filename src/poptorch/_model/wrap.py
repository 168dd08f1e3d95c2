"""`trainingModel` and `inferenceModel`: from a module to an executor."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from .. import optim
from .._errors import Error
from .._executor import PoplarExecutor
from .._version import __version__
from ..enums import ConnectionType, OutputMode
from ..options import Options
from .saving import read_model

__all__ = ["inferenceModel", "load", "trainingModel"]


def trainingModel(
    model: nn.Module | PoplarExecutor,
    options: Options | None = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> PoplarExecutor:
    """A model that trains: each call runs forward, backward and the optimiser.

    The module's parameters are on the device from the first call on; reading them on
    the host copies them back. The default optimiser is SGD with lr=0.01.
    """
    module = _module_of(model)
    if optimizer is None:
        optimizer = optim.SGD(module.parameters(), lr=0.01)
    return PoplarExecutor(
        model=copy.copy(module),
        options=_resolved(options, OutputMode.Final),
        training=True,
        poptorch_version=__version__,
        optimizer=optimizer,
        user_model=module,
    )


def inferenceModel(
    model: nn.Module | PoplarExecutor, options: Options | None = None
) -> PoplarExecutor:
    """A model that only runs forward. The module itself is left alone."""
    return PoplarExecutor(
        model=copy.copy(_module_of(model)),
        options=_resolved(options, OutputMode.All),
        training=False,
        poptorch_version=__version__,
    )


def load(
    filename: str, edit_opts_fn: Callable[[Options], Any] | None = None
) -> PoplarExecutor:
    """The model a file of `save` or `compileAndExport` holds, wrapped and compiled.

    `edit_opts_fn` may change the options before, for example choose a device. The
    file holds a pickled module: load only files that you trust.
    """
    try:
        saved = read_model(filename, __version__, with_model=True)
    except ValueError as error:
        raise AssertionError(f"Invalid file {filename}: {error}") from error
    exported = saved.exported
    if exported is None:
        raise AssertionError(
            f"{filename} was written with export_model=False: wrap the model with "
            "poptorch.trainingModel or poptorch.inferenceModel and call "
            "loadExecutable() on that."
        )
    options = _online(exported.options)
    if edit_opts_fn is not None:
        edit_opts_fn(options)
    if saved.description.training:
        executor = trainingModel(exported.model, options, exported.optimizer)
    else:
        executor = inferenceModel(exported.model, options)
    executor._compile_for(exported.arguments)
    if saved.description.rng_state:
        executor.rng_state = saved.description.rng_state
    return executor


def _online(options: Options) -> Options:
    """Options to run with: a model compiled for no device gets one."""
    options._unfreeze()
    options.deleteIfExists("ipu_version")
    if options.connection_type is ConnectionType.Never:
        options.connectionType(ConnectionType.Always)
    return options


def _module_of(model: Any) -> nn.Module:
    module = model.model if isinstance(model, PoplarExecutor) else model
    if not isinstance(module, nn.Module):
        raise Error(f"A model must be a torch.nn.Module, not {type(module).__name__}.")
    return module


def _resolved(options: Options | None, mode: OutputMode) -> Options:
    """The executor's own options; the user's are frozen."""
    if options is None:
        options = Options()
    if not isinstance(options, Options):
        raise Error(f"options must be poptorch.Options, not {type(options).__name__}.")
    options._freeze()
    own = options.clone()
    if own.output_mode is OutputMode.Default:
        own.outputMode(mode)
    own._freeze()
    return own
