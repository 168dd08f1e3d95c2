"""The executable cache: found, stored, damaged, pruned, by many at once."""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from popple.errors import UsageError
from popple.session import ExecutableCache, KeptProgram
from popple.session.archive import read_archive, write_archive

KEY = hashlib.sha256(b"a program").hexdigest()
PARTS = {"step.json": b"{}", "tensors/0": bytes(1000)}


def key_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def test_what_is_stored_is_found(tmp_path: Path) -> None:
    cache = ExecutableCache(tmp_path / "new" / "cache")
    assert cache.lookup(KEY) is None
    path = cache.store(KEY, PARTS, {"name": "training"})
    found = cache.lookup(KEY)
    assert found is not None
    assert dict(found.parts) == PARTS
    assert found.description == {"name": "training", "key": KEY}
    # As the vendor's caches: 64 bits in hexadecimal.
    assert re.fullmatch(r"[0-9a-f]{16}\.poplar_exec", path.name)
    assert KEY.startswith(path.name[:16])


def test_two_keys_that_begin_alike_are_told_apart(tmp_path: Path) -> None:
    cache = ExecutableCache(tmp_path)
    cache.store(KEY, PARTS, {})
    assert cache.lookup(KEY[:16] + "0" * 48) is None


def test_a_damaged_file_is_a_warning_and_then_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = ExecutableCache(tmp_path)
    path = cache.store(KEY, PARTS, {})
    path.write_bytes(path.read_bytes()[:-40])
    assert cache.lookup(KEY) is None
    (record,) = [r for r in caplog.records if r.name.startswith("popple")]
    assert record.levelno == logging.WARNING
    assert "compiled again" in record.getMessage()
    cache.store(KEY, PARTS, {})
    assert cache.lookup(KEY) is not None


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        ExecutableCache(tmp_path / "file").store(KEY, PARTS, {})


def stored(cache: ExecutableCache, ages: dict[str, float]) -> dict[str, Path]:
    """Entries of one size, last used so many seconds before 10000."""
    paths = {name: cache.store(key_of(name), PARTS, {}) for name in ages}
    for name, age in ages.items():
        os.utime(paths[name], (10_000 - age, 10_000 - age))
    return paths


def test_the_oldest_are_pruned_beyond_a_size(tmp_path: Path) -> None:
    cache = ExecutableCache(tmp_path)
    paths = stored(cache, {"old": 300, "older": 400, "new": 100})
    size = paths["new"].stat().st_size
    removed = cache.prune(max_bytes=2 * size, now=10_000)
    assert [entry.path for entry in removed] == [paths["older"]]
    assert [entry.path for entry in cache.entries()] == [paths["new"], paths["old"]]


def test_what_was_not_used_for_long_is_pruned(tmp_path: Path) -> None:
    cache = ExecutableCache(tmp_path)
    paths = stored(cache, {"old": 300, "new": 100})
    removed = cache.prune(older_than_seconds=200, now=10_000)
    assert [entry.path for entry in removed] == [paths["old"]]


def test_use_counts(tmp_path: Path) -> None:
    cache = ExecutableCache(tmp_path)
    paths = stored(cache, {"first": 300, "second": 100})
    cache.lookup(key_of("first"))
    assert cache.entries()[0].path == paths["first"]


def test_pruning_touches_nothing_else(tmp_path: Path) -> None:
    cache = ExecutableCache(tmp_path)
    stored(cache, {"entry": 0})
    (tmp_path / "notes.txt").write_text("mine")
    draft = tmp_path / f".{'a' * 16}.poplar_exec.{'b' * 32}"
    young = tmp_path / f".{'c' * 16}.poplar_exec.{'d' * 32}"
    for path, age in ((draft, 7200), (young, 60)):
        path.write_text("half")
        os.utime(path, (10_000 - age, 10_000 - age))
    cache.prune(max_bytes=0, now=10_000)
    # What a killed writer left behind goes; one at work is not disturbed.
    assert sorted(p.name for p in tmp_path.iterdir()) == [young.name, "notes.txt"]


def test_links_are_removed_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("precious")
    cache = ExecutableCache(tmp_path / "cache")
    cache.directory.mkdir()
    cache.path_of(KEY).symlink_to(target)
    cache.store(KEY, PARTS, {})
    cache.prune(max_bytes=0)
    assert target.read_text() == "precious"


def test_parts_are_added(tmp_path: Path) -> None:
    cache = ExecutableCache(tmp_path)
    KeptProgram(cache, KEY).add(PARTS)
    program = KeptProgram(cache, KEY)
    assert program.cycles is None
    program.keep_cycles(12)
    later = KeptProgram(cache, KEY)
    assert later.cycles == 12
    assert later.archive is not None
    assert later.archive.part("step.json") == b"{}"


@pytest.mark.parametrize("cost", [b"[]", b'{"cycles":"many"}', b'{"cycles":-1}'])
def test_odd_cycles_are_not_believed(tmp_path: Path, cost: bytes) -> None:
    cache = ExecutableCache(tmp_path)
    cache.store(KEY, {"cost.json": cost}, {})
    assert KeptProgram(cache, KEY).cycles is None


def _write_and_read(directory: Path, number: int) -> int:
    """How often an entry is seen that nobody has written."""
    cache = ExecutableCache(directory)
    wrong = 0
    for turn in range(40):
        name = str(turn % 3)
        cache.store(key_of(name), {"data": name.encode() * 5000}, {"by": number})
        found = cache.lookup(key_of(name))
        # Another process may have pruned it; if it is there, it is whole.
        wrong += found is not None and found.part("data") != name.encode() * 5000
        if turn % 10 == 0:
            cache.prune(max_bytes=8000)
    return wrong


def test_many_processes_share_a_cache(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        jobs = [(tmp_path, number) for number in range(3)]
        assert pool.starmap(_write_and_read, jobs) == [0, 0, 0]


WRITER = """
import sys
from pathlib import Path
from popple.session import ExecutableCache
cache = ExecutableCache(Path(sys.argv[1]))
print("ready", flush=True)
number = 0
while True:
    number += 1
    cache.store(sys.argv[2], {"data": bytes([number % 256]) * 400_000}, {})
    print(number, flush=True)
"""


def test_a_killed_writer_leaves_no_half_file(tmp_path: Path) -> None:
    cache = ExecutableCache(tmp_path)
    for turn in range(12):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), KEY],
            stdout=subprocess.PIPE,
            text=True,
        ) as writer:
            assert writer.stdout is not None
            # Killed at another point of its work in every turn.
            for _ in range(2 + turn):
                writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
        found = read_archive(cache.path_of(KEY))
        data = found.part("data")
        assert data == data[:1] * 400_000
    cache.prune(max_bytes=0, now=1e12)
    assert list(tmp_path.iterdir()) == []


def test_another_file_under_the_name_is_no_entry(tmp_path: Path) -> None:
    cache = ExecutableCache(tmp_path)
    write_archive(cache.path_of(KEY), PARTS, {"key": 5})
    assert cache.lookup(KEY) is None
