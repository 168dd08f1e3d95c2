"""Configurations as trees of typed attributes that know their own documentation.

In: subclasses of `_ConfigBase` whose `__init__` assigns every attribute once (or lets
methods called `_declare_*` do it), with a hint, or a default that shows the type, and a
text above it; an attribute whose value is a configuration is a category. Out: objects
that refuse unknown names and wrong types, suggest near names, warn of what is
deprecated, and can be saved, printed and copied.
"""

from __future__ import annotations

import copy
import difflib
import enum
import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar

from tensorflow.python.platform import tf_logging as logging

from tensorflow_ipu._types import Message

from . import hints
from .metadata import AttributeMetadata
from .source import Declaration, declarations

_C = TypeVar("_C", bound="type[_ConfigBase]")

# Kept beside the attributes in an instance's own dictionary.
_ATTRIBUTES = "_attributes"
_OPEN = "_num_running_inits"


def deprecate_config_attribute(name: str, msg: str) -> Callable[[_C], _C]:
    """Class decorator: the attribute should no longer be used, because of `msg`."""
    return deprecate_config_attributes({name: msg})


def deprecate_config_attributes(
    to_deprecate: Mapping[str, str] | Iterable[tuple[str, str]],
) -> Callable[[_C], _C]:
    """Class decorator: several attributes should no longer be used."""

    def decorate(cls: _C) -> _C:
        cls._deprecations = {**cls._deprecations, **dict(to_deprecate)}
        return cls

    return decorate


