"""How options are described, stored, checked and frozen.

An option is one row, an `OptionSpec`; `setter(row)` makes the public method that
sets it. A class of options is a subclass of `OptionsDict` whose body lists such
methods: the class body is the table. Values are read back as attributes.

Three stores exist: the group's own values, the values the backend reads (shared
by several groups), and private attributes that are never serialised.
"""

from __future__ import annotations

import copy
import enum
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from popple.errors import suggest
from popple.text_table import render_html_table

from .._errors import check
from .former import get_former

__all__ = ["Freezable", "OptionSpec", "OptionsDict", "Store", "positive", "setter"]


class _Mark(enum.Enum):
    """Tells "no value" from every value a user can give, None included."""

    UNSET = "unset"


UNSET = _Mark.UNSET


class Store(enum.Enum):
    """Where the value of an option is kept."""

    GROUP = "group"
    BACKEND = "backend"
    PRIVATE = "private"


def _accept(value: Any) -> str:
    return ""


def _unchanged(value: Any) -> Any:
    return value


def positive(value: Any) -> str:
    """What is wrong with `value` as a count, or nothing."""
    return "" if value >= 1 else f"must be at least 1 but is {value}"


@dataclass(frozen=True)
class OptionSpec:
    """One option: its name when read back, its default, what it accepts, its meaning.

    `accepts` is the type demanded (default: that of `default`; None: any).
    `complain` returns what is wrong with a value of the right type, or "".
    `stored` turns the user's value into the kept one.
    `argument` and `argument_default` describe the setter's only parameter.
    """

    key: str
    doc: str
    default: Any = UNSET
    accepts: type | tuple[type, ...] | None = None
    complain: Callable[[Any], str] = _accept
    stored: Callable[[Any], Any] = _unchanged
    store: Store = Store.GROUP
    argument: str = ""
    argument_default: Any = UNSET

    def __post_init__(self) -> None:
        if not self.key or not self.doc:
            raise ValueError("an option needs a key and a sentence of documentation")

    @property
    def required_type(self) -> type | tuple[type, ...] | None:
        """The type a value must have; None if anything goes."""
        if self.accepts is not None or self.default is UNSET:
            return self.accepts
        return type(self.default)

    @property
    def signature(self) -> inspect.Signature:
        """Signature of the setter: self and one parameter."""
        keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = self.argument_default
        if default is UNSET:
            default = inspect.Parameter.empty
        name = self.argument or self.key
        return inspect.Signature(
            [
                inspect.Parameter("self", keyword),
                inspect.Parameter(name, keyword, default=default),
            ]
        )

    def checked(self, value: Any) -> Any:
        """`value` as it is stored; AssertionError if it is not acceptable."""
        check_type(self.key, value, self.required_type)
        complaint = self.complain(value)
        check(not complaint, f"Option {self.key} {complaint}.")
        return self.stored(value)


def check_type(key: str, value: Any, required: type | tuple[type, ...] | None) -> None:
    """AssertionError unless `value` is an instance of `required`."""
    if required is None or isinstance(value, required):
        return
    types = required if isinstance(required, tuple) else (required,)
    wanted = " or ".join(t.__name__ for t in types)
    raise AssertionError(
        f"Unexpected type {type(value).__name__} for option {key}. Expected {wanted}."
    )


def setter(spec: OptionSpec) -> Callable[..., Any]:
    """The method that sets `spec` and returns its group, for chaining."""
    signature = spec.signature
    name = list(signature.parameters)[1]

    def method(self: OptionsDict, *args: Any, **kwargs: Any) -> OptionsDict:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        self._keep(spec, bound.arguments[name])
        return self

    method.__doc__ = spec.doc
    method.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    method.option = spec  # pyright: ignore[reportFunctionMemberAccess]
    return method


class Freezable:
    """Something that cannot be changed once a model or loader uses it."""

    _is_frozen: bool = False

    def checkIsFrozen(self, option: str | None = None) -> None:
        """AttributeError if frozen."""
        if option != "_is_frozen" and self.__dict__.get("_is_frozen", False):
            raise AttributeError(
                "Can't modify frozen Options: a model or a DataLoader already uses "
                "them. Change a copy, `options.clone()`, and pass that one."
            )

    def _set_frozen(self, frozen: bool) -> None:
        self.__dict__["_is_frozen"] = frozen
        for part in self.__dict__.values():
            if isinstance(part, Freezable):
                part._set_frozen(frozen)

    def _freeze(self) -> None:
        self._set_frozen(True)

    def _unfreeze(self) -> None:
        self._set_frozen(False)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """An unfrozen copy; parts that groups share stay shared in the copy."""
        duplicate = self.__class__.__new__(self.__class__)
        memo[id(self)] = duplicate
        duplicate.__dict__.update(copy.deepcopy(self.__dict__, memo))
        duplicate.__dict__["_is_frozen"] = False
        return duplicate


