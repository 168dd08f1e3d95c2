"""Programs handed over to be modelled: reports, and the model on demand."""

from __future__ import annotations

import gc
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu import _modelling  # noqa: E402
from tensorflow.python.ipu._modelling import traced_programs  # noqa: E402
from tensorflow.python.ops import control_flow_util  # noqa: E402

import popple  # noqa: E402
from popple.capture.tensorflow import LoweredProgram, LowerRequest  # noqa: E402
from popple.capture.tensorflow import lower_program as lower  # noqa: E402
from popple.errors import UsageError  # noqa: E402
from popple.graph import DType, Graph, Strategy  # noqa: E402
from popple.options import ModelOptions  # noqa: E402
from popple.plan import Overlap  # noqa: E402
from tensorflow_ipu import _translate  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_pod", "no_reports")


@pytest.fixture
def no_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POPLAR_ENGINE_OPTIONS", "POPPLE_REPORT"):
        monkeypatch.delenv(name, raising=False)


class Owner:
    """Something that programs are made for."""


def traced() -> Any:
    @tf.function
    def program(x: Any) -> Any:
        return tf.matmul(x, x) + 1.0

    return program.get_concrete_function(tf.TensorSpec((4, 4)))


def reports_in(directory: Path) -> list[Path]:
    return list(directory.glob("tf_report__*"))


def ask_for_reports(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    options = {"autoReport.all": "true", "autoReport.directory": str(directory)}
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps(options))


def test_nothing_is_written_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    _modelling.record("program", traced().graph)
    assert reports_in(tmp_path) == []


def test_a_report_is_written_when_the_program_is_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ask_for_reports(monkeypatch, tmp_path)
    concrete = traced()
    for _ in range(3):
        _modelling.record("program", concrete.graph)
    (directory,) = reports_in(tmp_path)
    # Date, time to the millisecond, process.
    form = r"tf_report__\d{4}-\d\d-\d\d__\d\d-\d\d-\d\d\.\d{3}__\d+"
    assert re.fullmatch(form, directory.name)
    assert (directory / "profile.pop").is_file()
    framework = json.loads((directory / "framework.json").read_text())
    assert framework["name"] == "tensorflow"


def test_the_configuration_asks_for_reports_too(tmp_path: Path) -> None:
    config = ipu.config.IPUConfig()
    config.compilation_poplar_options = {
        "autoReport.outputGraphProfile": "true",
        "autoReport.directory": str(tmp_path / "reports"),
    }
    config.configure_ipu_system()
    _modelling.record("program", traced().graph)
    assert len(reports_in(tmp_path / "reports")) == 1


def test_popple_run_asks_for_reports_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("POPPLE_REPORT", str(tmp_path / "reports"))
    concretes = [traced(), traced()]
    for concrete in concretes:
        _modelling.record("a/program", concrete.graph)
    names = sorted(path.name for path in (tmp_path / "reports").iterdir())
    assert names == ["a_program", "a_program_2"]


def test_engine_options_must_be_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", "autoReport.all=true")
    with pytest.raises(UsageError, match="not a JSON object"):
        _modelling.record("program", traced().graph)


def test_a_program_that_cannot_be_modelled_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ask_for_reports(monkeypatch, tmp_path)
    messages: list[str] = []
    monkeypatch.setattr(traced_programs.logging, "warning", messages.append)

    @tf.function
    def program(x: Any) -> Any:
        return tf.matmul(x, x)

    graph = program.get_concrete_function(tf.TensorSpec((None, None))).graph
    _modelling.record("program", graph)
    assert "drop_remainder" in messages[0]
    assert reports_in(tmp_path) == []


def test_the_model_of_the_newest_program_of_an_object() -> None:
    owner, first, second = Owner(), traced(), traced()
    with _modelling.owned_by(owner):
        _modelling.record("first", first.graph)
        newest = _modelling.record("second", second.graph)
    assert [p.name for p in _modelling.programs_of(owner)] == ["first", "second"]
    assert _modelling.modelled(owner) is newest.modelled()


def test_an_object_without_programs_says_so() -> None:
    with pytest.raises(UsageError, match="nothing of this Owner"):
        _modelling.modelled(Owner())


def test_programs_do_not_keep_graphs_alive() -> None:
    program = _modelling.record("program", traced().graph)
    gc.collect()
    with pytest.raises(UsageError, match="gone"):
        program.modelled()


def lowered_of(num_stages: int, **fields: Any) -> LoweredProgram:
    """A program of ops that each are in a stage of their own."""
    given = lower(LowerRequest("g", traced().graph))
    ops = given.graph.ops[:num_stages]
    staged = tuple(op.with_place(stage, stage) for stage, op in enumerate(ops))
    return replace(given, graph=Graph("g", given.graph.values, staged), **fields)


