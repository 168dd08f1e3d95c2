"""Arguments and operators of traced nodes as JSON, written and checked when read.

null, true, 3, 0.5, "text", [...]   themselves
{"n": 7}                            the node of that number
{"t": [...]}                        a tuple
{"d": [[key, value], ...]}          a dict
{"s": [start, stop, step]}          a slice
{"f": "inf"}                        a number without a form in JSON
{"c": [1.0, 2.0]}                   a complex number
{"torch": "float32"}                a type, layout or memory format
{"device": "cpu"}                   a device
"""

from __future__ import annotations

import functools
import keyword
import math
import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch._ops import OpOverload
from torch.fx import Node

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATOR = re.compile(r"([a-z][a-z0-9_]*)\.([A-Za-z_][A-Za-z0-9_]*)\.([A-Za-z0-9_]+)")
# Operators over tensors. Those of other libraries are not kept: what they do besides
# computing is not known.
_NAMESPACES = frozenset({"aten", "prims", "popple"})
# Operators of PyTorch itself that reach beyond tensors.
_REFUSED = frozenset({"aten.from_file", "aten.save", "aten.warn", "aten.load"})
_PLAIN = (bool, int, str, type(None))
_NUMBERS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_CONSTANTS = (torch.dtype, torch.layout, torch.memory_format)
_DEVICE_NAME = re.compile(r"(cpu|cuda|meta)(:[0-9]{1,3})?")

Item = TypeVar("Item", bound=Hashable)


class NotStorable(Exception):
    """A step has a part that cannot be written to a file; the text says which."""


class Tables(Generic[Item]):
    """Different items by number, in the order in which they were met."""

    def __init__(self) -> None:
        self._numbers: dict[Item, int] = {}

    def number(self, item: Item) -> int:
        """The number of an item, a new one if it was not met before."""
        return self._numbers.setdefault(item, len(self._numbers))

    @property
    def rows(self) -> list[Item]:
        """All items by number."""
        return list(self._numbers)


def check(is_right: object, why: str) -> None:
    """ValueError unless the data of a step are as they should be."""
    if not is_right:
        raise ValueError(why)


def is_identifier(name: Any) -> bool:
    """Whether a name can stand in source code as it is."""
    is_name = isinstance(name, str) and _IDENTIFIER.fullmatch(name) is not None
    return is_name and not keyword.iskeyword(name)


def whole(value: Any) -> int:
    """A whole number that is not negative."""
    check(type(value) is int and 0 <= value < 2**62, f"{value!r} is no count")
    return value


def whole_list(value: Any) -> list[int]:
    """A list of whole numbers that are not negative."""
    check(isinstance(value, list), f"{value!r} is no list")
    return [whole(item) for item in value]


def find_dtype(name: Any) -> torch.dtype:
    """The number format of a name such as `float32`; ValueError if there is none."""
    found = vars(torch).get(name) if isinstance(name, str) else None
    if not isinstance(found, torch.dtype):
        raise ValueError(f"there is no type {name!r}")
    return found


# -- arguments


def pack(value: Any, number_of: Callable[[Node], int]) -> Any:
    """An argument of a node as JSON."""
    if isinstance(value, Node):
        return {"n": number_of(value)}
    if type(value) in _PLAIN:
        return value
    if isinstance(value, (list, tuple)):
        items = [pack(item, number_of) for item in value]
        return items if isinstance(value, list) else {"t": items}
    if isinstance(value, dict):
        pairs = [[key, pack(item, number_of)] for key, item in value.items()]
        return {"d": pairs}
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return {"s": [pack(part, number_of) for part in parts]}
    return _pack_constant(value)


