"""The exceptions of the PopTorch interface.

    Error                    anything PopTorch refuses; has message, type, location
    |- RecoverableError      the device must be reset first (recovery_action)
    `- UnrecoverableError    the device is broken
    ConfigFileError          an options file does not parse

Many misuses are plain AssertionError or ValueError, as programs expect of them.
"""

from __future__ import annotations

__all__ = [
    "ConfigFileError",
    "Error",
    "RecoverableError",
    "UnrecoverableError",
    "check",
]

_PYTHON_ERROR = "poptorch_py_error"


class Error(Exception):
    """What went wrong (`message`), its kind (`type`) and where (`location`).

    `str()` of it is the message with its kind before it; errors from below the
    interface also name the place in the source and the calls that led to it.
    """

    def __init__(
        self,
        message: str,
        *,
        type: str = _PYTHON_ERROR,
        location: str = "",
        source_line: str = "",
    ) -> None:
        self.message = message
        self.type = type
        self.location = location
        self.source_line = source_line
        super().__init__(self._render())

    def _render(self) -> str:
        place = f"In {self.source_line}: " if self.source_line else ""
        lines = [f"{place}'{self.type}': {self.message}"]
        lines += self._advice()
        if self.location:
            lines += ["Error raised in:", self.location]
        return "\n".join(lines)

    def _advice(self) -> list[str]:
        return []

    def __reduce__(self) -> tuple[object, ...]:
        # Exception.__reduce__ would pass the rendered text back as `message`.
        return (_bare, (self.__class__, self.args), dict(self.__dict__))


class RecoverableError(Error):
    """The device can be used again after `recovery_action`, for example FULL_RESET."""

    def __init__(
        self,
        message: str,
        *,
        recovery_action: str,
        type: str = "poplar_recoverable_runtime_error",
        location: str = "",
        source_line: str = "",
    ) -> None:
        self.recovery_action = recovery_action
        super().__init__(message, type=type, location=location, source_line=source_line)

    def _advice(self) -> list[str]:
        return [f"Recovery action required: {self.recovery_action}"]


class UnrecoverableError(Error):
    """The device is beyond repair by software."""


class ConfigFileError(Exception):
    """An options file holds something that is not Python."""


def check(condition: object, message: str) -> None:
    """Raise AssertionError(message) unless `condition` holds.

    A function and not the statement, so that the checks survive `python -O`.
    """
    if not condition:
        raise AssertionError(message)


def _bare(cls: type[Error], args: tuple[object, ...]) -> Error:
    """An instance with `args` only; its fields follow as pickled state."""
    error = cls.__new__(cls)
    error.args = args
    return error
