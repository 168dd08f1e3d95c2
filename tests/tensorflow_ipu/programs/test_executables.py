"""Models exported for serving, and executables that run without their Python code."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.compiler.plugin.poplar.ops import (  # noqa: E402
    gen_application_runtime as raw,
)
from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu import embedded_runtime, serving  # noqa: E402
from tensorflow.python.ipu._executables import (  # noqa: E402
    arrays,
    executable_files,
)
from tensorflow.python.ipu._executables.engine import ENGINES  # noqa: E402

from popple.errors import UsageError  # noqa: E402
from popple.session import write_archive  # noqa: E402

v1 = tf.compat.v1
compile_op = ipu.application_compile_op.experimental_application_compile_op
VECTOR = tf.TensorSpec([2], tf.float32)


@pytest.fixture(autouse=True)
def device(own_pod: None) -> None:
    """A device for every test."""


def served(folder: Path) -> Any:
    loaded = tf.saved_model.load(str(folder))
    return lambda **inputs: loaded.signatures["serving_default"](**inputs)


def test_a_function_is_served_with_the_values_of_its_variables(tmp_path: Path) -> None:
    weight = tf.Variable(3.0)
    local = serving.export_single_step(
        lambda x: x * weight, str(tmp_path / "m"), 4, [VECTOR], output_names="y"
    )
    weight.assign(0.0)
    outputs = served(tmp_path / "m")(x=tf.constant([1.0, 2.0]))
    np.testing.assert_array_equal(outputs["y"], [3.0, 6.0])
    np.testing.assert_array_equal(local(tf.constant([1.0, 2.0]))["y"], [3.0, 6.0])


def test_steps_around_the_model_run_in_order(tmp_path: Path) -> None:
    serving.export_single_step(
        lambda x: 2.0 * x,
        str(tmp_path / "m"),
        1,
        [VECTOR],
        preprocessing_step=lambda text: tf.strings.to_number(text),
        preprocessing_step_signature=[tf.TensorSpec([2], tf.string)],
        postprocessing_step=lambda y: y + 1.0,
        postprocessing_step_signature=[VECTOR],
    )
    outputs = served(tmp_path / "m")(text=tf.constant(["1", "2"]))
    np.testing.assert_array_equal(outputs["output_0"], [3.0, 5.0])


def test_a_pipeline_has_fixed_inputs_and_served_ones(tmp_path: Path) -> None:
    serving.export_pipeline(
        [lambda factor, x: factor * x, lambda y: (y, -y)],
        str(tmp_path / "m"),
        2,
        inputs=[10.0],
        device_mapping=[0, 0],
        input_dataset=tf.data.Dataset.from_tensors(tf.zeros([2])),
        output_names=["up", "down"],
    )
    outputs = served(tmp_path / "m")(x=tf.constant([1.0, 2.0]))
    np.testing.assert_array_equal(outputs["down"], [-10.0, -20.0])


def test_results_that_do_not_fit_the_next_step_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not match required `predict_step`"):
        serving.export_single_step(
            lambda x: x,
            str(tmp_path / "m"),
            1,
            [VECTOR],
            preprocessing_step=lambda x: x[:1],
            preprocessing_step_signature=[VECTOR],
        )
    assert not (tmp_path / "m").exists()


def test_signatures_and_folders_are_checked(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(ValueError, match="is not empty"):
        serving.export_single_step(abs, str(tmp_path / "full"), 1, [VECTOR])
    with pytest.raises(ValueError, match="does not tell its input_signature"):
        serving.export_single_step(lambda x: x, str(tmp_path / "m"), 1)
    with pytest.raises(TypeError, match="not an instance of TensorSpec"):
        serving.export_single_step(lambda x: x, str(tmp_path / "m"), 1, [3])


def written(tmp_path: Path, weight: Any, freeze: bool) -> str:
    """A program that answers x with weight * x, three at a time."""
    data = tf.data.Dataset.from_tensors(tf.zeros([2])).repeat()
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(data)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def loop() -> Any:
        return ipu.loops.repeat(3, lambda x: outfeed.enqueue(weight * x), [], infeed)

    path = str(tmp_path / "program.poplar_exec")
    assert compile_op(loop, output_path=path, freeze_variables=freeze).numpy()
    return path


def test_an_executable_answers_call_by_call(tmp_path: Path) -> None:
    path = written(tmp_path, tf.Variable(2.0), freeze=True)
    context = embedded_runtime.embedded_runtime_start(path, [], "calls")
    answers = [
        embedded_runtime.embedded_runtime_call([tf.constant([n, 1.0])], context)[0]
        for n in range(5)
    ]
    embedded_runtime.embedded_runtime_stop(context)
    np.testing.assert_array_equal(answers, [[2.0 * n, 2.0] for n in range(5)])
    with pytest.raises(RuntimeError, match="never started"):
        embedded_runtime.embedded_runtime_call([tf.zeros([2])], context)


def test_more_threads_than_processors_call_one_engine(tmp_path: Path) -> None:
    path = written(tmp_path, tf.Variable(2.0), freeze=True)
    count = 2 * (os.cpu_count() or 1) + 2
    with tf.Graph().as_default():
        given = v1.placeholder(tf.float32, [2])
        context = embedded_runtime.embedded_runtime_start(path, [], "threads")
        (answer,) = embedded_runtime.embedded_runtime_call([given], context)
        with v1.Session() as session, ThreadPoolExecutor(count) as pool:
            asked = [
                pool.submit(session.run, answer, {given: [n, 1.0]})
                for n in range(4 * count)
            ]
            found = [each.result(timeout=60).tolist() for each in asked]
    ENGINES.forget("threads")
    assert found == [[2.0 * n, 2.0] for n in range(4 * count)]


@pytest.mark.parametrize("size", [2, 1 << 15])
def test_an_executable_updates_halves(tmp_path: Path, size: int) -> None:
    data = tf.data.Dataset.from_tensors(tf.zeros([size], tf.float16)).repeat()
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(data)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    names = ("accum", "var")
    states = {n: tf.Variable(tf.zeros([size], tf.float16), name=n) for n in names}

    def update(gradient: Any) -> Any:
        handles = {name: state.handle for name, state in states.items()}
        rate = tf.constant(0.5, tf.float16)
        done = tf.raw_ops.ResourceApplyKerasMomentum(
            grad=gradient, lr=rate, momentum=rate, **handles
        )
        with tf.control_dependencies([done]):
            first = [state.read_value()[0] for state in states.values()]
        return outfeed.enqueue(tf.stack(first))

    path = str(tmp_path / "program.poplar_exec")
    compile_op(lambda: ipu.loops.repeat(2, update, [], infeed), output_path=path)
    given = {f"XLA_Args/{name}": tf.ones([size], tf.float16) for name in names}
    context = embedded_runtime.embedded_runtime_start(path, given, f"halves {size}")
    call = [tf.ones([size], tf.float16)]
    found = [embedded_runtime.embedded_runtime_call(call, context)[0] for _ in range(2)]
    embedded_runtime.embedded_runtime_stop(context)
    # Momentum 1 / 2 - 1 / 2, then 0 - 1 / 2, added to 1.
    np.testing.assert_array_equal(found, [[0, 1], [-0.5, 0.5]])


def test_raw_operators_start_and_call_when_they_run(tmp_path: Path) -> None:
    path = written(tmp_path, tf.Variable(2.0, name="w"), freeze=False)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        start = raw.application_runtime([tf.constant(7.0)], path, engine_name="raw")
        batch = tf.compat.v1.placeholder(tf.float32, [2])
        answer = raw.application_call([batch], start, [tf.float32], engine_name="raw")
        assert session.run(answer, {batch: [1.0, 3.0]})[0].tolist() == [7.0, 21.0]
    ENGINES.forget("raw")


def test_compiling_has_no_raw_operator() -> None:
    with pytest.raises(AttributeError, match=r"Use .*application_compile_op"):
        _ = raw.ipu_application_compile


def test_variables_are_inputs_unless_they_are_frozen(tmp_path: Path) -> None:
    path = written(tmp_path, tf.Variable(2.0, name="w"), freeze=False)
    with pytest.raises(Exception, match="expects 1 inputs, but 0"):
        embedded_runtime.embedded_runtime_start(path, [], "missing")
    with pytest.raises(Exception, match="name 'XLA_Args/w'"):
        embedded_runtime.embedded_runtime_start(path, {"v": 1}, "misnamed")
    (answer,), context = embedded_runtime.embedded_runtime_start_and_call(
        path, {"XLA_Args/w": tf.constant(5.0)}, [tf.ones([2])], "given"
    )
    embedded_runtime.embedded_runtime_stop(context)
    np.testing.assert_array_equal(answer, [5.0, 5.0])


def test_shapes_and_types_of_a_call_are_checked(tmp_path: Path) -> None:
    path = written(tmp_path, tf.Variable(2.0), freeze=True)
    context = embedded_runtime.embedded_runtime_start(path, [], "checks")
    with pytest.raises(Exception, match="Mismatched input shape at position 0"):
        embedded_runtime.embedded_runtime_call([tf.zeros([3])], context)
    with pytest.raises(TypeError, match="Mismatched input dtype at position 0"):
        embedded_runtime.embedded_runtime_call([tf.zeros([2], tf.int32)], context)
    embedded_runtime.embedded_runtime_stop(context)


def test_an_engine_survives_an_error(tmp_path: Path) -> None:
    data = tf.data.Dataset.from_tensors(1.0).repeat()
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(data)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def answer() -> Any:
        x = infeed._dequeue()
        return outfeed.enqueue(tf.debugging.check_numerics(x, "no number"))

    path = compile_op(answer, output_path=str(tmp_path / "program"))
    context = embedded_runtime.embedded_runtime_start(path, [], "errors")
    with pytest.raises(tf.errors.InvalidArgumentError, match="no number"):
        embedded_runtime.embedded_runtime_call([tf.constant(np.nan)], context)
    (found,) = embedded_runtime.embedded_runtime_call([tf.constant(4.0)], context)
    embedded_runtime.embedded_runtime_stop(context)
    assert found == 4.0


def test_a_file_that_is_no_executable_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("nothing of the kind")
    with pytest.raises(UsageError, match="no executable"):
        embedded_runtime.embedded_runtime_start(str(tmp_path / "text"), [], "text")
    parts, described = {}, {"kind": "tensorflow program", "version": 9}
    write_archive(tmp_path / "newer", parts, described)
    with pytest.raises(UsageError, match="version 9"):
        embedded_runtime.embedded_runtime_start(str(tmp_path / "newer"), [], "newer")


def test_a_program_that_reaches_beyond_itself_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("1")

    def rewritten(kind: str, build: Callable[[], Any]) -> str:
        with tf.Graph().as_default() as graph:
            tf.group(build(), name="program")
        executable = executable_files.Executable(
            graph.as_graph_def().SerializeToString()
        )
        executable.write(str(tmp_path / kind))
        return str(tmp_path / kind)

    for kind, build in {
        "ReadFile": lambda: tf.io.read_file(str(secret)),
        "WriteFile": lambda: tf.io.write_file(str(secret), "2"),
        "EagerPyFunc": lambda: tf.py_function(secret.unlink, [], tf.int32),
        "PrintV2": lambda: tf.raw_ops.PrintV2(input="", output_stream="file://out"),
        "PartitionedCall": tf.function(lambda: tf.io.read_file(str(secret))),
    }.items():
        with pytest.raises(UsageError, match=r"File|PyFunc|Print"):
            executable_files.read(rewritten(kind, build))
    assert secret.read_text() == "1"


def test_mutated_executables_are_refused_by_name(tmp_path: Path) -> None:
    path = Path(written(tmp_path, tf.Variable(2.0), freeze=True))
    sound, random = path.read_bytes(), np.random.default_rng(3)
    whole, refusals = executable_files.read(str(path)), list[str]()
    for _ in range(500):
        mutated = bytearray(sound)
        for place in random.integers(0, len(sound), random.integers(1, 4)):
            mutated[place] ^= 1 << int(random.integers(8))
        path.write_bytes(mutated[: random.integers(1, 2 * len(sound))])
        try:
            # Dates and the like in a zip's own records say nothing.
            assert executable_files.read(str(path)) == whole
        except UsageError as error:
            refusals.append(str(error))
    assert len(refusals) > 400
    assert all(str(path) in refusal for refusal in refusals)


def test_values_that_are_damaged_are_an_error_by_name(tmp_path: Path) -> None:
    path = tmp_path / "values"
    arrays.write(str(path), {"a": np.arange(6.0), "b": np.ones(2)}, False)
    sound, random = path.read_bytes(), np.random.default_rng(4)
    for _ in range(300):
        path.write_bytes(sound[: random.integers(0, len(sound) - 1)])
        with pytest.raises(tf.errors.DataLossError, match="values"):
            arrays.read([str(path)], ["a"], strict=False, print_stats=False)
