"""TF_POPLAR_FLAGS: every flag, what it does here, and what it is set to.

The variable is read whenever something depends on a flag, so a program may set it at
any time. Unknown flags are refused, as a misspelt one would do nothing.
"""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any

from popple.errors import UsageError, suggest
from tensorflow_ipu._translate import REFUSED, WITHOUT_EFFECT, note_without_effect

__all__ = [
    "FLAGS",
    "Category",
    "Flag",
    "Flags",
    "Initializer",
    "executable_cache",
    "read",
    "running_on_ipu_model",
    "uses_synthetic_data",
]

_VARIABLE = "TF_POPLAR_FLAGS"
_LAUNCHERS_CACHE = "POPDIST_EXECUTABLE_CACHE_PATH"


class Category(Enum):
    """Kinds of data between host and device; values are those of the protobuf enum."""

    SEED = 0
    INFEED = 1
    OUTFEED = 2
    HOSTEMBEDDING = 3
    PARAMETERS = 4


@dataclass(frozen=True)
class Initializer:
    """What synthetic data consists of: "uniform" or "normal" numbers, or `constant`."""

    distribution: str = ""
    constant: int = 0

    @staticmethod
    def parse(text: str) -> Initializer:
        """From the value of a flag."""
        if text in ("uniform", "normal", "random"):
            return Initializer("normal" if text == "normal" else "uniform")
        return Initializer("", int(text))


@dataclass(frozen=True)
class Flag:
    """How a flag is read, and what it does; the tables say whether it does so here."""

    parse: Callable[[str], Any]
    default: Any
    meaning: str


def _bool(text: str) -> bool:
    known = {"": True, "true": True, "1": True, "false": False, "0": False}
    return known[text.lower()]


def _categories(text: str) -> frozenset[Category]:
    names = (name.strip() for name in text.split(","))
    return frozenset(Category[name.upper()] for name in names if name)


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(text)
        return text

    return parse


FLAGS: Mapping[str, Flag] = {
    "help": Flag(_bool, False, "print this list"),
    "use_ipu_model": Flag(_bool, False, "use the IPU Model: no IPU is attached to"),
    "ipu_model_tiles": Flag(
        int, -1, "tiles of an IPU Model, unless ipu_model.tiles_per_ipu is set"
    ),
    "use_on_demand": Flag(_bool, False, "attach as DeviceConnectionType.ON_DEMAND"),
    "on_demand_device_poll_time": Flag(
        int, 1000, "milliseconds between tries to attach on demand, at least 100"
    ),
    "on_demand_device_timeout": Flag(
        int, 3_600_000, "milliseconds after which attaching on demand is given up"
    ),
    "use_synthetic_data": Flag(_bool, False, "move no data between host and IPU"),
    "synthetic_data_categories": Flag(
        _categories,
        frozenset(),
        "kinds of data that are not moved: infeed, outfeed, seed, hostembedding, "
        "parameters, separated by commas",
    ),
    "synthetic_data_initializer": Flag(
        Initializer.parse, None, "what is there instead: uniform, normal or a number"
    ),
    "null_data_feed": Flag(_bool, False, "infeeds send zeros, not the data"),
    "log_cycle_count": Flag(int, -1, "log the modelled cycles of a run (tile number)"),
    "executable_cache_path": Flag(
        str, "", "keep compiled programs in this directory, as *.poplar_exec"
    ),
    "max_infeed_threads": Flag(int, -1, "threads that read an infeed"),
    "max_compilation_threads": Flag(int, -1, "threads that compile a program"),
    "while_loop_brute_force_max_trip_count": Flag(
        int, 128, "iterations tried in order to count those of a loop"
    ),
    "fallback_scheduler": Flag(_bool, False, "order operators as TensorFlow does"),
    "dump_schedule_as_dot": Flag(_bool, False, "write the order down"),
    "tensor_map_file_path": Flag(str, "", "write where tensors lie"),
    "show_progress_bar": Flag(
        _one_of("true", "false", "auto"), "auto", "show the progress"
    ),
    "sync_replica_start": Flag(_bool, False, "start replicas together"),
    "allow_nans": Flag(_bool, False, "let NaN pass"),
    "enable_hlo_verifier": Flag(_bool, False, "check every pass"),
    "disable_poplar_version_check": Flag(
        _bool, False, "run with any version of Poplar"
    ),
}


