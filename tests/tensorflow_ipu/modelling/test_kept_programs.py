"""TensorFlow's executable cache: what is found again, and what is not redone then."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu import _modelling  # noqa: E402
from tensorflow.python.ipu._modelling import traced_programs  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_pod")

NAME = re.compile(r"[0-9a-f]{16}\.poplar_exec")


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache that does not exist yet."""
    directory = tmp_path / "deep" / "cache"
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--executable_cache_path={directory}")
    for name in ("POPLAR_ENGINE_OPTIONS", "POPPLE_REPORT"):
        monkeypatch.delenv(name, raising=False)
    return directory


class Owner:
    """Something that programs are made for."""


def compiled(size: int = 4, scale: float = 2.0, replicas: int = 1) -> Any:
    """A traced program with a loop, whose functions have other numbers each time."""
    weight = tf.Variable(tf.ones([size, size]), name="weight")

    @tf.function
    def program(x: Any) -> Any:
        for _ in tf.range(3):
            x = tf.matmul(x, weight) * scale
        return x

    concrete = program.get_concrete_function(tf.TensorSpec((size, size)))
    owner = Owner()
    with _modelling.owned_by(owner):
        graph = concrete.graph
        found = _modelling.record(graph.name, graph, num_replicas=replicas)
    found.kept_alive = (concrete, weight, owner)
    return found


def files(directory: Path) -> list[Path]:
    return sorted(directory.iterdir())


def configure(num_ipus: int, **options: str) -> None:
    ipu.config.reset_ipu_configuration()
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = num_ipus
    config.compilation_poplar_options = options
    config.configure_ipu_system()


def refuse_to_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    def capture(_: object) -> Any:
        raise AssertionError("the program is captured again")

    monkeypatch.setattr(traced_programs.TracedProgram, "_cost_request", capture)


def test_cycles_of_a_second_start_come_from_the_file(
    cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tensorflow")
    cycles = compiled().cycles()
    (file,) = files(cache)
    assert NAME.fullmatch(file.name)
    assert f"Couldn't find {file} in executable cache" in caplog.text
    refuse_to_capture(monkeypatch)
    assert compiled().cycles() == cycles
    assert f"Loaded program from {file}" in caplog.text


@pytest.mark.parametrize(
    "other",
    [
        lambda: compiled(size=8),
        lambda: compiled(scale=3.0),
        lambda: compiled(replicas=2),
        lambda: configure(2) or compiled(),
        lambda: configure(1, **{"opt.maxComputeSetsPerLoop": "1"}) or compiled(),
    ],
    ids=["shape", "constant", "replicas", "machine", "option"],
)
def test_another_program_does_not_find_the_file(
    cache: Path, other: Callable[[], Any]
) -> None:
    configure(1)
    compiled()
    other()
    assert len(files(cache)) == 2


def test_another_version_does_not_find_the_file(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled()
    monkeypatch.setattr("tensorflow.compat.v2.__version__", "9.9")
    compiled()
    assert len(files(cache)) == 2


def test_where_reports_go_is_no_part_of_a_program(cache: Path) -> None:
    configure(1)
    compiled()
    configure(1, **{"autoReport.directory": "elsewhere"})
    compiled()
    assert len(files(cache)) == 1


def test_a_damaged_file_is_replaced_with_a_warning(
    cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cycles = compiled().cycles()
    (file,) = files(cache)
    sound = file.read_bytes()
    file.write_bytes(sound[: len(sound) // 2])
    assert compiled().cycles() == cycles
    assert "damaged" in caplog.text
    assert file.read_bytes() == sound


def test_a_report_comes_from_the_file(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("POPPLE_REPORT", str(tmp_path / "first"))
    compiled()
    refuse_to_capture(monkeypatch)
    monkeypatch.setenv("POPPLE_REPORT", str(tmp_path / "second"))
    compiled()
    (first,) = (tmp_path / "first").rglob("profile.pop")
    (second,) = (tmp_path / "second").rglob("profile.pop")
    assert first.read_bytes() == second.read_bytes()


def test_a_loaded_program_has_no_profile_of_its_graph_alone(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = {
        "autoReport.outputGraphProfile": "true",
        "autoReport.directory": str(tmp_path / "reports"),
    }
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps(options))
    compiled()
    compiled()
    assert len(list((tmp_path / "reports").iterdir())) == 1


def test_programs_of_sessions_are_found_in_another_graph(cache: Path) -> None:
    def run() -> Any:
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            x = tf.compat.v1.placeholder(tf.float32, [2, 2])
            with ipu.scopes.ipu_scope("/device:IPU:0"):
                (y,) = ipu.ipu_compiler.compile(lambda x: tf.matmul(x, x) + 1.0, [x])
            return session.run(y, {x: np.eye(2)})

    np.testing.assert_array_equal(run(), run())
    assert len(files(cache)) == 1
