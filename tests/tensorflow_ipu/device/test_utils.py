"""`ipu.utils`: seeds, initialisers, data sets and variables in files."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.ipu import dataset_extractor, utils
from tensorflow.python.ipu._device import seeds
from tensorflow.python.ipu._executables import arrays
from tensorflow.python.ipu.dataset_benchmark import dataset_benchmark as benchmark

v1 = tf.compat.v1


def pairs(count: int) -> tf.data.Dataset:
    values = tf.data.Dataset.range(count)
    return values.map(lambda i: {"a": tf.fill([2], i), "b": tf.cast(i, tf.float32)})


@pytest.mark.parametrize("eagerly", [True, False])
def test_a_data_set_in_a_file(tmp_path: Path, eagerly: bool) -> None:
    path = str(tmp_path / "data.bin")
    if eagerly:
        utils.export_dataset_to_file(pairs(5), path, 3, "feed")
    else:
        with tf.Graph().as_default():
            utils.export_dataset_to_file(pairs(5), path, 3, "feed")
    with np.load(path) as found:
        assert len(found.files) == 2 * 3
        assert found["feed.0/2"].tolist() == [2, 2]
        assert found["feed.1/1"] == 1.0
    assert [p.name for p in tmp_path.iterdir()] == ["data.bin"]


def test_a_data_set_that_is_too_short(tmp_path: Path) -> None:
    with pytest.raises(tf.errors.OpError, match="only 2 elements, not 3"):
        utils.export_dataset_to_file(pairs(2), str(tmp_path / "data"), 3)
    assert list(tmp_path.iterdir()) == []


def test_elements_that_begin_anew(tmp_path: Path) -> None:
    writer = arrays.ElementWriter(str(tmp_path / "data.bin"), "feed", 1, False)
    writer.write(0, 1.0)
    writer.write(1, 2.0)
    writer.finish(writer.write(0, 3.0))
    with np.load(tmp_path / "data.bin") as found:
        assert dict(found) == {"feed.0/0": 3.0}
    assert [p.name for p in tmp_path.iterdir()] == ["data.bin"]


def test_what_is_not_a_data_set(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"must be a tf\.data\.Dataset or"):
        utils.export_dataset_to_file([1, 2], str(tmp_path / "data"), 1)
    with pytest.raises(ValueError, match="at least 1"):
        dataset_extractor.dataset_extractor(pairs(2), 0, "x", "")


def test_inputs_in_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "inputs.bin")
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [2], name="x")
        utils.export_inputs_to_file([x], path, {x: [1.0, 2.0]})
    with np.load(path) as found:
        assert found["x:0"].tolist() == [1.0, 2.0]


def session_with_variables() -> Any:
    v1.get_variable("w", initializer=[1.0, 2.0], use_resource=True)
    v1.get_variable("n", initializer=3, use_resource=True)
    session = v1.Session()
    session.run(v1.global_variables_initializer())
    return session


def test_variables_of_a_session_there_and_back(tmp_path: Path) -> None:
    path = str(tmp_path / "folder" / "weights.bin")
    with tf.Graph().as_default(), session_with_variables() as session:
        utils.export_variables_from_live_session(session, path)
        w, n = v1.global_variables()
        session.run([w.assign([0.0, 0.0]), n.assign(0)])
        utils.import_data_in_live_session(session, [path])
        assert session.run(w).tolist() == [1.0, 2.0]
        assert session.run(n) == 3


def test_files_must_fit_strictly(tmp_path: Path) -> None:
    path = str(tmp_path / "weights.bin")
    start = tf.constant(1.0)
    first, second = tf.Variable(start, name="a"), tf.Variable(start, name="b")
    dataset_extractor.export_variables([first, second], ["a", "b"], path)
    with pytest.raises(tf.errors.OpError, match=r"have \['b'\] too many"):
        dataset_extractor.import_variables([first], [path])
    dataset_extractor.import_variables([first], [path], strict=False)


def test_names_of_handles() -> None:
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", initializer=1.0, use_resource=True)
        (names,) = session.run(dataset_extractor.get_variable_handles([w]))
    assert list(names) == [b"w"]


def test_initialisers_move_to_the_cpu() -> None:
    with tf.Graph().as_default() as graph:
        with tf.device("/device:IPU:0"):
            start = tf.ones([2]) * 3.0
            w = v1.get_variable("w", initializer=start, use_resource=True)
            v1.get_variable("c", initializer=w.read_value() + 1.0, use_resource=True)
        utils.move_variable_initialization_to_cpu()
        devices = {op.type: op.device for op in graph.get_operations()}
    assert devices["Mul"] == "/device:CPU:0"
    # It reads a variable, which is on the IPU.
    assert devices["ReadVariableOp"] == "/device:IPU:0"


def test_a_seed_starts_random_numbers_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "_SEEDS", seeds.Seeds())
    monkeypatch.setattr(context.context(), "_seed", None)
    drawn = []
    for _ in range(2):
        utils.reset_ipu_seed(42)
        drawn.append(tf.random.uniform([3]).numpy().tolist())
    assert drawn[0] == drawn[1]
    assert seeds.get() == seeds.Seed(42)


def test_a_seed_of_the_program_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "_SEEDS", seeds.Seeds())
    tf.random.set_seed(1)
    first = tf.random.uniform([3]).numpy().tolist()
    tf.random.set_seed(1)
    utils.reset_ipu_seed(42, experimental_identical_replicas=True)
    assert tf.random.uniform([3]).numpy().tolist() == first


def test_listeners_hear_of_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "_SEEDS", seeds.Seeds())
    heard: list[Any] = []
    seeds.on_reset(lambda ordinal, seed: heard.append((ordinal, seed.value)))
    utils.reset_ipu_seed(5, "/device:IPU:2")
    assert heard == [(2, 5)]


def test_a_benchmark_waits_for_the_data() -> None:
    made: list[float] = []

    def elements() -> Any:
        for number in range(8):
            made.append(time.time())
            yield float(sum(range(100_000 + number)))

    data = tf.data.Dataset.from_generator(
        elements, output_signature=tf.TensorSpec([], tf.float32)
    )
    (text,) = benchmark(data, 1, 8, print_stats=False).numpy()
    elapsed = json.loads(text)["epochs"][0]["time_elapsed"]
    # The clock was read before the first and after the last element was made.
    assert elapsed >= made[7] - made[0]
