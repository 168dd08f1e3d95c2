"""Settings: the environment variables of Popple, read in one place for all facades.

    POPPLE_TARGET    the machine that programs see and are modelled on
    POPPLE_BACKEND   how steps are executed: replay, inductor
    POPPLE_DEVICE    the computer's device they run on: cpu, cuda
    POPPLE_NUMERICS  parts of the machine's arithmetic to compute with
    POPPLE_KEEP_BFLOAT16  a GPU computes in bfloat16, which the machine does not have
    POPPLE_REPORT    a directory: every program writes its report there
    POPPLE_QUIET     no progress bars
    POPPLE_STRICT    programs that do not fit into memory are refused
    POPPLE_MODEL_ONLY  programs are captured and modelled, values are not computed

`popple run` sets them from its options. POPLAR_ENGINE_OPTIONS is the vendor's: a JSON
object of engine options, which beat those that the program gives itself. It and its
siblings are checked against the tables of `poplar_options`; *_LOG_LEVEL and *_LOG_DEST
are followed by `popple.logs`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from popple import logs
from popple.errors import UsageError
from popple.session import poplar_options

DEFAULT_TARGET = "bow-pod16"
_ENGINE_OPTIONS = "POPLAR_ENGINE_OPTIONS"


@dataclass(frozen=True)
class Settings:
    """Everything that `popple run` and the user's shell can set.

    An empty `target` leaves the choice to the facade. `numerics` are names as the user
    wrote them, for the engine to check.
    """

    target: str = ""
    backend: str = "replay"
    device: str = "cpu"
    numerics: tuple[str, ...] = ()
    report: Path | None = None
    is_quiet: bool = False
    is_strict: bool = False
    is_model_only: bool = False
    keeps_bfloat16: bool = False


def read_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from the environment as it is now.

    They are not kept: programs may change the variables between two models.
    """
    found = os.environ if environ is None else environ
    numerics = found.get("POPPLE_NUMERICS", "").split(",")
    report = found.get("POPPLE_REPORT")
    return Settings(
        # Empty text counts as unset, as in a shell where a variable cannot always be
        # removed.
        target=found.get("POPPLE_TARGET", ""),
        backend=found.get("POPPLE_BACKEND") or "replay",
        device=found.get("POPPLE_DEVICE") or "cpu",
        numerics=tuple(name.strip() for name in numerics if name.strip()),
        report=Path(report) if report else None,
        is_quiet=bool(found.get("POPPLE_QUIET")),
        is_strict=bool(found.get("POPPLE_STRICT")),
        is_model_only=bool(found.get("POPPLE_MODEL_ONLY")),
        keeps_bfloat16=bool(found.get("POPPLE_KEEP_BFLOAT16")),
    )


def engine_options(
    given: Mapping[str, object], environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The engine options in force: the environment's beat the program's own.

    Unknown names are reported, those of the other variables of Poplar too.
    """
    found = os.environ if environ is None else environ
    poplar_options.note_options(_ENGINE_OPTIONS, given, "engine options")
    read = {name: _read_options(name, found) for name in poplar_options.TABLES}
    # The user's shell wins, as with Poplar: profiles are turned on without changing the
    # program.
    options = {**given, **read[_ENGINE_OPTIONS]}
    return {name: _as_text(value) for name, value in options.items()}


def follow_log_variables(environ: Mapping[str, str] | None = None) -> None:
    """Set what Poplar, PopLibs and PopART log, and where, as the variables say now."""
    logs.configure(os.environ if environ is None else environ)


def _read_options(variable: str, environ: Mapping[str, str]) -> dict[str, object]:
    text = environ.get(variable) or "{}"
    try:
        options: dict[str, object] = dict(json.loads(text))
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"{variable} is not a JSON object: {error}.",
            remedy='Write it like {"autoReport.all": "true"}.',
        ) from error
    poplar_options.note_options(variable, options)
    return options


def _as_text(value: object) -> str:
    """Engine options are strings; Python and JSON have booleans of their own."""
    return str(value).lower() if isinstance(value, bool) else str(value)