def _pack_constant(value: Any) -> Any:
    if type(value) is float:
        return value if math.isfinite(value) else {"f": str(value)}
    if type(value) is complex:
        return {"c": [_pack_constant(value.real), _pack_constant(value.imag)]}
    if isinstance(value, _CONSTANTS):
        return {"torch": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    raise NotStorable(f"an operator takes a {type(value).__name__}")


def unpack(value: Any, nodes: Sequence[Node] = ()) -> Any:
    """The argument that JSON stands for; it refers to earlier `nodes` only."""
    if type(value) in _PLAIN or type(value) is float:
        return value
    if isinstance(value, list):
        return [unpack(item, nodes) for item in value]
    check(isinstance(value, dict) and len(value) == 1, f"{value!r} is no argument")
    ((kind, content),) = value.items()
    if kind == "n":
        return nodes[whole(content)]
    if kind == "t":
        return tuple(unpack(item, nodes) for item in content)
    if kind == "d":
        pairs = [(key, unpack(item, nodes)) for key, item in content]
        check(all(type(key) in (str, int) for key, _ in pairs), "odd keys of a dict")
        return dict(pairs)
    if kind == "s":
        start, stop, step = (unpack(part, nodes) for part in content)
        return slice(start, stop, step)
    return _unpack_constant(kind, content)


def _unpack_constant(kind: Any, content: Any) -> Any:
    if kind == "f":
        return _NUMBERS[content]
    if kind == "c":
        real, imaginary = (unpack(part) for part in content)
        return complex(real, imaginary)
    if kind == "torch":
        # Not by getattr: that would load modules of PyTorch by their names.
        found = vars(torch).get(content) if isinstance(content, str) else None
        check(isinstance(found, _CONSTANTS), f"there is no {content!r}")
        return found
    is_device = kind == "device" and isinstance(content, str)
    check(is_device and _DEVICE_NAME.fullmatch(content), f"{kind!r} is no argument")
    return torch.device(content)


# -- operators


def find_operator(name: Any) -> OpOverload:
    """The registered operator `aten.add.Tensor`; ValueError if it is not there."""
    matched = _OPERATOR.fullmatch(name) if isinstance(name, str) else None
    check(matched, f"{name!r} is no operator")
    assert matched is not None
    namespace, packet, overload = matched.groups()
    check(namespace in _NAMESPACES, f"operators of {namespace} are not read from files")
    # Their own attributes begin with underscores, but so do operators: what is found
    # has to be an operator of that name.
    found = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    check(isinstance(found, OpOverload) and str(found) == name, f"no operator {name}")
    check(f"{namespace}.{packet}" not in _REFUSED, f"{name} is not read from files")
    return found


def check_operator(
    target: Any, args: Sequence[Any] | None = None, kwargs: dict[str, Any] | None = None
) -> None:
    """NotStorable for what is no operator of ours; ValueError for odd arguments."""
    if not isinstance(target, OpOverload) or target.namespace not in _NAMESPACES:
        raise NotStorable(f"it calls {target}")
    if f"{target.namespace}.{target._opname}" in _REFUSED:
        raise NotStorable(f"it calls {target}")
    if args is None:
        return
    names, kinds, num_needed = _signature(target)
    check(len(args) <= len(names), f"{target} has too many arguments")
    given = dict(zip(names, args, strict=False))
    twice = given.keys() & (kwargs or {}).keys()
    given |= kwargs or {}
    check(not twice and given.keys() <= kinds.keys(), f"{target} has odd arguments")
    check(num_needed <= given.keys(), f"{target} lacks an argument")
    for name, value in given.items():
        check(_fits(kinds[name], value), f"{name} of {target} is {value!r}")


@functools.cache
def _signature(
    target: OpOverload,
) -> tuple[tuple[str, ...], dict[str, str], frozenset[str]]:
    """Names of positional arguments, types of all, names of those without default."""
    arguments = target._schema.arguments
    return (
        tuple(a.name for a in arguments if not a.kwarg_only),
        {a.name: str(a.type) for a in arguments},
        frozenset(a.name for a in arguments if not a.has_default_value()),
    )


def _fits(kind: str, value: Any) -> bool:
    """Whether a value can be given for an argument of a type of operator schemas."""
    if kind.startswith("Optional["):
        return value is None or _fits(kind[len("Optional[") : -1], value)
    if kind.startswith("List["):
        inner = kind[len("List[") : -1]
        if isinstance(value, (list, tuple)):
            return all(_fits(inner, item) for item in value)
        return _fits(inner, value)
    if kind == "Tensor":
        # Operators take a number for a tensor, too.
        return isinstance(value, (Node, *_NUMBER))
    if isinstance(value, Node):  # a number that is computed
        return kind in ("number", "int", "float", "bool", "SymInt")
    accepted = _ACCEPTED.get(kind)
    return accepted is None or isinstance(value, accepted)


_NUMBER = (int, float, bool, complex)
# Types, layouts and memory formats are numbers in schemas.
_ACCEPTED: dict[str, tuple[type, ...]] = {
    "number": _NUMBER,
    "float": (int, float, bool),
    "int": (int, bool, *_CONSTANTS),
    "SymInt": (int, bool),
    "bool": (bool, int),
    "str": (str,),
    "Device": (torch.device,),
    "Generator": (),
    "Storage": (),
}
