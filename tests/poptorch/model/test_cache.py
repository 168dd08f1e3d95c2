"""The executable cache: one file per model, neither traced nor modelled again."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import poptorch
from popple.graph import parse_graph
from popple.session.archive import read_archive, write_archive
from tests.poptorch.models import Scale, options

X = torch.ones(2)


def compiled(
    directory: Path, x: torch.Tensor = X, **counts: int
) -> poptorch.PoplarExecutor:
    opts = options(**counts).enableExecutableCaching(str(directory))
    opts.logCycleCount(True)
    model = poptorch.inferenceModel(Scale(), opts)
    model.compile(x)
    return model


def is_cached(model: poptorch.PoplarExecutor) -> bool:
    return type(model._get_compiled().step.capture).__name__ == "KeptCapture"


def test_compiling_leaves_a_file(tmp_path: Path) -> None:
    cache = tmp_path / "new" / "cache"
    assert not is_cached(compiled(cache))
    (file,) = cache.iterdir()
    assert re.fullmatch(r"[0-9a-f]{16}\.poplar_exec", file.name)
    archive = read_archive(file)
    assert archive.description["name"] == "inference"
    assert parse_graph(archive.part("graph.txt").decode()).name == "inference"
    assert is_cached(compiled(cache))


def test_modelled_cycles_are_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    first = compiled(cache)
    first(X)
    cycles = first.cycleCount()
    monkeypatch.setattr(
        "popple.pipeline.model_graph", lambda *_: pytest.fail("models again")
    )
    second = compiled(cache)
    second(X)
    assert second.cycleCount() == cycles
    assert len(list(cache.iterdir())) == 1


def test_reports_are_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def report_in(name: str) -> bytes:
        opts = options().enableExecutableCaching(str(tmp_path / "cache"))
        opts.enableProfiling(str(tmp_path / name))
        poptorch.inferenceModel(Scale(), opts).compile(X)
        return (tmp_path / name / "inference" / "profile.pop").read_bytes()

    first = report_in("1")
    monkeypatch.setattr(
        "popple.pipeline.model_graph", lambda *_: pytest.fail("models again")
    )
    assert report_in("2") == first


def test_a_cached_model_can_be_modelled_and_looked_into(tmp_path: Path) -> None:
    first, second = compiled(tmp_path), compiled(tmp_path)
    assert is_cached(second)
    assert second.getTensorNames() == first.getTensorNames()
    assert second._debugGetPopartIR() == first._debugGetPopartIR()
    modelled = [each.__popple__().simulation.cost for each in (first, second)]
    assert modelled[0] == modelled[1]


def test_other_models_and_options_have_files_of_their_own(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    compiled(cache)
    compiled(cache, torch.ones(3, 2))
    compiled(cache, torch.ones(2, 2), d=2)
    assert len(list(cache.iterdir())) == 3


@pytest.mark.parametrize("text", [b"", b"{}", b"PK\3\4", b"[1]" * 1000])
def test_damaged_files_are_written_anew(
    text: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = tmp_path / "cache"
    compiled(cache)
    (file,) = cache.iterdir()
    file.write_bytes(text)
    assert not is_cached(compiled(cache))
    assert "the file is damaged" in caplog.text
    assert is_cached(compiled(cache))


@pytest.mark.parametrize("part", ["facts.json", "replay.json"])
def test_files_with_odd_contents_are_compiled_again(
    part: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    compiled(tmp_path / "cache")
    (file,) = (tmp_path / "cache").iterdir()
    archive = read_archive(file)
    write_archive(file, {**archive.parts, part: b"[1,2]"}, archive.description)
    model = compiled(tmp_path / "cache")
    assert not is_cached(model)
    assert "The model is compiled again." in caplog.text
    assert model(X).item() == 1


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(poptorch.Error, match=r"executable cache .* cannot be written"):
        compiled(tmp_path / "file")


@pytest.mark.parametrize("name", ["POPTORCH_CACHE_DIR", "POPART_CACHE_DIR"])
def test_the_environment_names_a_cache(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, str(tmp_path / "cache"))
    poptorch.inferenceModel(Scale(), options()).compile(X)
    assert len(list((tmp_path / "cache").iterdir())) == 1
    # One that the program has switched off stays off.
    off = options().enableExecutableCaching(None)
    poptorch.inferenceModel(Scale(), off).compile(torch.ones(4, 2))
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_the_ipu_model_has_no_cache(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opts = options().useIpuModel(True).enableExecutableCaching(str(tmp_path / "cache"))
    poptorch.inferenceModel(Scale(), opts).compile(X)
    assert not (tmp_path / "cache").exists()
    assert "The executable cache is not used on the IPU model." in caplog.messages


class Counting(nn.Module):
    """Counts its calls on the host: that would be missed if it were not traced."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * 2


class OnHost(nn.Module):
    """Calls a function of the host."""

    def __init__(self) -> None:
        super().__init__()
        self.cpu: Any = poptorch.CPU(lambda x: x + 1, "plus one")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cpu(x)


class Locked(nn.Module):
    """Has an attribute that nobody can look into."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = iter([1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (Counting, "its forward changes the program"),
        (OnHost, "The model is traced in every run"),
        (Locked, "Locked.stream: a list_iterator has state of its own"),
    ],
)
def test_models_that_must_be_traced_are_not_modelled_again(
    module: Any,
    why: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def made() -> poptorch.PoplarExecutor:
        opts = options().enableExecutableCaching(str(tmp_path)).logCycleCount(True)
        model = poptorch.inferenceModel(module(), opts)
        model(X)
        return model

    with caplog.at_level(logging.DEBUG, logger="poptorch::python"):
        cycles = made().cycleCount()
    assert why in caplog.text
    monkeypatch.setattr(
        "popple.pipeline.model_graph", lambda *_: pytest.fail("models again")
    )
    second = made()
    assert not is_cached(second)
    assert second.cycleCount() == cycles
