"""Plain: frozen dataclasses as JSON data and back, by their annotated types.

In: a value of dataclasses, enums, tuples, mappings, numbers and texts. Out: what
`json.dumps` takes, fields at their default left out; `from_plain` gives it back.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Union, cast, get_args, get_origin, get_type_hints


def to_plain(value: Any) -> Any:
    """The value as lists, objects with text keys, numbers and texts."""
    if isinstance(value, enum.Enum):
        return value.value
    if is_dataclass(value):
        return {
            each.name: to_plain(getattr(value, each.name))
            for each in fields(value)
            if each.init and getattr(value, each.name) != _default_of(each)
        }
    if isinstance(value, Mapping):
        # As pairs: keys may be tuples or numbers.
        pairs = cast("Mapping[Any, Any]", value).items()
        return [[to_plain(key), to_plain(item)] for key, item in pairs]
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in cast("tuple[Any, ...]", value)]
    return value


def from_plain(kind: Any, data: Any) -> Any:
    """A value of the type `kind` from what `to_plain` gave."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _from_union(get_args(kind), data)
    if origin is tuple:
        return _from_tuple(get_args(kind), data)
    if origin is not None and issubclass(origin, Mapping):
        key, item = get_args(kind)
        return {from_plain(key, k): from_plain(item, v) for k, v in data}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(data)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        given = {name: from_plain(hints[name], part) for name, part in data.items()}
        return cast("Any", kind)(**given)
    return data


def _from_union(kinds: tuple[Any, ...], data: Any) -> Any:
    """Unions here are of one type and None."""
    if data is None:
        return None
    (kind,) = (each for each in kinds if each is not type(None))
    return from_plain(kind, data)


def _from_tuple(kinds: tuple[Any, ...], data: Any) -> tuple[Any, ...]:
    if kinds[-1] is Ellipsis:
        return tuple(from_plain(kinds[0], item) for item in data)
    return tuple(from_plain(k, item) for k, item in zip(kinds, data, strict=True))


def _default_of(item: Field[Any]) -> Any:
    if item.default is not MISSING:
        return item.default
    return MISSING if item.default_factory is MISSING else item.default_factory()