def options_of(lowered: LoweredProgram, **settings: Any) -> ModelOptions:
    known = _modelling.ProgramSettings(**settings)
    configured = ipu.config.IPUConfig()._create_protobuf()
    return _translate.model_options(lowered, known, configured)


@pytest.mark.parametrize(
    ("num_stages", "schedule", "expected"),
    [
        (1, None, Strategy.SHARDED),
        (2, 0, Strategy.PIPELINED),
        (2, 1, Strategy.PIPELINED),
        (2, 2, Strategy.SHARDED),
    ],
)
def test_stages_overlap_unless_the_schedule_is_sequential(
    num_stages: int, schedule: int | None, expected: Strategy
) -> None:
    lowered = lowered_of(num_stages, schedule=schedule)
    assert options_of(lowered).strategy is expected


def test_trips_are_split_into_updates_and_batches() -> None:
    options = options_of(lowered_of(1, num_trips=24, accumulation=8))
    assert (options.device_iterations, options.accumulation) == (3, 8)


def test_accumulators_have_the_type_that_was_asked_for() -> None:
    lowered = lowered_of(1, update=("sgd_update", 0))
    update = options_of(lowered, accumulator_dtype=tf.float16).update
    assert update is not None
    assert update.accumulator_dtype is DType.F16


def test_what_a_pipeline_offloads_lies_off_chip() -> None:
    memory = options_of(lowered_of(2, off_chip=frozenset({"states"}))).memory
    # Tensors of 128 bytes or more: the least that the configuration sends away.
    assert memory.states_off_chip == 32
    assert memory.accumulators_off_chip is None


def test_feeds_of_a_pipeline_run_beside_compute_on_io_tiles() -> None:
    config = ipu.config.IPUConfig()
    config.io_tiles.num_io_tiles = 64
    config.io_tiles.place_ops_on_io_tiles = True
    known, configured = _modelling.ProgramSettings(), config._create_protobuf()
    made = [_translate.model_options(lowered_of(n), known, configured) for n in (1, 2)]
    assert [options.plan.io.num_tiles for options in made] == [64, 64]
    overlaps = [options.plan.io.overlap for options in made]
    assert overlaps == [Overlap.NONE, Overlap.MICRO_BATCHES]


def test_a_keras_model_tells_what_it_costs() -> None:
    with ipu.ipu_strategy.IPUStrategy().scope():
        layers = [tf.keras.layers.Dense(4, input_shape=(6,), name="only")]
        model = tf.keras.Sequential(layers)
        model.compile("sgd", "mse", steps_per_execution=4)
        model.fit(np.zeros((8, 6)), np.zeros((8, 4)), batch_size=2, verbose=0)
    modelled = popple.modelled(model)
    assert modelled.graph.execution.device_iterations == 4
    assert modelled.graph.execution.micro_batch == 2
    layers = {op.module for op in modelled.graph.ops if op.kind == "matmul"}
    assert {layer.rpartition("/")[2] for layer in layers} == {"only"}


def run_session(num_runs: int = 1, program: Any = lambda x: tf.matmul(x, x)) -> None:
    """Build a program of TensorFlow 1 and run it."""
    with tf.Graph().as_default():
        with tf.device("cpu"):
            x = tf.compat.v1.placeholder(tf.float32, (4, 4))
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            result = ipu.ipu_compiler.compile(program, [x])
        with tf.compat.v1.Session() as session:
            for _ in range(num_runs):
                session.run(result, {x: np.zeros((4, 4))})


def test_a_session_reports_what_it_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ask_for_reports(monkeypatch, tmp_path)
    run_session(num_runs=2)
    assert len(reports_in(tmp_path)) == 1


def test_arrays_of_old_style_are_on_the_device_that_writes_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # TensorFlow leaves them without a device until they are written to.
    monkeypatch.setattr(control_flow_util, "ENABLE_CONTROL_FLOW_V2", False)
    ask_for_reports(monkeypatch, tmp_path)

    def program(x: Any) -> Any:
        return tf.TensorArray(tf.float32, 4).unstack(x).read(1)

    run_session(program=program)
    assert len(reports_in(tmp_path)) == 1


def test_a_session_hands_over_one_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 2
    config.configure_ipu_system()
    seen: list[_modelling.TracedProgram] = []
    stock = _modelling.record
    monkeypatch.setattr(
        _modelling,
        "record",
        lambda *args, **given: seen.append(stock(*args, **given)) or seen[-1],
    )
    run_session()
    assert [program.settings.num_replicas for program in seen] == [2]
