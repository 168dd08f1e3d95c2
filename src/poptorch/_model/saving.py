"""Compiled models as files: what `save` writes and `load` and `loadExecutable` read.

A file is a zip archive of

    description.json   version, whether it trains, the state of its random numbers
    arguments.pt       the structure and types of the arguments it is compiled for
    model.pt           module, options and optimiser, if the model is exported

Compiling takes seconds here, so what is kept is what is needed to compile again. The
first two parts are plain data and safe to read. The last is a pickle: reading it runs
code of the module's classes, so `load` is for files one trusts.
"""

from __future__ import annotations

import json
import pickle
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from popple.files import replace_file

from .._arguments.args import BoundArgs
from .._errors import Error
from .._logging import logger
from ..options import Options

__all__ = ["SavedModel", "read_arguments", "read_model", "save_model"]

_DESCRIPTION = "description.json"
_ARGUMENTS = "arguments.pt"
_MODEL = "model.pt"
_DEFAULT_NAME = "model.poptorch"
_PLAIN = (str, int, float, bool, complex, type(None), torch.dtype)


@dataclass(frozen=True)
class Description:
    """What anybody may read of a saved model."""

    version: str
    training: bool
    rng_state: list[int] = field(default_factory=list[int])


@dataclass(frozen=True)
class Exported:
    """The program's side of a model: what is needed to wrap it again."""

    model: nn.Module
    options: Options
    optimizer: torch.optim.Optimizer | None
    arguments: BoundArgs


@dataclass(frozen=True)
class SavedModel:
    """The contents of a file; `exported` is None if it holds only the executable."""

    description: Description
    arguments: BoundArgs | None
    exported: Exported | None = None

    def write(self, path: Path) -> None:
        """Write the file; it is whole or not there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as draft, zipfile.ZipFile(draft, "w") as archive:
            archive.writestr(_DESCRIPTION, json.dumps(asdict(self.description)))
            if self.arguments is not None:
                _write_part(archive, _ARGUMENTS, dict(vars(self.arguments)))
            if self.exported is not None:
                _write_part(archive, _MODEL, self.exported)


def save_model(
    filename: str,
    identity: tuple[str, bool],
    arguments: BoundArgs,
    rng_state: list[int],
    exported: tuple[nn.Module, Options, torch.optim.Optimizer | None] | None,
) -> None:
    """Write a compiled model: version and whether it trains, arguments, state.

    With the program's own parts `exported`, `poptorch.load` can wrap it again.
    """
    examples = _examples_of(arguments)
    saved = SavedModel(
        Description(*identity, rng_state),
        _plain_arguments(examples),
        Exported(*exported, examples) if exported else None,
    )
    saved.write(_save_path(filename))


def read_arguments(filename: str, version: str) -> BoundArgs:
    """The arguments a saved model was compiled for; nothing in it is executed."""
    try:
        saved = read_model(filename, version, with_model=False)
    except ValueError as error:
        raise Error(f"Invalid file {filename}: {error}") from error
    if saved.arguments is None:
        raise Error(
            f"{filename} was compiled for arguments of the program's own types, "
            "which only poptorch.load() can read."
        )
    return saved.arguments


def _save_path(filename: str) -> Path:
    """Where to write: a directory gets a file of the default name."""
    path = Path(filename)
    if not path.is_dir():
        return path
    chosen = path / _DEFAULT_NAME
    logger.warning("save(): %s is a directory, saving model to %s", path, chosen)
    return chosen


def _examples_of(bound: BoundArgs) -> BoundArgs:
    """The arguments with tensors that have type and shape, and hardly any memory."""
    tensors = bound.tensors()
    small = [torch.zeros((), dtype=t.dtype).expand(t.shape) for t in tensors]
    return bound.rebuild(small)


def _plain_arguments(bound: BoundArgs) -> BoundArgs | None:
    """The arguments, if they are made of tensors and plain data only."""
    return bound if _is_plain([bound.args, bound.kwargs]) else None


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple):
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(map(_is_plain, (*value.keys(), *value.values())))
    return type(value) in _PLAIN or isinstance(value, torch.Tensor)


def read_model(filename: str, version: str, *, with_model: bool) -> SavedModel:
    """What is in a file; the pickled part only if asked for.

    ValueError if it is no such file or was written by another version.
    """
    try:
        with zipfile.ZipFile(filename) as archive:
            fields = json.loads(archive.read(_DESCRIPTION))
            description = Description(**fields)
            if description.version != version:
                raise ValueError(
                    f"it was written by version {description.version}, and this is "
                    f"version {version}. Save the model again."
                )
            return _read_parts(archive, description, with_model)
    except (zipfile.BadZipFile, KeyError, TypeError) as error:
        raise ValueError(
            f"it is not a model written by save() or compileAndExport() ({error})."
        ) from error


def _read_parts(
    archive: zipfile.ZipFile, description: Description, with_model: bool
) -> SavedModel:
    parts = archive.namelist()
    arguments = exported = None
    if _ARGUMENTS in parts:
        arguments = BoundArgs(**_read_part(archive, _ARGUMENTS, safely=True))
    if _MODEL in parts and with_model:
        exported = _read_part(archive, _MODEL, safely=False)
        arguments = exported.arguments
    if arguments is not None:
        arguments = arguments.rebuild(t.contiguous() for t in arguments.tensors())
    return SavedModel(description, arguments, exported)


def _write_part(archive: zipfile.ZipFile, name: str, value: Any) -> None:
    try:
        with archive.open(name, "w", force_zip64=True) as part:
            torch.save(value, part)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise Error(
            f"The model cannot be saved: {error}. Classes must be at the top level of "
            "a module; or save with export_model=False and wrap the model again before "
            "loadExecutable()."
        ) from error


def _read_part(archive: zipfile.ZipFile, name: str, *, safely: bool) -> Any:
    with archive.open(name) as part:
        return torch.load(part, weights_only=safely)
