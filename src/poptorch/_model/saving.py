"""Compiled models as files: what `save` writes and `load` and `loadExecutable` read.

An archive (`popple.session.archive`) of JSON and raw numbers:

    arguments.json            what the model was compiled for
    facts.json, step.json...  the compiled step; see popple.engine.torch.session.kept
    model.json, weights/...   the module tree, its weights and buffers, if exported
    options.json              the options
    optimizer.json, state/... the optimiser and its state
    module.pickle             the module itself, for those who trust the file

All but the last are data that are checked when they are read. The last is a pickle, and
reading it runs code of the file: only `poptorch.load(file, trust=True)` does.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from popple.capture.torch.stored_values import NotStorable, check
from popple.capture.torch.structures import pack_structure, unpack_structure
from popple.capture.torch.tensors import pack_tensors, unpack_tensors
from popple.engine.torch.session.kept import pack_step
from popple.errors import DamagedFileError
from popple.session.archive import Archive, Buffer, read_archive, render_json
from popple.session.archive import write_archive as _write_archive

from .._arguments.args import BoundArgs
from .._errors import Error
from .._logging import logger
from ..options import Options
from .compiled_model import CompiledModel
from .plain_objects import PlainReader, PlainWriter
from .skeleton import read_module, write_module

__all__ = ["Exported", "SavedModel", "open_model", "save_model"]

_KIND = "poptorch executable"
_ARGUMENTS = "arguments.json"
_RANDOM = "random.json"
_MODEL, _WEIGHTS = "model.json", "weights"
_OPTIONS = "options.json"
_OPTIMIZER, _STATE = "optimizer.json", "state"
_PICKLE = "module.pickle"
_DEFAULT_NAME = "model.poptorch"
# What malformed data make of code that takes them for well-formed ones.
_MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RuntimeError)


@dataclass(frozen=True)
class Exported:
    """The program's side of a model: what is needed to wrap it again."""

    model: nn.Module
    options: Options
    optimizer: torch.optim.Optimizer | None


# -- writing


def save_model(
    filename: str,
    identity: tuple[str, bool],
    compiled: CompiledModel,
    rng_state: list[int],
    exported: Exported | None,
) -> None:
    """Write a compiled model: version and whether it trains, step, arguments, state.

    With the program's own parts `exported`, `poptorch.load` can wrap it again.
    """
    version, training = identity
    examples = _examples_of(compiled.arguments)
    parts: dict[str, Buffer] = {_RANDOM: render_json(rng_state)}
    try:
        parts[_ARGUMENTS] = render_json(_pack_arguments(examples))
        parts |= pack_step(compiled.step)
    except NotStorable as error:
        logger.debug("The file holds no compiled step: %s.", error)
    if exported is not None:
        parts |= _pack_exported(exported, examples)
    path = _save_path(filename)
    path.parent.mkdir(parents=True, exist_ok=True)
    description = {"kind": _KIND, "version": version, "training": training}
    _write_archive(path, parts, description)


def _pack_arguments(bound: BoundArgs) -> Any:
    return [
        pack_structure(bound.args),
        list(bound.arg_names),
        pack_structure(bound.kwargs),
    ]


def _pack_exported(exported: Exported, examples: BoundArgs) -> dict[str, Buffer]:
    model, held = write_module(exported.model)
    rows, parts = pack_tensors(held, _WEIGHTS)
    names = {id(p): name for name, p in exported.model.named_parameters()}
    packed: dict[str, Buffer] = {
        _MODEL: render_json({**model, "tensors": rows}),
        **parts,
        **_pack_objects(exported, names),
    }
    pickled = _pickled(exported.model, examples, held)
    return packed if pickled is None else {**packed, _PICKLE: pickled}


def _pack_objects(exported: Exported, names: Mapping[int, str]) -> dict[str, Buffer]:
    """Options and optimiser."""
    try:
        packed: dict[str, Buffer] = {
            _OPTIONS: render_json(PlainWriter({}).write(exported.options))
        }
        if exported.optimizer is None:
            return packed
        writer = PlainWriter(names)
        state = writer.write(exported.optimizer)
        rows, parts = pack_tensors(writer.tensors, _STATE)
    except NotStorable as error:
        raise Error(
            f"The model cannot be exported: {error}. Save with export_model=False and "
            "wrap the model again before loadExecutable()."
        ) from error
    packed[_OPTIMIZER] = render_json({"object": state, "tensors": rows})
    return {**packed, **parts}


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


# -- reading


