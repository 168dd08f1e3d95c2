"""Digests of Python objects: values, attributes, and what they lead to.

The half of a fingerprint that looks at data; `fingerprint.py` adds code. An object is
read as it is: no method of it is called, but for those of extension types that tell
their state.
"""

from __future__ import annotations

import abc
import copyreg
import enum
import functools
import hashlib
import logging
import types
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from popple.session.packages import Packages

Describe = Callable[[Any], "tuple[Any, ...] | None"]
"""What a framework's object is, as values to go on with; None if it is no such object.

May raise Unknown."""

ATOMS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
"""Types whose values are known by their text."""

WRAPPERS = (staticmethod, classmethod)
"""What stands round functions in classes."""

NATIVE = (
    types.BuiltinFunctionType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
"""Functions of extension modules."""

_BOUND = (types.MethodType, types.MethodWrapperType)
_CACHED_FUNCTION = type(functools.lru_cache(len))
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


class Unknown(Exception):
    """An object that cannot be fingerprinted; the text says where it is and why."""


class ObjectDigest(abc.ABC):
    """A digest under way; `add` objects, then read `hexdigest`.

    Objects met twice count as one object: that two layers share a table is part of
    what the program is.
    """

    def __init__(self, packages: Packages, describe: Describe) -> None:
        self._packages = packages
        self._describe = describe
        self._hash = hashlib.sha256()
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []  # ids are only theirs as long as they live
        self._path: list[str] = []

    @abc.abstractmethod
    def _add_class(self, cls: type) -> None: ...

    @abc.abstractmethod
    def _add_function(self, function: types.FunctionType) -> None: ...

    @abc.abstractmethod
    def _add_whole_module(self, module: types.ModuleType) -> None: ...

    @abc.abstractmethod
    def _add_code(self, code: types.CodeType) -> None: ...

    def hexdigest(self) -> str:
        """The digest of all that was added."""
        return self._hash.hexdigest()

    def add(self, value: Any, where: str) -> None:
        """Add an object with all that it leads to; Unknown if it cannot be judged."""
        # After an error the path stays as it is: it is what the error tells.
        self._path.append(where)
        try:
            self._add(value)
        except RecursionError as error:
            raise self._unknown("its objects are nested too deeply") from error
        self._path.pop()

    def know(self, value: Any, name: str) -> None:
        """From now on this object counts as its name, whatever it holds."""
        self._seen[id(value)] = len(self._alive)
        self._alive.append(value)
        self._token("known", name)

    def _unknown(self, why: str) -> Unknown:
        return Unknown(f"{'.'.join(self._path)}: {why}")

    def _token(self, *texts: object) -> None:
        for text in texts:
            data = str(text).encode("utf-8", "surrogatepass")
            # With their lengths, so that no two lists of texts look alike.
            self._hash.update(b"%d:" % len(data))
            self._hash.update(data)

    # -- values

    def _add(self, value: Any) -> None:
        if type(value) in ATOMS:
            self._token(type(value).__name__, repr(value))
        elif type(value) in (tuple, frozenset, set):
            self._add_items(value)
        elif id(value) in self._seen:
            self._token("again", self._seen[id(value)])
        else:
            self._seen[id(value)] = len(self._alive)
            self._alive.append(value)
            self._add_new(value)

    def _add_items(self, value: Any) -> None:
        self._token(type(value).__name__, len(value))
        if not isinstance(value, tuple):
            if not all(isinstance(item, ATOMS) for item in value):
                raise self._unknown("a set of objects has no order")
            # That of their texts is as good as any.
            value = sorted(cast("Iterable[Any]", value), key=repr)
        for index, item in enumerate(cast("Iterable[Any]", value)):
            self.add(item, str(index))

    def _add_new(self, value: Any) -> None:
        try:
            described = self._describe(value)
        except Unknown as error:
            raise self._unknown(str(error)) from error
        if described is not None:
            self._token("described", len(described))
            for part in described:
                self._add(part)
        elif isinstance(value, type):
            self._add_class(value)
        elif isinstance(value, types.FunctionType):
            self._add_function(value)
        elif isinstance(value, types.ModuleType):
            self._add_whole_module(value)
        elif isinstance(value, types.CodeType):
            self._add_code(value)
        elif isinstance(value, enum.Enum):
            self._token("enum", value.name)
            self._add(type(value))
            self.add(value.value, value.name)
        elif isinstance(value, logging.Logger):
            self._token("logger", value.name)  # says something, computes nothing
        else:
            self._add_callable_or_object(value)

    def _add_callable_or_object(self, value: Any) -> None:
        inner = _parts_of(value)
        if inner is not None:
            self._token(type(value).__name__)
            self._add(inner)
        elif isinstance(value, _BOUND):
            self._token("method", value.__name__)
            self._add((getattr(value, "__func__", None), value.__self__))
        elif isinstance(value, NATIVE):
            self._add_native(value)
        else:
            self._add_object(value)

    def _add_native(self, value: Any) -> None:
        """A function of an extension module: known by name and package."""
        owner = getattr(value, "__objclass__", None)
        module = getattr(owner or value, "__module__", None) or ""
        self._token("native", module, getattr(value, "__qualname__", repr(value)))
        if module:
            self._token(self._packages.identify(module))
        bound_to = getattr(value, "__self__", None)
        # Functions of C modules are bound to their module.
        if bound_to is not None and not isinstance(bound_to, types.ModuleType):
            self.add(bound_to, "__self__")

    # -- objects

    def _add_object(self, value: Any) -> None:
        cls = _class_of(value)
        self._token("object", cls.__module__, cls.__qualname__)
        self._add(cls)
        if isinstance(value, (list, dict)):
            self._add_container(cast("Any", value))
            if isinstance(value, defaultdict):
                self.add(cast("Any", value).default_factory, "default_factory")
        elif isinstance(value, tuple):
            self._add_items(value)
        elif _keeps_hidden_state(cls):
            self._add_reduced(value)
            return
        for name, item in _attributes(value):
            self._token(name)
            self.add(item, name)

    def _add_container(self, value: list[Any] | dict[Any, Any]) -> None:
        self._token(len(value))
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in pairs:
            self.add(key, "key")
            self.add(item, str(key))

    def _add_reduced(self, value: Any) -> None:
        """The state of an object of an extension type, as it would be pickled."""
        if _is_handle(value):
            raise self._unknown(f"a {type(value).__name__} has state of its own")
        try:
            # As `copy` and `pickle` find it: types that others describe come first.
            registered = copyreg.dispatch_table.get(_class_of(value))
            reduced = registered(value) if registered else value.__reduce_ex__(4)
        except Exception as error:
            raise self._unknown(f"a {type(value).__name__} cannot be read") from error
        self._token("reduced")
        if isinstance(reduced, str):
            self._token(reduced)
            return
        for part in reduced:
            if isinstance(part, Iterator):
                part = list(cast("Iterator[Any]", part))
            self.add(part, "state")


def _class_of(value: object) -> type:
    return type(value)


def _parts_of(value: Any) -> tuple[Any, ...] | None:
    """What objects of Python's own types consist of, where it is no attribute."""
    if isinstance(value, functools.partial):
        found = cast("functools.partial[Any]", value)
        return (found.func, found.args, found.keywords)
    if isinstance(value, WRAPPERS):
        return (cast("Any", value).__func__,)
    if isinstance(value, property):
        return (value.fget, value.fset, value.fdel)
    if isinstance(value, functools.cached_property):
        return (cast("Any", value).func,)
    # What a cache has kept so far is what the function would give again.
    if isinstance(value, _CACHED_FUNCTION):
        return (cast("Any", value).__wrapped__,)
    if isinstance(value, weakref.ReferenceType):
        return (cast("Any", value)(),)
    if isinstance(value, types.MappingProxyType):
        return (dict(cast("Mapping[Any, Any]", value)),)
    return None


def _attributes(value: Any) -> list[tuple[str, Any]]:
    """The attributes an object has of its own: its dict and its slots."""
    found: dict[str, Any] = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        slots: Any = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            mangled = name
            if name.startswith("__") and not name.endswith("__"):
                mangled = f"_{cls.__name__.lstrip('_')}{name}"
            if mangled not in ("__dict__", "__weakref__") and hasattr(value, mangled):
                found.setdefault(mangled, getattr(value, mangled))
    return list(found.items())


def _keeps_hidden_state(cls: type) -> bool:
    """Whether objects of a class have state that is no attribute in Python."""
    return any(base is not object and not _is_plain_class(base) for base in cls.__mro__)


def _is_plain_class(cls: type) -> bool:
    """Whether a class was made by a class statement, and adds attributes at most."""
    if not cls.__flags__ & _HEAP_TYPE:
        return False
    own = vars(cls)
    adds_nothing = cls.__base__ and cls.__basicsize__ == cls.__base__.__basicsize__
    is_python = not own.keys().isdisjoint({"__dict__", "__weakref__", "__slots__"})
    return bool(adds_nothing) or is_python


def _is_handle(value: Any) -> bool:
    """Whether an object stands for something outside: its state is not in it."""
    return isinstance(value, Iterator) or hasattr(value, "fileno")
