"""Params: the options of a benchmark tool, read from the text of its command line.

In: `--field {56,56} --stride 2 --bias 0 (a remark)`, or the words of a solver such as
`batch 2 dim 16 type half`. Out: values by name, asked for by type. What a model reads
is noted, so that an option nobody asked for is not passed over in silence.
"""

from __future__ import annotations

import re

import torch

from benchmarks.calibration.rows import NotExpressed

_REMARK = re.compile(r"\([^)]*\)")
_OPTION = re.compile(r"--([\w-]+)(?:[=\s]+(?!--)(\{[^}]*\}|\S+))?")
_WORDS = re.compile(r"([a-z][a-z-]*) (\S+)")
_DTYPES = {"half": torch.float16, "float": torch.float32}


class Params:
    """Options by name; `check_all_read` refuses those that no one understood."""

    def __init__(self, text: str) -> None:
        text = _REMARK.sub("", text)
        pattern = _OPTION if "--" in text else _WORDS
        self._values = {name: value for name, value in pattern.findall(text)}
        self._read: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str, default: str | None = None) -> str:
        """The option as it is written."""
        self._read.add(name)
        if name not in self._values and default is None:
            raise NotExpressed(f"the parameters do not say --{name}")
        return self._values.get(name) or default or ""

    def integer(self, name: str, default: int | None = None) -> int:
        """A count."""
        return int(self.text(name, None if default is None else str(default)))

    def number(self, name: str, default: float | None = None) -> float:
        """A real number."""
        return float(self.text(name, None if default is None else str(default)))

    def integers(self, name: str, default: str | None = None) -> tuple[int, ...]:
        """A shape, with or without braces."""
        return tuple(map(int, self.text(name, default).strip("{}").split(",")))

    def sizes(
        self, name: str, rank: int, default: int | None = None
    ) -> tuple[int, ...]:
        """A shape, or one number for each of `rank` dimensions."""
        given = self.integers(name, None if default is None else str(default))
        return given * rank if len(given) == 1 else given

    def flag(self, name: str, default: bool = False) -> bool:
        """A switch: true, false, 1, 0."""
        return self.text(name, str(default)).lower() in ("true", "1")

    def dtype(self, name: str = "data-type", default: str = "half") -> torch.dtype:
        """The type of numbers."""
        text = self.text(name, default)
        if text not in _DTYPES:
            raise NotExpressed(f"no tensor of type {text}")
        return _DTYPES[text]

    def check_all_read(self) -> None:
        """Refuse a row with an option that its model does not look at."""
        unread = sorted(set(self._values) - self._read)
        if unread:
            raise NotExpressed(f"no model for --{', --'.join(unread)}")