class _ConfigBase:
    """A configuration, or a category of one. Attributes are made in `__init__` only."""

    _deprecations: Mapping[str, str] = {}
    _summary = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._summary = cls.__doc__ or ""
        if "__init__" in cls.__dict__:
            cls.__init__ = _opening(cls.__init__)

    def __getattr__(self, k: str) -> Any:
        if k in (_ATTRIBUTES, _OPEN):
            self.__dict__.update({_ATTRIBUTES: {}, _OPEN: 0})
            return self.__dict__[k]
        self._refuse(k)

    def __setattr__(self, k: str, v: Any) -> None:
        if k in self._attributes:
            self._change(k, v)
        elif self._num_running_inits:
            self._create(k, v)
        else:
            self._refuse(k)

    def _refuse(self, k: str) -> NoReturn:
        # A misspelt option that was created silently would have no effect.
        near = difflib.get_close_matches(k, self._attributes)
        advice = f" Did you mean '{self._get_full_name(near[0])}'?" if near else ""
        raise ValueError(f"'{k}' is not a valid attribute of this config.{advice}")

    def _change(self, k: str, v: Any) -> None:
        metadata = self._attributes[k]
        metadata.warn_if_deprecated()
        if k in self._categories():
            raise Exception(f"{metadata.name} is a category and cannot be assigned to.")
        metadata.check_type(v)
        object.__setattr__(self, k, v)

    def _create(self, k: str, v: Any) -> None:
        declared = _declared(type(self)).get(k, Declaration())
        self._attributes[k] = _describe(k, v, declared, self._deprecations.get(k))
        object.__setattr__(self, k, v)
        if isinstance(v, _ConfigBase):
            v._nest(k)

    def _nest(self, category: str) -> None:
        """Tell all attributes that this configuration became a category of another."""
        for metadata in self._all_attributes():
            metadata._nest(category)

    def _categories(self) -> dict[str, _ConfigBase]:
        values = ((k, self.__dict__[k]) for k in self._attributes)
        return {k: v for k, v in values if isinstance(v, _ConfigBase)}

    def _all_attributes(self) -> Iterator[AttributeMetadata]:
        """Of this configuration and of the categories in it, in order."""
        categories = self._categories()
        for k, metadata in self._attributes.items():
            yield metadata
            if k in categories:
                yield from categories[k]._all_attributes()

    def _options(self) -> Iterator[tuple[_ConfigBase, str, AttributeMetadata]]:
        """Every option with the configuration or category that holds it, in order."""
        categories = self._categories()
        for k, metadata in self._attributes.items():
            if k in categories:
                yield from categories[k]._options()
            else:
                yield self, k, metadata

    def _get_full_name(self, attr: str) -> str:
        return self._attributes[attr].name

    def _finalize_base_config(self) -> None:
        """Called last in the `__init__` of the outermost class.

        Passes deprecations of categories on and writes the documentation of the class.
        """
        self._pass_deprecations_on()
        summary = f"{self._summary}\n\n" if self._summary else ""
        type(self).__doc__ = summary + "".join(self._render_all())

    def _pass_deprecations_on(self) -> None:
        for k, category in self._categories().items():
            message = self._attributes[k].deprecated_msg
            if message is not None:
                for metadata in category._all_attributes():
                    metadata._deprecate(message)
            category._pass_deprecations_on()

    def _render_all(self) -> Iterator[str]:
        categories = self._categories()
        for index, (k, metadata) in enumerate(self._attributes.items()):
            shown = metadata.name
            if index == 0 and metadata._depth > 2:
                # Sphinx takes the first dotted name below the second level for a class
                # and strips it, so that part is there twice.
                shown = f"{shown.rsplit('.', 2)[0]}.{shown}"
            yield metadata._render(shown)
            if k in categories:
                yield from categories[k]._render_all()

    def _to_protobuf(self, pb: Message) -> None:
        """Write the categories into `pb`; subclasses add what is their own."""
        for category in self._categories().values():
            category._to_protobuf(pb)

    def get_attribute_metadata(self, attr: str) -> AttributeMetadata:
        """What is known about the attribute of that dotted name, relative to here."""
        *path, last = attr.split(".")
        try:
            owner = self
            for part in path:
                owner = owner._categories().get(part) or owner._refuse(part)
            return owner._attributes.get(last) or owner._refuse(last)
        except ValueError as error:
            raise ValueError(
                f"Could not get attribute metadata for '{attr}': {error}"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """All options by full name; enums as their integers."""
        values = ((m.name, getattr(owner, k)) for owner, k, m in self._options())
        return {
            name: value.value if isinstance(value, enum.Enum) else value
            for name, value in values
        }

    def from_dict(self, dct: Mapping[str, Any]) -> None:
        """Set the options that `dct` has, by full name; warn of those it lacks."""
        for owner, k, metadata in self._options():
            if metadata.name not in dct:
                logging.warn(
                    f"{metadata.name} didn't have a value in what was read: it stays "
                    "as it is"
                )
                continue
            value = _restore(dct[metadata.name], metadata.actual_type)
            if value != getattr(owner, k):
                setattr(owner, k, value)

    def to_json(self) -> str:
        """All options as JSON, by full name."""
        return json.dumps(self.to_dict())

    def from_json(self, json_cfg: str) -> None:
        """Set the options that the JSON text has."""
        self.from_dict(json.loads(json_cfg))

    def __deepcopy__(self, memo: dict[int, Any]) -> _ConfigBase:
        # Past `__init__`, which would declare all attributes with their defaults.
        new = type(self).__new__(type(self))
        memo[id(self)] = new
        new.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return new

    def __str__(self) -> str:
        lines = (
            f"{m.name} = {_show(getattr(owner, k))}" for owner, k, m in self._options()
        )
        return os.linesep.join(lines)

    def __repr__(self) -> str:
        lines = ("  " + line for line in str(self).split(os.linesep))
        return os.linesep.join([f"{type(self).__name__}:", *lines])


def _opening(init: Callable[..., None]) -> Callable[..., None]:
    """`init`, with attributes allowed to come into being while it runs."""

    @functools.wraps(init)
    def opened(self: _ConfigBase, *args: Any, **kwargs: Any) -> None:
        self.__dict__[_OPEN] = self._num_running_inits + 1
        try:
            init(self, *args, **kwargs)
        finally:
            self.__dict__[_OPEN] -= 1

    return opened


def _declared(cls: type) -> dict[str, Declaration]:
    """What the sources of a class and its bases declare."""
    found = dict[str, Declaration]()
    for base in reversed(cls.__mro__[:-1]):
        for name, function in vars(base).items():
            if name == "__init__" or name.startswith("_declare_"):
                found.update(declarations(getattr(function, "__wrapped__", function)))
    return found


def _describe(
    name: str, value: object, declared: Declaration, deprecated_msg: str | None
) -> AttributeMetadata:
    text = declared.doc or "No description provided."
    if isinstance(value, _ConfigBase):
        return AttributeMetadata(name, text, 1, deprecated_msg=deprecated_msg)
    hint = type(value) if declared.hint is None else declared.hint
    hints.check_readable(hint)
    return AttributeMetadata(
        name,
        text,
        depth=1,
        default=copy.deepcopy(value),
        deprecated_msg=deprecated_msg,
        attr_type=hints.single_type(hint),
        attr_type_str=hints.render(hint),
        check_type_fn=functools.partial(hints.fits, hint=hint),
    )


def _restore(value: object, kind: type | None) -> object:
    is_enum = kind is not None and issubclass(kind, enum.Enum)
    return kind(value) if kind is not None and is_enum else value


def _show(value: object) -> str:
    return str(value) if isinstance(value, enum.Enum) else repr(value)
