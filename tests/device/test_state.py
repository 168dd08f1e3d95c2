"""Where state lies, and what in its place is refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from popple.device import Pod, find_machine
from popple.device.environment import Environment, read_environment
from popple.device.state import find_roots, make_shared_root, open_file
from popple.errors import DeviceError

NOBODY = 4_294_967_000


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_state_is_per_user(temporary: Path) -> None:
    roots = find_roots(Environment())
    assert roots.own == temporary / f"popple-{os.getuid()}"
    assert roots.shared == temporary / "popple-shared"


def test_the_environment_names_another_directory(state: Path) -> None:
    assert find_roots(read_environment()).own == state
    with Pod(find_machine()).acquire():
        assert (state / "machines").is_dir()


def test_nobody_else_can_look_into_it(state: Path) -> None:
    with Pod(find_machine()).acquire() as lease:
        for path in (state, lease.machine.directory):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
        modes = {stat.S_IMODE(p.stat().st_mode) for p in _files(state, "chip-*")}
    assert modes == {0o600}


def _files(state: Path, pattern: str) -> list[Path]:
    return list(state.glob(f"**/{pattern}"))


def test_the_directory_of_another_user_is_refused(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: NOBODY)
    (temporary / f"popple-{NOBODY}").mkdir()
    with pytest.raises(DeviceError, match="belongs to another user"):
        find_roots(Environment())


def test_a_link_that_another_user_made_is_refused(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: NOBODY)
    (temporary / f"popple-{NOBODY}").symlink_to(temporary / "absent")
    with pytest.raises(DeviceError, match="belongs to another user"):
        find_roots(Environment())


def test_a_link_of_ones_own_is_refused_too(temporary: Path) -> None:
    (temporary / f"popple-{os.getuid()}").symlink_to(temporary / "elsewhere")
    with pytest.raises(DeviceError, match="a link or a file"):
        find_roots(Environment())


def test_a_link_inside_is_refused(state: Path, tmp_path: Path) -> None:
    state.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (state / "machines").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DeviceError, match="a link or a file"):
        Pod(find_machine()).acquire()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_for_shared_pods_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shared").symlink_to(tmp_path)
    with pytest.raises(DeviceError, match="a link or a file"):
        make_shared_root(tmp_path / "shared")


@pytest.mark.parametrize("name", ["chip-0.json", "chip-0.activity", "chip-0.lock"])
def test_files_that_are_links_are_not_written_through(
    name: str, tmp_path: Path
) -> None:
    machine = find_machine()
    Pod(machine).holders()
    precious = tmp_path / "precious"
    precious.write_text("mine", "utf-8")
    (machine.directory / name).unlink(missing_ok=True)
    (machine.directory / name).symlink_to(precious)
    with pytest.raises(DeviceError, match="cannot be locked here"):
        Pod(machine).acquire(id=0)
    assert precious.read_text("utf-8") == "mine"
    assert Pod(machine).acquire(id=1).is_held


def test_only_plain_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a plain file"):
        open_file(tmp_path / "pipe", None)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": 1}', "\0"])
def test_descriptions_that_make_no_sense_are_replaced(text: str) -> None:
    with Pod(find_machine()).acquire() as lease:
        description = lease.machine.directory / "machine.json"
        expected = description.read_text("utf-8")
        description.write_text(text, "utf-8")
    Pod(find_machine()).holders()
    assert description.read_text("utf-8") == expected