class OptionsDict(Freezable):
    """A set of named values of which only known ones can be set.

    Public attributes are the options; what begins with an underscore is internal.
    `group.name`, `group("name")` read; `group.name = value`, setters write.
    """

    _specs: ClassVar[dict[str, OptionSpec]] = {}
    _values: dict[str, Any]

    def __init_subclass__(cls) -> None:
        """Name the setters listed in the class body and collect their rows."""
        own: dict[str, OptionSpec] = {}
        for name, member in vars(cls).items():
            spec = getattr(member, "option", None)
            if isinstance(spec, OptionSpec):
                member.__name__ = name
                member.__qualname__ = f"{cls.__qualname__}.{name}"
                own[name] = spec
        cls._specs = {**cls._specs, **own}

    def __init__(self, **default_values: Any) -> None:
        """Start from the defaults of the class's rows and `default_values`."""
        self.__dict__["_is_frozen"] = False
        self.__dict__["_values"] = dict(default_values)
        for spec in self._specs.values():
            if spec.default is not UNSET:
                self._keep(spec, copy.copy(spec.default), is_default=True)

    def _keep(self, spec: OptionSpec, value: Any, is_default: bool = False) -> None:
        self.checkIsFrozen()
        kept = value if is_default else spec.checked(value)
        if spec.store is Store.PRIVATE:
            self.__dict__[spec.key] = kept
        elif spec.store is Store.BACKEND:
            self.__dict__["_popart"]._put(spec.key, kept)
        else:
            self._values[spec.key] = kept

    def _find_spec(self, key: str) -> OptionSpec | None:
        rows = (s for s in self._specs.values() if s.store is Store.GROUP)
        return next((row for row in rows if row.key == key), None)

    def set(self, **kwargs: Any) -> None:
        """Change options that have a value; AssertionError for others."""
        self.checkIsFrozen()
        for key, value in kwargs.items():
            check(
                key in self._values,
                f"Invalid option {key}. {suggest(key, self._values)}",
            )
            self._assign(key, value)

    def _assign(self, key: str, value: Any) -> None:
        spec = self._find_spec(key)
        if spec is not None:
            self._keep(spec, value)
            return
        check_type(key, value, type(self._values[key]))
        self._values[key] = value

    def createOrSet(self, **kwargs: Any) -> None:
        """Change options, or add those that have no value yet."""
        self.checkIsFrozen()
        for key, value in kwargs.items():
            if key in self._values or self._find_spec(key) is not None:
                self._assign(key, value)
            else:
                self._values[key] = value

    def exists(self, option: str) -> bool:
        """Whether `option` has a value."""
        return option in self._values

    def deleteIfExists(self, option: str) -> None:
        """Take the value of `option` away, if it has one."""
        self.checkIsFrozen()
        self._values.pop(option, None)

    def update(self, other: dict[str, Any]) -> dict[str, Any]:
        """Add this group's values to `other`; AssertionError if keys collide."""
        common = sorted(self._values.keys() & other.keys())
        check(not common, f"Options are set in two places: {', '.join(common)}.")
        other.update(self._values)
        return other

    def toDict(self) -> dict[str, Any]:
        """The values that have been set, by name."""
        return self.update({})

    def _option_names(self) -> Iterator[str]:
        """Names of the setters made from rows."""
        yield from self._specs

    def __call__(self, option: str) -> Any:
        return getattr(self, option)

    def __getattr__(self, option: str) -> Any:
        # Only reached when normal lookup fails; `_values` is missing while
        # an object is being unpickled.
        values = self.__dict__.get("_values", {})
        if option in values:
            return values[option]
        hint = "" if option.startswith("_") else f" {suggest(option, self._known())}"
        return get_former(self, option, f"Invalid attribute {option}.{hint}")

    def _known(self) -> set[str]:
        """Names that programs may use: values, setters and groups."""
        own = (cls for cls in type(self).__mro__ if cls not in OptionsDict.__mro__)
        names = (name for cls in own for name in vars(cls) if not name.startswith("_"))
        return {*self.__dict__.get("_values", {}), *names}

    def __setattr__(self, option: str, value: Any) -> None:
        if option.startswith("_"):
            self.checkIsFrozen(option)
            object.__setattr__(self, option, value)
        else:
            self.set(**{option: value})

    def _repr_items(self) -> list[str]:
        return [f"{key}={value!r}" for key, value in self._values.items()]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._repr_items())})"

    def _repr_html_(self) -> str:
        rows = [item.partition("=")[::2] for item in self._repr_items()]
        return render_html_table(type(self).__name__, rows)
