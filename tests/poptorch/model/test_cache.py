"""The executable cache: one readable file per model, used again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import poptorch
from popple.graph import parse_graph
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


def entries(directory: Path) -> list[dict[str, object]]:
    return [json.loads(file.read_text()) for file in directory.iterdir()]


def test_compiling_leaves_a_file_with_the_graph(tmp_path: Path) -> None:
    cache = tmp_path / "new" / "cache"
    compiled(cache)
    (entry,) = entries(cache)
    assert entry["cycles"] is None
    assert parse_graph(str(entry["graph"])).name == "inference"


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
    assert len(entries(cache)) == 1


def test_other_models_and_options_have_files_of_their_own(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    compiled(cache)
    compiled(cache, torch.ones(3, 2))
    compiled(cache, torch.ones(2, 2), d=2)
    assert len(entries(cache)) == 3


@pytest.mark.parametrize("text", ["", "{}", '{"version": 1}', "[1]"])
def test_damaged_files_are_written_anew(text: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    compiled(cache)
    (file,) = cache.iterdir()
    file.write_text(text)
    compiled(cache)
    assert entries(cache)[0]["cycles"] is None


def test_a_file_is_only_believed_about_its_own_graph(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    compiled(cache)
    (file,) = cache.iterdir()
    entry = json.loads(file.read_text())
    file.write_text(json.dumps({**entry, "graph": "another", "cycles": 1}))
    model = compiled(cache)
    model(X)
    assert model.cycleCount() > 1


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(poptorch.Error, match=r"executable cache .* cannot be written"):
        compiled(tmp_path / "file")


def test_the_environment_names_a_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPTORCH_CACHE_DIR", str(tmp_path / "cache"))
    poptorch.inferenceModel(Scale(), options()).compile(X)
    assert len(entries(tmp_path / "cache")) == 1


def test_the_ipu_model_has_no_cache(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opts = options().useIpuModel(True).enableExecutableCaching(str(tmp_path / "cache"))
    poptorch.inferenceModel(Scale(), opts).compile(X)
    assert not (tmp_path / "cache").exists()
    assert "The executable cache is not used on the IPU model." in caplog.messages