@dataclass(frozen=True)
class Flags:
    """The flags as they are set."""

    use_ipu_model: bool
    ipu_model_tiles: int
    use_on_demand: bool
    on_demand_device_poll_time: int
    on_demand_device_timeout: int
    use_synthetic_data: bool
    synthetic_data_categories: frozenset[Category]
    synthetic_data_initializer: Initializer | None
    null_data_feed: bool
    log_cycle_count: int
    executable_cache_path: str

    def __post_init__(self) -> None:
        synthetic = self.use_synthetic_data or self.synthetic_data_categories
        if self.synthetic_data_initializer and not synthetic:
            raise UsageError(
                "synthetic_data_initializer is set, but no data is synthetic.",
                where=_VARIABLE,
                remedy="Set use_synthetic_data or synthetic_data_categories too.",
            )

    @property
    def infeed_initializer(self) -> Initializer | None:
        """What infeeds consist of in place of the data; None for the data."""
        if self.is_synthetic(Category.INFEED):
            return self.synthetic_data_initializer or Initializer()
        return Initializer() if self.null_data_feed else None

    def is_synthetic(self, category: Category) -> bool:
        """Whether no data of that kind is moved."""
        return self.use_synthetic_data or category in self.synthetic_data_categories


def read() -> Flags:
    """The flags of TF_POPLAR_FLAGS as it is now."""
    return _parse(os.environ.get(_VARIABLE, ""))


def running_on_ipu_model() -> bool:
    """Whether programs run on the IPU Model and attach to no IPU."""
    return read().use_ipu_model


def executable_cache() -> Path | None:
    """The directory of the executable cache, if there is one: the flag's, or poprun's.

    The flag beats the launcher's option, which is for all programs of a job.
    """
    path = read().executable_cache_path or os.environ.get(_LAUNCHERS_CACHE, "")
    return Path(path) if path else None


def uses_synthetic_data(category: Category) -> bool:
    """Whether data of that kind is made up instead of moved."""
    return read().is_synthetic(category)


@functools.cache
def _parse(text: str) -> Flags:
    values = {name: flag.default for name, flag in FLAGS.items()}
    for word in _split(text):
        name, value = _parse_word(word)
        values[name] = value
        note_without_effect(f"{_VARIABLE}.{name}")
    if values["help"]:
        sys.stderr.write(_render_help())
    return Flags(**{field.name: values[field.name] for field in fields(Flags)})


def _split(text: str) -> Iterable[str]:
    """The words of the variable, or of the file that it names."""
    text = text.strip()
    if text and not text.startswith("-"):
        text = _read_file(text)
    return shlex.split(text)


def _read_file(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{path!r} is neither a flag nor a file of flags: {error.strerror}.",
            where=_VARIABLE,
            remedy="Flags begin with two hyphens.",
        ) from error


def _parse_word(word: str) -> tuple[str, Any]:
    name, _, text = word.removeprefix("--").partition("=")
    if not word.startswith("--") or name not in FLAGS:
        raise _make_unknown_error(word, name)
    try:
        return name, FLAGS[name].parse(text)
    except (KeyError, ValueError) as error:
        raise UsageError(
            f"--{name} cannot be {text!r}.",
            where=_VARIABLE,
            remedy=f"It means: {FLAGS[name].meaning}.",
        ) from error


def _make_unknown_error(word: str, name: str) -> UsageError:
    remedy = REFUSED.get(f"{_VARIABLE}.{name}") or suggest(name, FLAGS)
    return UsageError(f"Unknown flag {word!r}.", where=_VARIABLE, remedy=remedy)


def _render_help() -> str:
    lines = [f"Flags of {_VARIABLE}:"]
    for name, flag in FLAGS.items():
        reason = WITHOUT_EFFECT.get(f"{_VARIABLE}.{name}")
        note = f" (without effect: {reason})" if reason else ""
        lines.append(f"  --{name}: {flag.meaning}{note}")
    return "\n".join(lines) + "\n"
