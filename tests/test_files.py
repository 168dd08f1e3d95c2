"""Files that appear complete: what is there after success, failure and a kill."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from popple.files import replace_file, write_atomically

needs_modes = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("content", "expected"),
    [("ä\r\nb\n", b"\xc3\xa4\r\nb\n"), (b"\x00\xff", b"\x00\xff"), ("", b"")],
)
def test_text_and_bytes(tmp_path: Path, content: str | bytes, expected: bytes) -> None:
    write_atomically(tmp_path / "file", content)
    assert (tmp_path / "file").read_bytes() == expected
    assert names_in(tmp_path) == ["file"]


def test_a_path_may_be_text(tmp_path: Path) -> None:
    write_atomically(str(tmp_path / "file"), "new")
    assert (tmp_path / "file").read_text("utf-8") == "new"


def test_the_file_is_replaced_after_the_block(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old", "utf-8")
    with replace_file(file) as draft:
        draft.write_text("new", "utf-8")
        assert draft.parent == tmp_path
        assert file.read_text("utf-8") == "old"
    assert file.read_text("utf-8") == "new"
    assert names_in(tmp_path) == ["file"]


def test_a_block_that_raises_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old", "utf-8")
    with pytest.raises(UnicodeEncodeError), replace_file(file) as draft:
        draft.write_text("half ä", "ascii")
    assert file.read_text("utf-8") == "old"
    assert names_in(tmp_path) == ["file"]


def test_what_killed_writers_left_goes_after_a_day(tmp_path: Path) -> None:
    names = (f".a.{'0' * 32}", f".a.{'1' * 32}", f".b.{'2' * 32}")
    old, new, other = (tmp_path / name for name in names)
    kept = tmp_path / ".a.settings"  # the user's own
    for file in (old, new, other, kept):
        file.touch()
    for file in (old, other, kept):
        os.utime(file, (0, 0))
    write_atomically(tmp_path / "a", "text")
    assert names_in(tmp_path) == sorted(["a", new.name, other.name, kept.name])


def test_the_last_of_two_writers_wins(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with replace_file(file) as first:
        first.write_text("first", "utf-8")
        with replace_file(file) as second:
            second.write_text("second", "utf-8")
        assert file.read_text("utf-8") == "second"
    assert file.read_text("utf-8") == "first"
    assert names_in(tmp_path) == ["file"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "absent" / "file", "new")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_atomically(tmp_path / "folder", "new")
    assert names_in(tmp_path) == ["folder"]


def test_a_name_as_long_as_file_systems_allow(tmp_path: Path) -> None:
    name = "ä" * 127
    write_atomically(tmp_path / name, "new")
    assert names_in(tmp_path) == [name]


@needs_modes
def test_a_new_file_has_the_permissions_of_a_plain_open(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("", "utf-8")
    write_atomically(tmp_path / "file", "new")
    assert mode_of(tmp_path / "file") == mode_of(tmp_path / "plain")


@needs_modes
@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_a_replaced_file_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "file"
    file.touch()
    file.chmod(mode)
    write_atomically(file, "new")
    assert (file.read_text("utf-8"), mode_of(file)) == ("new", mode)


@needs_modes
def test_a_symbolic_link_is_itself_replaced(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("old", "utf-8")
    (tmp_path / "link").symlink_to("elsewhere")
    write_atomically(tmp_path / "link", "new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "elsewhere").read_text("utf-8") == "old"


WRITER = """
import sys
from popple.files import replace_file

with replace_file(sys.argv[1]) as draft:
    draft.write_text("half", "utf-8")
    print("written", flush=True)
    sys.stdin.read()
"""


def test_a_killed_writer_leaves_the_earlier_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old", "utf-8")
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.kill()
    assert file.read_text("utf-8") == "old"
