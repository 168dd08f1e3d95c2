"""`trainingModel` and `inferenceModel`: from a module to an executor."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from popple.errors import DamagedFileError, PoppleError

from .._arguments.args import BoundArgs
from .._errors import Error
from .._executor import PoplarExecutor
from .._version import __version__
from ..enums import ConnectionType
from ..options import Options
from .saving import Exported, SavedModel, open_model

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
    return PoplarExecutor(
        model=copy.copy(module),
        options=options,
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
        options=options,
        training=False,
        poptorch_version=__version__,
    )


def load(
    filename: str,
    edit_opts_fn: Callable[[Options], Any] | None = None,
    *,
    trust: bool = False,
) -> PoplarExecutor:
    """The model a file of `save` or `compileAndExport` holds, wrapped and compiled.

    `edit_opts_fn` may change the options before, for example choose a device. Nothing
    in the file is executed, so it need not be trusted: the model runs, and modules
    whose classes the program has not loaded are stand-ins without a forward on the
    host. With `trust`, the pickled module is restored as well; that runs code of the
    file.
    """
    try:
        saved = open_model(filename, __version__)
        if not saved.has_model:
            raise ValueError(
                "it was written with export_model=False. Wrap the model with "
                "poptorch.trainingModel or poptorch.inferenceModel and call "
                "loadExecutable() on that."
            )
        exported, arguments = _open_exported(saved, trust)
        state = saved.random_state()
    except (ValueError, DamagedFileError) as error:
        raise AssertionError(f"Invalid file {filename}: {error}") from error
    options = _online(exported.options)
    if edit_opts_fn is not None:
        edit_opts_fn(options)
    try:
        executor = _wrap_saved(saved, exported, arguments)
        if state:
            executor.rng_state = state
    except (LookupError, TypeError, AttributeError, ValueError, PoppleError) as error:
        # Settings of the right form may still be nonsense: a size of -1, a text for
        # a number. Whoever reads them says so in words of its own.
        what = f"{type(error).__name__}: {error}"
        raise AssertionError(f"Invalid file {filename}: {what}") from error
    return executor


def _wrap_saved(
    saved: SavedModel, exported: Exported, arguments: BoundArgs
) -> PoplarExecutor:
    if saved.is_training:
        model, optimizer = exported.model, exported.optimizer
        executor = trainingModel(model, exported.options, optimizer)
    else:
        executor = inferenceModel(exported.model, exported.options)
    executor._compile_for(arguments, saved.archive)
    return executor


def _open_exported(saved: SavedModel, trust: bool) -> tuple[Exported, BoundArgs]:
    if trust:
        return saved.trusted()
    arguments = saved.find_arguments()
    if arguments is None:
        raise ValueError(
            "it was compiled for arguments of the program's own types, or calls Python "
            "functions, which are no data. If you trust the file, use "
            "poptorch.load(file, trust=True)."
        )
    return saved.exported(), arguments


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
