"""The container of executables: what goes in comes out, and damage is told."""

from __future__ import annotations

import random
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from popple.errors import DamagedFileError
from popple.session.archive import (
    parse_json,
    read_archive,
    read_description,
    render_json,
    write_archive,
)

PARTS = {"nodes.json": b'{"a":[1,2]}', "data/0": bytes(range(256)) * 4}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    write_archive(path, PARTS, {"name": "training", "cycles": 7})
    return path


def test_what_goes_in_comes_out(path: Path) -> None:
    archive = read_archive(path)
    assert archive.description == {"name": "training", "cycles": 7}
    assert dict(archive.parts) == PARTS
    assert archive.json("nodes.json") == {"a": [1, 2]}
    assert read_description(path) == archive.description


def test_equal_contents_are_equal_files(path: Path) -> None:
    other = path.with_name("other")
    write_archive(other, PARTS, {"cycles": 7, "name": "training"})
    assert other.read_bytes() == path.read_bytes()


def test_a_missing_part_is_damage(path: Path) -> None:
    with pytest.raises(DamagedFileError, match="it has no part weights"):
        read_archive(path).part("weights")


def test_a_missing_file_is_no_damage(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["../up", "/root", "a/../b", "", "a b", ".hidden"])
def test_names_of_parts_stay_inside(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is no name of a part"):
        write_archive(tmp_path / "file", {name: b""}, {})
    assert list(tmp_path.iterdir()) == []


def test_cut_files_are_damaged(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(DamagedFileError):
            read_archive(path)


def test_a_flipped_byte_is_damage_or_changes_nothing(path: Path) -> None:
    # Bytes of the zip's directory that nobody reads (dates, attributes) may be flipped.
    whole, expected = path.read_bytes(), read_archive(path)
    chance = random.Random(1)
    for _ in range(2000):
        data = bytearray(whole)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        with suppress(DamagedFileError):
            assert read_archive(path) == expected


def _rewrite(path: Path, compression: int, names: dict[str, bytes]) -> None:
    """A zip with other contents, under the old comment."""
    with zipfile.ZipFile(path) as archive:
        comment = archive.comment
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in {**parts, **names}.items():
            archive.writestr(name, data)
        archive.comment = comment


@pytest.mark.parametrize(
    ("compression", "parts", "why"),
    [
        (zipfile.ZIP_STORED, {"data/0": b"other"}, "checksum of data/0 is wrong"),
        (zipfile.ZIP_STORED, {"more": b""}, "not those that its manifest lists"),
        (zipfile.ZIP_STORED, {"manifest.json": b"{}"}, "checksum of its manifest"),
        (zipfile.ZIP_DEFLATED, {}, "compressed part"),
    ],
)
def test_changed_archives_are_damaged(
    path: Path, compression: int, parts: dict[str, bytes], why: str
) -> None:
    _rewrite(path, compression, parts)
    with pytest.raises(DamagedFileError, match=why):
        read_archive(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"[NaN]", "NaN is not JSON"),
        (b"{", "Expecting"),
        (b"[" * 100_000, "nested too deeply"),
        (b"\xff", "decode"),
        (b"", "Expecting"),
    ],
)
def test_json_is_strict(text: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_json(text)


def test_numbers_without_a_form_in_json_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        render_json([float("nan")])
