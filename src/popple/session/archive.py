"""Archives: the container of executables on disk, for caches and for saved models.

    write_archive   named parts (bytes) and a description (JSON) --> a file
    read_archive    the file --> its description and its parts, all of them checked

A file is a zip archive without compression. `manifest.json` holds the description and
the size and SHA-256 of every other part; the comment of the archive is the SHA-256 of
the manifest. Parts are JSON and raw buffers of numbers: nothing in a file is code, and
nothing here runs what it reads. A checksum tells damage, not intent: whoever reads a
part checks what it says.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zipfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

from popple.errors import DamagedFileError
from popple.files import replace_file

Buffer: TypeAlias = bytes | bytearray | memoryview

_FORMAT = "popple executable"
_FORMAT_VERSION = 1
_MANIFEST = "manifest.json"
# Names end up in messages and, unpacked by hand, in paths: they are kept harmless.
_PART_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")
# What zipfile raises when it reads a file that is not what it says it is.
_DAMAGE = (
    zipfile.BadZipFile,
    struct.error,
    ArithmeticError,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)


@dataclass(frozen=True)
class Archive:
    """The contents of a file whose checksums are right."""

    path: Path
    description: Mapping[str, Any]
    parts: Mapping[str, bytes]

    def part(self, name: str) -> bytes:
        """A part by its name; DamagedFileError if the file has none of that name."""
        found = self.parts.get(name)
        if found is None:
            raise DamagedFileError(self.path, f"it has no part {name}")
        return found

    def json(self, name: str) -> Any:
        """A part that is JSON, as Python's lists, dicts, numbers and strings."""
        try:
            return parse_json(self.part(name))
        except ValueError as error:
            raise DamagedFileError(self.path, f"{name}: {error}") from error


def write_archive(
    path: str | Path, parts: Mapping[str, Buffer], description: Mapping[str, Any]
) -> None:
    """Write the file; other processes see it complete or not at all.

    The same contents always give the same bytes.
    """
    listed = {name: _record(data) for name, data in parts.items()}
    manifest = render_json(
        {
            "format": _FORMAT,
            "version": _FORMAT_VERSION,
            "description": description,
            "parts": listed,
        }
    )
    with replace_file(path) as draft, zipfile.ZipFile(draft, "w") as archive:
        _write_part(archive, _MANIFEST, manifest)
        for name, data in parts.items():
            _check_name(name)
            _write_part(archive, name, data)
        archive.comment = _digest(manifest).encode()


def read_archive(path: str | Path) -> Archive:
    """Read and check a whole file; FileNotFoundError if there is none.

    DamagedFileError if anything about it is not as `write_archive` left it.
    """
    with _opened(Path(path)) as archive:
        manifest = _read_manifest(archive)
        records: dict[str, Any] = manifest["parts"]
        parts = {name: archive.read(name) for name in records}
        for name, data in parts.items():
            if records[name] != _record(data):
                raise ValueError(f"the checksum of {name} is wrong")
        return Archive(Path(path), manifest["description"], parts)


def read_description(path: str | Path) -> Mapping[str, Any]:
    """Only the description of a file; its other parts are not read."""
    with _opened(Path(path)) as archive:
        return _read_manifest(archive)["description"]


def render_json(value: Any) -> bytes:
    """JSON as short as it gets; ValueError for what has no form in JSON."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False, sort_keys=True)
    return text.encode()


def parse_json(data: bytes) -> Any:
    """What JSON says; ValueError if it is none."""
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


@contextmanager
def _opened(path: Path) -> Generator[zipfile.ZipFile, None, None]:
    """The zip archive; whatever goes wrong inside is DamagedFileError."""
    # Opened before: that a file is missing or forbidden is no damage.
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                yield archive
        except _DAMAGE as error:
            why = str(error) or type(error).__name__
            raise DamagedFileError(path, why) from error


def _read_manifest(archive: zipfile.ZipFile) -> dict[str, Any]:
    """The manifest, checked against its checksum and the list of parts."""
    infos = archive.infolist()
    names = [info.filename for info in infos]
    # Compressed parts could unfold to any size; we write none.
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
        raise ValueError("it has a compressed part")
    data = archive.read(_MANIFEST)
    if archive.comment.decode("ascii") != _digest(data):
        raise ValueError("the checksum of its manifest is wrong")
    manifest = parse_json(data)
    _check_manifest(manifest, names)
    return manifest


def _check_manifest(manifest: Any, names: list[str]) -> None:
    if not isinstance(manifest, dict):
        raise ValueError("its manifest is no JSON object")
    fields = cast("dict[str, Any]", manifest)
    if fields.get("format") != _FORMAT:
        raise ValueError("it is no executable of Popple")
    if fields.get("version") != _FORMAT_VERSION:
        raise ValueError(f"its format is of version {fields.get('version')!r}")
    parts: Any = fields.get("parts")
    if not isinstance(parts, dict) or not isinstance(fields.get("description"), dict):
        raise ValueError("its manifest is incomplete")
    listed = [_MANIFEST, *cast("dict[str, Any]", parts)]
    if sorted(listed) != sorted(names):
        raise ValueError("its parts are not those that its manifest lists")
    for name in listed:
        _check_name(name)


def _check_name(name: str) -> None:
    if not _PART_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a part")


def _record(data: Buffer) -> dict[str, Any]:
    size = memoryview(data).nbytes
    return {"size": size, "sha256": _digest(data)}


def _digest(data: Buffer) -> str:
    return hashlib.sha256(data).hexdigest()


def _write_part(archive: zipfile.ZipFile, name: str, data: Buffer) -> None:
    # A ZipInfo made by hand has a fixed date: equal contents give equal files.
    with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as part:
        part.write(data)
