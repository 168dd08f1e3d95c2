"""Ten thousand mutated files: a warning and another compilation, or a clear error.

Caches and saved models are read after bytes were flipped, files cut, parts exchanged,
and JSON altered with all checksums right again. Nothing of a file may be executed, and
no error may be another than the ones that are documented.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

import poptorch
from popple.errors import DamagedFileError
from popple.session import ExecutableCache
from popple.session.archive import Archive, read_archive, write_archive
from poptorch._model.saving import open_model
from tests.poptorch.model.test_cached_values import Dropping
from tests.poptorch.models import batch, options

FLIPPED, CUT, EXCHANGED, ALTERED, LOADED = 5500, 2500, 1000, 900, 100
ODD: list[Any] = [
    None,
    -1,
    10**30,
    0.5,
    "__import__('os').system('true')",
    [],
    {},
    {"n": 2},
    {"object": ["os.system", {}]},
    True,
]


def trainer() -> poptorch.PoplarExecutor:
    module = Dropping()
    optimizer = poptorch.optim.Adam(module.parameters(), lr=0.01)
    return poptorch.trainingModel(module, options().randomSeed(1), optimizer)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a training model that has run."""
    file = tmp_path_factory.mktemp("saved") / "model.poptorch"
    os.environ["POPPLE_STATE"] = str(file.parent)
    model = trainer()
    model(*batch(4))
    model.save(str(file))
    model.destroy()
    del os.environ["POPPLE_STATE"]
    return file.read_bytes()


@pytest.fixture
def nothing_is_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ways to run something, all of them closed."""
    for owner, name in ((os, "system"), (os, "popen"), (subprocess, "Popen")):
        monkeypatch.setattr(owner, name, lambda *_, **__: pytest.fail("executed"))


def is_read(file: Path) -> bool:
    """Whether a file is taken for a saved model; DamagedFileError and ValueError are
    how it is refused."""
    try:
        found = open_model(str(file), poptorch.__version__)
        found.find_arguments()
        found.random_state()
        found.exported()
    except (ValueError, DamagedFileError):
        return False
    return True


def test_flipped_and_cut_files(
    saved: bytes, tmp_path: Path, nothing_is_executed: None
) -> None:
    chance, file = random.Random(1), tmp_path / "file"
    file.write_bytes(saved)
    expected = read_archive(file)
    for turn in range(FLIPPED + CUT):
        data = bytearray(saved)
        if turn < FLIPPED:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        else:
            start = chance.randrange(len(data))
            del data[start : start + 1 + chance.randrange(2000)]
        file.write_bytes(data)
        try:
            # Bits of the zip's directory that nobody reads may be flipped.
            assert read_archive(file) == expected
        except DamagedFileError:
            continue


def altered(chance: random.Random, value: Any) -> Any:
    """JSON with one of its parts replaced or dropped."""
    if isinstance(value, (list, dict)) and value and chance.random() < 0.9:
        keys: Any = range(len(value)) if isinstance(value, list) else list(value)
        key = chance.choice(keys)
        if chance.random() < 0.1:
            del value[key]
        else:
            value[key] = altered(chance, value[key])
        return value
    return chance.choice(ODD)


def mutant(chance: random.Random, archive: Archive, *, is_json: bool) -> dict[str, Any]:
    """The parts of a file, one of them another; checksums are made for it."""
    parts = dict(archive.parts)
    names = [n for n in sorted(parts) if n.endswith(".json") or not is_json]
    name = chance.choice(names)
    if not is_json:
        parts[name] = parts[chance.choice(names)]
    else:
        value = altered(chance, json.loads(parts[name]))
        parts[name] = json.dumps(value).encode()
    return parts


def test_exchanged_and_altered_parts(
    saved: bytes, tmp_path: Path, nothing_is_executed: None
) -> None:
    chance, file = random.Random(2), tmp_path / "file"
    file.write_bytes(saved)
    archive, num_refused = read_archive(file), 0
    for turn in range(EXCHANGED + ALTERED):
        parts = mutant(chance, archive, is_json=turn >= EXCHANGED)
        write_archive(file, parts, archive.description)
        num_refused += not is_read(file)
    # The others changed a number or a text for another, or a part that is read later.
    assert num_refused > 200


def test_altered_files_are_loaded_or_refused(
    saved: bytes, tmp_path: Path, nothing_is_executed: None
) -> None:
    chance, file = random.Random(3), tmp_path / "file"
    file.write_bytes(saved)
    archive, num_loaded = read_archive(file), 0
    offline = poptorch.ConnectionType.Never
    for _ in range(LOADED // 2):
        write_archive(file, mutant(chance, archive, is_json=True), archive.description)
        try:
            model = poptorch.load(str(file), lambda o: o.connectionType(offline))
        except (AssertionError, poptorch.Error):
            continue
        num_loaded += 1
        model.destroy()
    assert 0 < num_loaded < LOADED // 2


def test_altered_cache_entries_are_compiled_again(
    tmp_path: Path, nothing_is_executed: None
) -> None:
    chance, cache = random.Random(4), ExecutableCache(tmp_path / "cache")
    x = batch(4)[0]

    def answer() -> torch.Tensor:
        torch.manual_seed(0)
        opts = options().enableExecutableCaching(str(cache.directory))
        model = poptorch.inferenceModel(Dropping().eval(), opts)
        result = model(x)
        model.destroy()
        return result

    expected = answer()
    (entry,) = cache.entries()
    archive = read_archive(entry.path)
    for _ in range(LOADED // 2):
        parts = mutant(chance, archive, is_json=False)
        write_archive(entry.path, parts, archive.description)
        assert torch.equal(answer(), expected)