@dataclass(frozen=True)
class SavedModel:
    """A file that was written by this version."""

    archive: Archive

    @property
    def is_training(self) -> bool:
        """Whether the model trains."""
        return bool(self.archive.description["training"])

    @property
    def has_model(self) -> bool:
        """Whether the file holds the program's side of the model."""
        return _MODEL in self.archive.parts

    def find_arguments(self) -> BoundArgs | None:
        """What the model was compiled for; None if only a trusted file tells."""
        if _ARGUMENTS not in self.archive.parts:
            return None
        with self._reading():
            args, names, kwargs = self.archive.json(_ARGUMENTS)
            return BoundArgs(
                unpack_structure(args, _example),
                tuple(str(name) for name in names),
                unpack_structure(kwargs, _example),
            )

    def random_state(self) -> list[int]:
        """The state of the device's random numbers; empty if it was not saved."""
        with self._reading():
            words = self.archive.json(_RANDOM)
            is_state = isinstance(words, list) and all(type(w) is int for w in words)
            check(is_state, f"{_RANDOM} is no list of numbers")
            return words

    def exported(self) -> Exported:
        """Module, options and optimiser, made of data alone."""
        with self._reading():
            model = read_module(self.archive.json(_MODEL), self._weights())
            return self._with_objects(model)

    def trusted(self) -> tuple[Exported, BoundArgs]:
        """The same with the module that was pickled, and its arguments.

        This runs code of the file.
        """
        if _PICKLE not in self.archive.parts:
            raise ValueError(
                "it holds no pickled module: its classes could not be pickled when it "
                "was written. Load it without trust=True."
            )
        unpickler = _Unpickler(self.archive.part(_PICKLE), self._weights())
        model, arguments = unpickler.load()
        with self._reading():
            return self._with_objects(model), arguments

    def _with_objects(self, model: nn.Module) -> Exported:
        options = PlainReader({}, {}).read(self.archive.json(_OPTIONS))
        check(type(options) is Options, "it has no options")
        _check_like(options, Options())
        if _OPTIMIZER not in self.archive.parts:
            return Exported(model, options, None)
        data = self.archive.json(_OPTIMIZER)
        tensors = unpack_tensors(data["tensors"], self.archive.part)
        reader = PlainReader(dict(model.named_parameters()), tensors)
        optimizer = reader.read(data["object"])
        check(isinstance(optimizer, torch.optim.Optimizer), "it has no optimiser")
        return Exported(model, options, optimizer)

    def _weights(self) -> dict[str, torch.Tensor]:
        rows = self.archive.json(_MODEL)["tensors"]
        return unpack_tensors(rows, self.archive.part)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except _MALFORMED as error:
            what = f"{type(error).__name__}: {error}"
            raise DamagedFileError(self.archive.path, what) from error


def open_model(filename: str, version: str) -> SavedModel:
    """A file of `save`; ValueError if it is none or was written by another version."""
    try:
        archive = read_archive(filename)
    except DamagedFileError as error:
        raise ValueError(
            f"it is not a model written by save() or compileAndExport() ({error.why})."
        ) from error
    description = archive.description
    if description.get("kind") != _KIND:
        raise ValueError("it is not a model written by save() or compileAndExport().")
    if description.get("version") != version:
        raise ValueError(
            f"it was written by version {description.get('version')}, and this is "
            f"version {version}. Save the model again."
        )
    if not isinstance(description.get("training"), bool):
        raise ValueError("it does not say whether the model trains.")
    return SavedModel(archive)


def _example(dtype: torch.dtype, shape: list[int]) -> torch.Tensor:
    # Nobody reads the numbers, and memory that is not touched is not taken: a file
    # cannot fill the computer's.
    return torch.empty(shape, dtype=dtype)


def _check_like(found: Any, reference: Any) -> None:
    """Options have the attributes that options have, of the same types."""
    check(vars(found).keys() == vars(reference).keys(), "options are incomplete")
    for name, value in vars(found).items():
        expected = vars(reference)[name]
        is_strategy = name == "_execution_strategy"
        is_alike = type(value) is type(expected) or is_strategy
        check(is_alike, f"the options' {name} is a {type(value).__name__}")
        is_group = type(value).__module__.startswith("poptorch")
        if is_group and not is_strategy and name != "_progress_bar":
            _check_like(value, expected)


# -- the part for those who trust a file


def _pickled(
    model: nn.Module, examples: BoundArgs, held: Mapping[str, torch.Tensor]
) -> bytes | None:
    """Module and arguments as a pickle without weights; None if that cannot be."""
    target = io.BytesIO()
    keys = {id(tensor): key for key, tensor in held.items()}
    try:
        _Pickler(target, keys).dump((model, examples))
    except (pickle.PicklingError, AttributeError, TypeError, RuntimeError) as error:
        logger.debug("The file holds no pickled module: %s.", error)
        return None
    return target.getvalue()


class _Pickler(pickle.Pickler):
    """Writes a module without the numbers of its weights: the file has them already."""

    def __init__(self, target: io.BytesIO, keys: Mapping[int, str]) -> None:
        super().__init__(target)
        self._keys = keys

    def persistent_id(self, obj: Any) -> Any:
        """Weights by their keys."""
        if not isinstance(obj, torch.Tensor):
            return None
        key = self._keys.get(id(obj))
        if key is None:
            return None
        return key, isinstance(obj, nn.Parameter), obj.requires_grad


class _Unpickler(pickle.Unpickler):
    """Reads a module and gives it its weights."""

    def __init__(self, data: bytes, weights: Mapping[str, torch.Tensor]) -> None:
        super().__init__(io.BytesIO(data))
        self._weights = weights
        self._made: dict[str, torch.Tensor] = {}

    def persistent_load(self, pid: Any) -> Any:
        """The parameter or buffer of a key, the same one each time."""
        key, is_parameter, requires_grad = pid
        if key not in self._made:
            tensor = self._weights[key]
            self._made[key] = (
                nn.Parameter(tensor, requires_grad) if is_parameter else tensor
            )
        return self._made[key]


def open_executable(filename: str, version: str) -> tuple[BoundArgs, Archive]:
    """What a saved model was compiled for, and its file; nothing is executed."""
    try:
        saved = open_model(filename, version)
    except ValueError as error:
        raise Error(f"Invalid file {filename}: {error}") from error
    arguments = saved.find_arguments()
    if arguments is None:
        raise Error(
            f"{filename} was compiled for arguments of the program's own types, "
            "which only poptorch.load() can read."
        )
    return arguments, saved.archive
