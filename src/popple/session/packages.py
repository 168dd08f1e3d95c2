"""Packages of the running Python: which code is installed, and which version of it.

Installed are the standard library, whatever lies in a `site-packages` folder, and
Popple itself. Its identity is the version of the package and the size and time of the
file, so that an upgraded or edited package is another one, wherever it is installed.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from popple._version import __version__

_SITE = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_OWN_ROOT = Path(__file__).parents[2]
_OWN = ("popple", "poptorch", "poptorch_geometric", "tensorflow_ipu")
_WHOLE = frozenset({*_OWN, "torch"})


class Packages:
    """What is loaded, looked at once: files are not looked up again."""

    def __init__(self) -> None:
        self._identities: dict[str, str] = {}
        self._is_installed: dict[str, bool] = {}
        self._neighbours: dict[str, frozenset[str]] = {}

    def versions(self) -> list[str]:
        """Python, Popple, and the packages that were identified, by version.

        With them those that they use in turn: a layer of one library may call another.
        """
        waiting = {name.partition(".")[0] for name in self._identities}
        found: set[str] = set()
        while waiting:
            name = waiting.pop()
            found.add(name)
            waiting |= self._uses(name) - found
        kept = [self.identify(name) for name in sorted(found - set(_OWN))]
        return [sys.version, __version__, own_sources(), *kept]

    def _uses(self, package: str) -> frozenset[str]:
        """Other installed packages that the loaded modules of a package refer to."""
        known = self._neighbours.get(package)
        if known is None:
            known = frozenset(self._find_neighbours(package))
            self._neighbours[package] = known
        return known

    def _find_neighbours(self, package: str) -> Iterator[str]:
        # PyTorch is one thing, whatever it is built of; the standard library too.
        if package in _WHOLE or _is_standard(_file_of(sys.modules.get(package))):
            return
        names = [n for n in sys.modules if n == package or n.startswith(f"{package}.")]
        homes = {
            str(home).partition(".")[0]
            for name in names
            for value in list(vars(sys.modules[name]).values())
            if (home := _home_of(value)) is not None
        }
        for home in homes - {package}:
            file = _file_of(sys.modules.get(home))
            if file and self.is_installed_file(file) and not _is_standard(file):
                yield home

    def is_installed(self, module_name: str) -> bool:
        """Whether a module comes with Python or a package, and is not the user's."""
        module = sys.modules.get(module_name)
        if module is None:
            return False
        file = _file_of(module)
        # Without a file: built in, or typed at a prompt.
        if not file:
            return module_name in sys.builtin_module_names or _is_frozen(module)
        return self.is_installed_file(file)

    def is_installed_file(self, file: str) -> bool:
        """Whether a file of code comes with Python or a package."""
        known = self._is_installed.get(file)
        if known is None:
            known = self._is_installed[file] = _is_installed_file(file)
        return known

    def identify(self, module_name: str) -> str:
        """A text that is another one if the module, or its package, was changed.

        Of the user's own modules only the name: what they say is seen elsewhere.
        """
        if not self.is_installed(module_name):
            return f"{module_name}: own"
        known = self._identities.get(module_name)
        if known is None:
            known = self._identities[module_name] = _identity(module_name)
        return known


def _home_of(value: Any) -> str | None:
    """The module that a module, class or function of another module is from."""
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, (type, FunctionType)):
        return value.__module__
    return None


def _file_of(module: ModuleType | None) -> str:
    return str(getattr(module, "__file__", None) or "")


def _is_frozen(module: ModuleType) -> bool:
    origin: Any = getattr(getattr(module, "__spec__", None), "origin", None)
    return origin in ("frozen", "built-in")


def _is_installed_file(file: str) -> bool:
    path = os.path.abspath(file)
    is_own = path.startswith(tuple(f"{_OWN_ROOT / name}{os.sep}" for name in _OWN))
    return is_own or any(site in path for site in _SITE) or _is_standard(path)


def _is_standard(file: str) -> bool:
    """Whether a file is of Python's own library."""
    if file.startswith("<frozen"):
        return True
    is_inside = os.path.abspath(file).startswith(_standard_roots())
    return is_inside and not any(site in file for site in _SITE)


@functools.cache
def _standard_roots() -> tuple[str, ...]:
    paths = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    # In a virtual environment modules lie where Python was installed.
    paths.add(os.path.dirname(os.__file__))
    return tuple(f"{path}{os.sep}" for path in sorted(paths))


def _identity(module_name: str) -> str:
    top = sys.modules.get(module_name.partition(".")[0])
    version = getattr(top, "__version__", "")
    version = version if isinstance(version, str) else ""
    files = {_file_of(sys.modules.get(module_name)), _file_of(top)}
    stamps = sorted(_stamp(Path(file)) for file in files if file)
    return f"{module_name} {version} {' '.join(stamps)}"


def _stamp(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return f"{path.name}?"
    return f"{path.name}:{status.st_size}:{status.st_mtime_ns}"


@functools.cache
def own_sources() -> str:
    """Sizes and times of Popple's own files: what it makes of a program may change."""
    return " ".join(_own_stamps())


def _own_stamps() -> Iterator[str]:
    for name in _OWN:
        if importlib.util.find_spec(name) is None:
            continue
        for folder, folders, files in os.walk(_OWN_ROOT / name):
            folders[:] = sorted(f for f in folders if f != "__pycache__")
            for file in sorted(files):
                if file.endswith((".py", ".toml")):
                    inside = folder.removeprefix(str(_OWN_ROOT))
                    yield f"{inside}/{_stamp(Path(folder, file))}"
