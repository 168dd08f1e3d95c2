"""What is known about one attribute of a configuration."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tensorflow.python.platform import tf_logging as logging


class AttributeMetadata:
    """Name, type, default, text and deprecation of an option or a category.

    The type, as text, and the default of a category are None.
    """

    def __init__(
        self,
        name: str,
        doc: str = "",
        depth: int = 0,
        default: Any = None,
        deprecated_msg: str | None = None,
        attr_type: type | None = None,
        attr_type_str: str | None = None,
        check_type_fn: Callable[[Any], bool] = lambda v: True,
    ) -> None:
        self.__doc__ = inspect.cleandoc(doc)
        self._name = name
        self._depth = depth
        self._default = default
        self._deprecated_msg = deprecated_msg
        self._actual_type = attr_type
        self._type = attr_type_str
        self._check_type_fn = check_type_fn

    @property
    def name(self) -> str:
        """Full name, as seen from the configuration the user made."""
        return self._name

    @property
    def deprecated(self) -> bool:
        """Whether the attribute should no longer be used."""
        return self._deprecated_msg is not None

    @property
    def deprecated_msg(self) -> str | None:
        """Why it should not be used; None if it may."""
        return self._deprecated_msg

    @property
    def type(self) -> str | None:
        """The types that are accepted, as text."""
        return self._type

    @property
    def actual_type(self) -> type | None:
        """The class of the values; None if there is a choice."""
        return self._actual_type

    @property
    def default(self) -> object:
        """The value of a new configuration."""
        return self._default

    def check_type(self, value: object) -> None:
        """Raise TypeError if the option cannot have that value."""
        if not self._check_type_fn(value):
            raise TypeError(
                f"Trying to set {self.name} to {value}, but it must be of type "
                f"{self.type}"
            )

    def warn_if_deprecated(self) -> None:
        """Log a warning if the attribute should no longer be used."""
        if self.deprecated:
            logging.warn(f"{self.name} has been deprecated: {self.deprecated_msg}")

    def _nest(self, category: str) -> None:
        """Become an attribute of `category`, one level deeper."""
        self._name = f"{category}.{self._name}"
        self._depth += 1

    def _deprecate(self, msg: str) -> None:
        """Take over the deprecation of the category, unless there is an own one."""
        self._deprecated_msg = self._deprecated_msg or msg

    def _render(self, shown_name: str) -> str:
        """The attribute as reStructuredText, indented by its depth."""
        lines = [f".. _{self.name}:", f".. py:attribute:: {shown_name}"]
        if self.type is not None:
            lines += [f"   :type: {self.type}", f"   :value: {_quote(self.default)}"]
        lines.append("")
        if self.deprecated:
            lines.append("   .. note::\n")
            lines.append(f"      DEPRECATED: {self.deprecated_msg}\n")
        lines += [f"   {line}" for line in (self.__doc__ or "").split("\n")]
        indent = "   " * (self._depth + 1)
        return "\n".join(indent + line for line in lines) + "\n\n"


def _quote(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else str(default)
