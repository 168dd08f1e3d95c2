"""Reads of variables come before the updates built after them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu._programs.reads_first import reads_first  # noqa: E402
from tensorflow.python.ops import control_flow_util  # noqa: E402

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph
    ipu.config.reset_ipu_configuration()


@pytest.fixture(params=[False, True], ids=["old loops", "new loops"])
def loops_of_either_style(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_flow_util, "ENABLE_CONTROL_FLOW_V2", request.param)


def make_variable() -> Any:
    return v1.get_variable("b", initializer=1.0, use_resource=True)


def test_an_update_waits_for_the_reads_before_it() -> None:
    variable = make_variable()
    with reads_first():
        before = variable.value()
        update = variable.assign(5.0).op
        after = variable.value()
    assert before.op in update.control_inputs
    assert after.op not in update.control_inputs


@pytest.mark.usefixtures("loops_of_either_style")
def test_in_loops_and_branches() -> None:
    variable = make_variable()
    found = {}

    def body() -> Any:
        found["read"] = variable.value().op

        def change() -> Any:
            with tf.control_dependencies([variable.assign_add(1.0)]):
                return tf.constant(0)

        return tf.group(tf.cond(tf.constant(True), change, lambda: tf.constant(0)))

    with ipu.scopes.ipu_scope("/device:IPU:0"):
        program = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(3, body))
    read = found["read"]
    waiting = [op for op in read.graph.get_operations() if read in op.control_inputs]
    assert [op.type for op in waiting] in (["AssignAddVariableOp"], ["If"])
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(program)
        assert session.run(variable) == 4.0


@pytest.mark.usefixtures("loops_of_either_style")
def test_the_loss_is_that_of_the_weights_before_the_update() -> None:
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def body() -> Any:
        # The gradient of a sum needs none of its terms.
        loss = tf.reduce_sum(tf.random.uniform([300, 300])) * 0.0 + make_variable()
        descent = v1.train.GradientDescentOptimizer(1.0)
        return outfeed.enqueue(loss), descent.minimize(loss)

    with ipu.scopes.ipu_scope("/device:IPU:0"):
        program = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(20, body))
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(program)
        assert np.allclose(session.run(dequeued), 1.0 - np.arange(20))
