"""Fingerprints: one digest of everything that a piece of a Python program depends on.

A program that is traced anew gives the same result if the objects it reads, the code
that runs and the packages that it comes from are the same. `Fingerprint` walks over
all of these without running any of the program: values, attributes of objects, the
bytecode of functions with the globals and closures that it refers to. Code in installed
packages is identified by package and file; code of the user's own by what it says.

What it cannot judge it refuses, with the path to the object (`Unknown`): an object that
keeps state where Python cannot look, or a function that reads a clock, a file or random
numbers. A front end adds the types of its framework by `Describe`.
"""

from __future__ import annotations

import dis
import os
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from popple.session.object_digest import (
    ATOMS,
    WRAPPERS,
    Describe,
    ObjectDigest,
    Unknown,
)
from popple.session.outside import (
    asks_by_name,
    codes_in,
    find_call,
    find_source,
    looks_up,
)
from popple.session.packages import Packages
from popple.session.variables_read import variables_read

__all__ = ["Describe", "Fingerprint", "Refuse", "Unknown"]

Refuse = Callable[[Iterable[str]], str]
"""Why code that uses these names cannot be judged; an empty text if it can."""

# Names, texts and annotations, which no run depends on, and Python's own books.
_SKIPPED_IN_CLASSES = frozenset(
    {
        "__annotate__",
        "__annotate_func__",
        "__annotations__",
        "__annotations_cache__",
        "__classdictcell__",
        "__dict__",
        "__doc__",
        "__firstlineno__",
        "__module__",
        "__orig_bases__",
        "__parameters__",
        "__qualname__",
        "__static_attributes__",
        "__weakref__",
        "_abc_impl",
    }
)
_IMPORT = dis.opmap["IMPORT_NAME"]


