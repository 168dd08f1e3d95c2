"""TF_POPLAR_FLAGS: what is read from it and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tensorflow.compiler.plugin.poplar.driver import config_pb2
from tensorflow.python.ipu import utils
from tensorflow.python.ipu._device import poplar_flags

from popple.errors import UsageError

Category = poplar_flags.Category


def flags(monkeypatch: pytest.MonkeyPatch, text: str) -> poplar_flags.Flags:
    monkeypatch.setenv("TF_POPLAR_FLAGS", text)
    return poplar_flags.read()


def test_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    found = flags(monkeypatch, "")
    assert not found.use_ipu_model
    assert (found.on_demand_device_poll_time, found.log_cycle_count) == (1000, -1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--use_ipu_model", True),
        ("  --use_ipu_model=true ", True),
        ("--use_ipu_model=1", True),
        ("--use_ipu_model=false", False),
        ("--use_ipu_model --use_ipu_model=0", False),
    ],
)
def test_switches(monkeypatch: pytest.MonkeyPatch, text: str, expected: bool) -> None:
    flags(monkeypatch, text)
    assert utils.running_on_ipu_model() is expected


def test_values(monkeypatch: pytest.MonkeyPatch) -> None:
    found = flags(monkeypatch, "--log_cycle_count=3 --ipu_model_tiles='8'")
    assert (found.log_cycle_count, found.ipu_model_tiles) == (3, 8)


def test_flags_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "flags"
    path.write_text("--use_ipu_model\n--ipu_model_tiles=8\n")
    assert flags(monkeypatch, str(path)).ipu_model_tiles == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--use_ipu_modle", "Unknown flag '--use_ipu_modle'.* mean 'use_ipu_model'"),
        ("--use_ipu_model -x", "Unknown flag '-x'"),
        ("--save_vertex_graph=/x", "target.saveOutputVertexGraph"),
        ("--log_cycle_count=many", "--log_cycle_count cannot be 'many'"),
        ("--use_ipu_model=maybe", "cannot be 'maybe'"),
        ("--synthetic_data_categories=FOO", "cannot be 'FOO'"),
        ("--synthetic_data_initializer=1", "no data is synthetic"),
        ("/no/such/file", "neither a flag nor a file"),
    ],
)
def test_what_is_refused(
    monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        flags(monkeypatch, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", set()),
        ("--use_synthetic_data", set(Category)),
        ("--synthetic_data_categories=seed", {Category.SEED}),
        (
            "--synthetic_data_categories='infeed,  outfeed , hostembedding'",
            {Category.INFEED, Category.OUTFEED, Category.HOSTEMBEDDING},
        ),
    ],
)
def test_synthetic_data(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: set[Any]
) -> None:
    found = flags(monkeypatch, text)
    assert {
        category for category in Category if found.is_synthetic(category)
    } == expected
    assert utils.use_synthetic_data_for(utils.SyntheticDataCategory.Infeed) is (
        Category.INFEED in expected
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("uniform", poplar_flags.Initializer("uniform")),
        ("random", poplar_flags.Initializer("uniform")),
        ("normal", poplar_flags.Initializer("normal")),
        ("7", poplar_flags.Initializer("", 7)),
    ],
)
def test_initializers(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: poplar_flags.Initializer
) -> None:
    flag = f"--use_synthetic_data --synthetic_data_initializer={text}"
    assert flags(monkeypatch, flag).synthetic_data_initializer == expected


def test_categories_are_those_of_the_message() -> None:
    known = dict(config_pb2.SyntheticDataCategory.items())
    del known["Unknown"]
    ours = {category.name: category.value for category in Category}
    assert ours == {name.upper(): value for name, value in known.items()}


def test_help_lists_all_flags(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags(monkeypatch, "--help --ipu_model_tiles=77")
    printed = capsys.readouterr().err
    assert all(f"--{name}:" in printed for name in poplar_flags.FLAGS)
