"""Compiled models as files: saved, loaded, exported."""

from __future__ import annotations

import pickle
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import poptorch
from popple.session.archive import read_archive, write_archive
from tests.poptorch.models import Scale, options

X = torch.ones(2)
Pair = namedtuple("Pair", ["first", "second"])


class Noisy(Scale):
    """Drops some of what it scales."""

    def forward(self, x: Tensor) -> Tensor:
        return poptorch.identity_loss(nn.functional.dropout(x * self.weight), "mean")


class TakesPair(nn.Module):
    """An argument of the program's own type."""

    def forward(self, pair: Any) -> Tensor:
        return pair.first + pair.second


def trainer(module: nn.Module, lr: float = 0.5) -> poptorch.PoplarExecutor:
    optimizer = poptorch.optim.Adam(module.parameters(), lr=lr)
    return poptorch.trainingModel(module, options().randomSeed(1), optimizer)


def test_a_training_model_goes_on_where_it_was_saved(tmp_path: Path) -> None:
    file = str(tmp_path / "model.poptorch")
    module = Noisy()
    model = trainer(module)
    for _ in range(3):
        model(X)
    model.save(file)
    loaded: Any = poptorch.load(file)
    for _ in range(3):
        assert torch.equal(loaded(X), model(X))
    assert torch.equal(loaded.model.weight, module.weight)


def test_an_inference_model_comes_back(tmp_path: Path) -> None:
    file = str(tmp_path / "model.poptorch")
    model = poptorch.inferenceModel(Scale(), options())
    model.compileAndExport(file, X)
    loaded = poptorch.load(file)
    assert loaded.isCompiled()
    assert type(loaded.model) is Scale
    assert loaded(3 * X).item() == 3


def test_options_can_be_edited_and_are_brought_online(tmp_path: Path) -> None:
    file = str(tmp_path / "model.poptorch")
    offline = poptorch.inferenceModel(Scale(), options().useOfflineIpuTarget())
    offline.compileAndExport(file, X)
    loaded = poptorch.load(file, lambda opts: opts.useIpuId(3))
    assert loaded.options.ipu_id == 3
    assert loaded.isAttachedToDevice()


def test_an_executable_is_for_a_model_wrapped_again(tmp_path: Path) -> None:
    file = str(tmp_path / "model.poptorch")
    trainer(Scale()).compileAndExport(file, torch.ones(4, 2), export_model=False)
    model = trainer(Scale())
    model.loadExecutable(file)
    assert model.isCompiled()
    with pytest.raises(poptorch.Error, match="Shape mismatch"):
        model(X)  # the file decides on the shapes
    model(torch.ones(4, 2))


def test_a_file_without_the_module_cannot_be_loaded(tmp_path: Path) -> None:
    file = str(tmp_path / "model.poptorch")
    trainer(Scale()).compileAndExport(file, X, export_model=False)
    with pytest.raises(AssertionError, match=r"loadExecutable\(\)"):
        poptorch.load(file)


def test_folders_are_made_and_directories_get_a_file(tmp_path: Path) -> None:
    model = poptorch.inferenceModel(Scale(), options())
    model.compile(X)
    model.save(str(tmp_path / "new" / "folder" / "m.poptorch"))
    model.save(str(tmp_path / "new"))
    assert (tmp_path / "new" / "folder" / "m.poptorch").is_file()
    assert (tmp_path / "new" / "model.poptorch").is_file()


def test_only_compiled_models_are_saved(tmp_path: Path) -> None:
    with pytest.raises(poptorch.Error, match="has not been compiled"):
        poptorch.inferenceModel(Scale(), options()).save(str(tmp_path / "m"))


def test_the_state_of_random_numbers_can_be_left_out(tmp_path: Path) -> None:
    file = str(tmp_path / "model.poptorch")
    model = trainer(Noisy(), lr=0.0)
    first = model(X)
    model.save(file, save_rng_state=False)
    assert torch.equal(poptorch.load(file)(X), first)


@pytest.mark.parametrize(("call", "error"), [("load", AssertionError), ("exe", None)])
def test_another_version_is_refused(
    call: str, error: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "model.poptorch")
    model = poptorch.inferenceModel(Scale(), options())
    model._poptorch_version = "0.0.1"
    model.compileAndExport(file, X)
    other = poptorch.inferenceModel(Scale(), options())
    use = poptorch.load if call == "load" else other.loadExecutable
    with pytest.raises(error or poptorch.Error, match=r"version 0\.0\.1"):
        use(file)


@pytest.mark.parametrize("text", [b"", b"not a model"])
def test_other_files_are_refused(text: bytes, tmp_path: Path) -> None:
    file = tmp_path / "model.poptorch"
    file.write_bytes(text)
    with pytest.raises(AssertionError, match="is not a model written by save"):
        poptorch.load(str(file))