class Fingerprint(ObjectDigest):
    """A digest of objects and of the code that they run.

    `environ` are the variables that code may read.
    """

    def __init__(
        self,
        packages: Packages,
        describe: Describe = lambda _: None,
        refuse: Refuse = lambda _: "",
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(packages, describe)
        self._refuse = refuse
        self._environ = environ or {}
        self._modules: set[tuple[str, tuple[str, ...]]] = set()

    # -- classes and modules

    def _add_class(self, cls: type) -> None:
        self._token("class", cls.__module__, cls.__qualname__)
        self._token(self._packages.identify(cls.__module__))
        is_installed = self._packages.is_installed(cls.__module__)
        for base in cls.__bases__:
            self._add(base)
        if is_installed:
            self._add_reference(sys.modules[cls.__module__], ())
        for name, member in sorted(vars(cls).items(), key=lambda pair: pair[0]):
            if name in _SKIPPED_IN_CLASSES:
                continue
            # Of installed classes only what somebody may have put there: a method, or
            # another value of a switch.
            if not is_installed or self._is_foreign(member) or _is_switch(name, member):
                self._token(name)
                self._add_member(cls, name, member)

    def _add_member(self, cls: type, name: str, member: Any) -> None:
        if name == "__init__" and isinstance(member, types.FunctionType):
            # What it made is there to be seen; what it read is of no interest.
            self._token("init")
            self._add_code(member.__code__)
        else:
            self.add(member, f"{cls.__name__}.{name}")

    def _is_foreign(self, member: Any) -> bool:
        """Whether a member of an installed class or module is the user's code."""
        # By type, not by attribute: asking some objects for attributes makes them.
        if isinstance(member, WRAPPERS):
            found = cast("Any", member).__func__
        else:
            found = member.fget if isinstance(member, property) else member
        return isinstance(found, types.FunctionType) and not self._is_library(found)

    def _is_library(self, function: types.FunctionType) -> bool:
        file = function.__code__.co_filename
        # Libraries generate functions too: dataclasses, named tuples.
        if file.startswith("<"):
            return self._packages.is_installed(function.__module__ or "")
        return self._packages.is_installed_file(file)

    def _add_module(self, module: types.ModuleType, names: Iterable[str]) -> None:
        """A module, and of a module of the user's what is used by these names."""
        self._token("module", module.__name__)
        self._token(self._packages.identify(module.__name__))
        held = vars(module)
        if self._packages.is_installed(module.__name__):
            items = list(held.items())
            found = [n for n, v in items if self._is_foreign(v) or _is_switch(n, v)]
        else:
            # A module may make what it does not hold.
            found = [name for name in {*names, "__getattr__"} if name in held]
        for name in sorted(set(found)):
            self._token(name)
            self._path.append(f"{module.__name__}.{name}")
            self._add_reference(held[name], names)
            self._path.pop()

    def _add_whole_module(self, module: types.ModuleType) -> None:
        """A module that may be asked for any of its names, with those inside of it."""
        own = [name for name in vars(module) if not name.startswith("__")]
        self._add_reference(module, own)
        if not self._is_own_module(module):
            return
        for inner in filter(self._is_own_module, list(vars(module).values())):
            self._add(inner)

    def _add_reference(self, value: Any, names: Iterable[str]) -> None:
        """A value that code refers to; of a module what the code uses of it."""
        if not isinstance(value, types.ModuleType):
            self._add(value)
            return
        self._token("reference", value.__name__)
        # Another function may use other names of a module; of installed ones all are
        # looked at in any case.
        is_installed = self._packages.is_installed(value.__name__)
        used = () if is_installed else tuple(sorted(set(names)))
        if (value.__name__, used) not in self._modules:
            self._modules.add((value.__name__, used))
            self._add_module(value, used)

    # -- code

    def _add_function(self, function: types.FunctionType) -> None:
        self._token("function", function.__module__, function.__qualname__)
        cells = [_content(cell) for cell in function.__closure__ or ()]
        names = function.__code__.co_freevars
        # Closures hold values of this run, in installed code too.
        for name, cell in zip(names, cells, strict=True):
            self.add(cell, f"{function.__name__}.{name}")
        if self._is_library(function):
            self._token(self._packages.identify(function.__module__ or ""))
            return
        self.add(function.__defaults__, "__defaults__")
        self.add(function.__kwdefaults__, "__kwdefaults__")
        if function.__dict__:
            self.add(dict(function.__dict__), "__dict__")
        self._add_code(function.__code__)
        self._add_globals(function)

    def _add_code(self, code: types.CodeType) -> None:
        self._token("code", code.co_name, code.co_flags, code.co_argcount)
        self._token(code.co_posonlyargcount, code.co_kwonlyargcount)
        self._token(code.co_names, code.co_varnames, code.co_freevars)
        # Lines are told in reports, so they belong to what is kept.
        self._token(os.path.basename(code.co_filename), list(code.co_lines()))
        self._hash.update(code.co_code)
        for constant in code.co_consts:
            self.add(constant, code.co_name)

    def _add_globals(self, function: types.FunctionType) -> None:
        codes = list(codes_in(function.__code__))
        names = sorted({name for code in codes for name in code.co_names})
        held = function.__globals__
        if why := self._refuse(names):
            raise self._unknown(f"the function {function.__name__} {why}")
        if called := find_call(codes, held):
            raise self._unknown(f"the function {function.__name__} calls {called}()")
        self._check_imports(codes, held)
        for name in filter(held.__contains__, names):
            self._path.append(f"{function.__name__}.{name}")
            self._check_source(held[name], names)
            self._token("global", name)
            self._add_used(held[name], names, asks_by_name(codes, name))
            self._path.pop()
        self._add_environment(codes, function)

    def _add_used(self, value: Any, names: Iterable[str], by_any_name: bool) -> None:
        """A value that code refers to; a module of the user's may be asked for all."""
        if by_any_name and self._is_own_module(value):
            self._add(value)
        else:
            self._add_reference(value, names)

    def _is_own_module(self, value: Any) -> bool:
        """Whether this is a module of the user's: of others all names count alike."""
        is_module = isinstance(value, types.ModuleType)
        return is_module and not self._packages.is_installed(value.__name__)

    def _check_source(self, value: Any, names: Iterable[str]) -> None:
        """Unknown if a function reads what is another thing in every run."""
        if source := find_source(value, names):
            raise self._unknown(f"the function uses {source}")

    def _check_imports(
        self, codes: Iterable[types.CodeType], held: Mapping[str, Any]
    ) -> None:
        """What is imported inside of a function must be loaded to be judged."""
        # Looking for the number in the bytecode is quick, and true if there is none.
        for code in (c for c in codes if _IMPORT in c.co_code[::2]):
            for line in dis.get_instructions(code):
                if line.opname != "IMPORT_NAME":
                    continue
                name = str(line.argval)
                # A relative import has a dot too few in its name; its package is known.
                package = str(held.get("__package__") or "")
                module = sys.modules.get(name) or sys.modules.get(f"{package}.{name}")
                if module is None:
                    raise self._unknown(f"it imports {name} when it is called")
                self._check_source(module, code.co_names)
                self._token("import", name)
                self._add_used(module, code.co_names, looks_up(code.co_names))

    def _add_environment(
        self, codes: Iterable[types.CodeType], function: types.FunctionType
    ) -> None:
        """Variables of the environment that code may read: it has their names."""
        # Also as a text that it may hand to somebody who reads it.
        texts = {c for code in codes for c in code.co_consts if isinstance(c, str)}
        for code in codes:
            for name in variables_read(code, function.__globals__):
                if name is None:
                    reads = "reads variables of the environment by names that it makes"
                    raise self._unknown(f"the function {function.__name__} {reads}")
                texts.add(name)
        for name in sorted(texts & self._environ.keys()):
            self._token("environment", name, self._environ[name])


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return None


def _is_switch(name: str, value: Any) -> bool:
    """Whether a value of an installed module or class may be one that users set."""
    return type(value) in ATOMS and not name.startswith("__")
