"""PVTI_OPTIONS: whether, where, what and how long to trace."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from popple.errors import suggest

_LOG = logging.getLogger(__name__)
_NO = ("false", "0", "no", "off")
_KNOWN = ("enable", "directory", "channels", "duration")


@dataclass(frozen=True)
class Options:
    """Tracing as asked for; no channels means all, no seconds means no limit."""

    is_enabled: bool = True
    directory: Path = Path()
    channels: frozenset[str] = frozenset()
    duration_seconds: float = 0.0

    def is_wanted(self, channel: str) -> bool:
        """Whether a channel starts enabled."""
        return not self.channels or channel in self.channels


def read_options(text: str | None) -> Options:
    """The options of the environment: unset is off, what does not parse is all on.

    That a text without sense switches tracing on is the documented rule.
    """
    if text is None:
        return Options(is_enabled=False)
    try:
        return _parse(json.loads(text))
    except (ValueError, TypeError, AttributeError):
        return Options()


def _parse(entry: Any) -> Options:
    given = cast(dict[str, Any], entry)
    for name in given.keys() - set(_KNOWN):
        _LOG.warning("PVTI_OPTIONS: unknown option %r. %s", name, suggest(name, _KNOWN))
    channels = given.get("channels") or ()
    if isinstance(channels, str):
        channels = [name.strip() for name in channels.split(",")]
    return Options(
        is_enabled=str(given.get("enable", True)).lower() not in _NO,
        directory=Path(str(given.get("directory", ""))),
        channels=frozenset(map(str, channels)),
        duration_seconds=float(given.get("duration", 0)),
    )