class Opaque:
    """An argument of a kind that no file can hold as data."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class OpaqueParser(poptorch.ICustomArgParser):
    """Takes it apart."""

    def yieldTensors(self, struct: Any) -> Any:
        yield struct.tensor

    def reconstruct(self, original_structure: Any, tensor_iterator: Any) -> Any:
        return Opaque(next(tensor_iterator))


class TakesOpaque(nn.Module):
    """Doubles what is inside."""

    def forward(self, held: Any) -> Tensor:
        return held.tensor * 2


class Opened(Exception):
    """Someone has run what a file said."""


class Trap:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return (_raise_opened, ())


def _raise_opened() -> None:
    raise Opened


def with_trap(file: Path) -> None:
    """Put a trap in place of the pickled module."""
    archive = read_archive(file)
    parts = {**archive.parts, "module.pickle": pickle.dumps(Trap())}
    write_archive(file, parts, archive.description)


def test_only_trusted_files_run_code(tmp_path: Path) -> None:
    file = tmp_path / "model.poptorch"
    model = poptorch.inferenceModel(Scale(), options())
    model.compileAndExport(str(file), X)
    with_trap(file)
    model.loadExecutable(str(file))
    assert poptorch.load(str(file))(3 * X).item() == 3
    with pytest.raises(Opened):
        poptorch.load(str(file), trust=True)


def test_a_file_is_a_program_without_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "model.poptorch")
    module = Noisy()
    model = trainer(module)
    model(X)
    model.save(file)
    monkeypatch.delattr("tests.poptorch.model.test_saving.Noisy")
    loaded: Any = poptorch.load(file)
    for _ in range(3):
        assert torch.equal(loaded(X), model(X))
    assert torch.equal(loaded.model.weight, module.weight)
    assert loaded.model.state_dict().keys() == module.state_dict().keys()
    assert "Noisy" in repr(loaded)
    with pytest.raises(poptorch.Error, match="not its Python class"):
        loaded.model.forward(X)
    with pytest.raises(poptorch.Error, match="not its Python class"):
        poptorch.inferenceModel(loaded, options())(X)


def test_a_trusted_file_has_the_module(tmp_path: Path) -> None:
    file = str(tmp_path / "model.poptorch")
    model = trainer(Noisy())
    model(X)
    model.save(file)
    loaded = poptorch.load(file, trust=True)
    assert isinstance(loaded.model, Noisy)
    assert torch.equal(loaded(X), model(X))


def test_what_a_file_says_is_readable(tmp_path: Path) -> None:
    file = tmp_path / "model.poptorch"
    poptorch.inferenceModel(Scale(), options()).compileAndExport(str(file), X)
    archive = read_archive(file)
    assert archive.description["version"] == poptorch.__version__
    assert archive.description["training"] is False
    assert archive.json("facts.json")["parameters"] == ["weight"]


def test_files_do_not_hold_the_inputs(tmp_path: Path) -> None:
    file = tmp_path / "model.poptorch"
    model = poptorch.inferenceModel(Scale(), options())
    model.compileAndExport(str(file), torch.ones(1_000_000, 2), export_model=False)
    assert file.stat().st_size < 10_000


def test_local_classes_are_exported_without_the_class(tmp_path: Path) -> None:
    class Local(Scale):
        pass

    file = str(tmp_path / "m")
    poptorch.inferenceModel(Local(), options()).compileAndExport(file, X)
    assert poptorch.load(file)(X).item() == 1
    with pytest.raises(AssertionError, match="holds no pickled module"):
        poptorch.load(file, trust=True)


def test_named_tuples_are_arguments(tmp_path: Path) -> None:
    file = str(tmp_path / "m.poptorch")
    model = poptorch.inferenceModel(TakesPair(), options())
    model.compileAndExport(file, Pair(X, X))
    assert poptorch.load(file)(Pair(X, X)).tolist() == [2, 2]
    other = poptorch.inferenceModel(TakesPair(), options())
    other.loadExecutable(file)
    assert other(Pair(X, X)).tolist() == [2, 2]


def test_arguments_of_own_types_need_trust(tmp_path: Path) -> None:
    file = str(tmp_path / "m.poptorch")
    poptorch.registerCustomArgParser(Opaque, OpaqueParser())
    try:
        model = poptorch.inferenceModel(TakesOpaque(), options())
        model.compileAndExport(file, Opaque(X))
        with pytest.raises(AssertionError, match="trust=True"):
            poptorch.load(file)
        with pytest.raises(poptorch.Error, match="own types"):
            poptorch.inferenceModel(TakesOpaque(), options()).loadExecutable(file)
        loaded = poptorch.load(file, trust=True)
        assert loaded(Opaque(X)).tolist() == [2, 2]
    finally:
        poptorch.registerCustomArgParser(Opaque, None)


def test_an_executable_of_other_options_is_compiled_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = str(tmp_path / "m.poptorch")
    model = poptorch.inferenceModel(Scale(), options())
    model.compileAndExport(file, torch.ones(4, 2), export_model=False)
    other = poptorch.inferenceModel(Scale(), options(d=2))
    other.loadExecutable(file)
    # Two device iterations of two samples, not one of four.
    assert "compiled for micro-batches of 4" in caplog.text
    assert other(torch.ones(4, 2)).tolist() == [1, 1]


def test_a_loaded_executable_is_not_traced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "m.poptorch")
    trainer(Noisy()).compileAndExport(file, X)
    name = "poptorch._model.compiler.compile_step"
    monkeypatch.setattr(name, lambda *_: pytest.fail("traces again"))
    other = trainer(Noisy())
    other.loadExecutable(file)
    assert other(X) is not None


def test_compiled_models_are_not_pickled() -> None:
    model = poptorch.inferenceModel(Scale(), options())
    pickle.dumps(model)
    model.compile(X)
    with pytest.raises(poptorch.Error, match=r"Use model\.save\(file\)"):
        pickle.dumps(model)
