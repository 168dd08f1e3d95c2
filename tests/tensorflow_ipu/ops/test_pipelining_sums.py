"""What pipelines sum over batches: in reports, and where the loss needs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu import test_utils as tu  # noqa: E402

import pva  # noqa: E402

v1 = tf.compat.v1
pipelining = ipu.pipelining_ops
pytestmark = pytest.mark.usefixtures("own_pod")


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def configure() -> Any:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 2
    reports = tu.ReportHelper()
    reports.set_autoreport_options(config)
    config.configure_ipu_system()
    return reports


def run(stages: Any, **options: Any) -> Any:
    """What a pipeline of 4 batches, all of them 1, feeds out."""
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        program = ipu.ipu_compiler.compile(
            lambda x: pipelining.pipeline(
                stages, 4, inputs=[x], outfeed_queue=outfeed, **options
            ),
            inputs=[1.0],
        )
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(program)
        return session.run(outfeed.dequeue())


def one(*tensors: Any) -> Any:
    return tensors


def test_reports_name_the_sums() -> None:
    reports = configure()
    sums = run([lambda x: (x, -x), one], accumulate_outfeed=True)
    assert [total.tolist() for total in sums] == [[4], [-4]]
    report = pva.openReport(reports.find_report())
    names = [each.name for each in report.compilation.computeSets]
    for wanted in ("AccumulatorAddWithScale/", "AccumulatorAddWithScale_1/"):
        assert len([name for name in names if wanted in name]) == 1


def test_the_batches_of_a_pipeline_without_an_infeed_are_a_loop() -> None:
    reports = configure()
    run([lambda x: tf.exp(x), one], accumulate_outfeed=True)
    report = pva.openReport(reports.find_report())
    names = [each.name for each in report.compilation.computeSets]
    assert len([name for name in names if "AddWithScale" in name]) == 1


def test_a_variable_that_the_loss_does_not_need_has_no_slope() -> None:
    configure()

    def stage(x: Any) -> Any:
        return x, x * v1.get_variable("w", initializer=3.0, use_resource=True)

    class Descent(v1.train.GradientDescentOptimizer):
        def apply_gradients(self, pairs: Any, *args: Any, **kwargs: Any) -> Any:
            ((gradient, variable),) = pairs
            update = variable.assign(variable - 1.0 + gradient)
            return tf.group(update)

    products = run(
        [stage, one],
        optimizer_function=lambda x, _: pipelining.OptimizerFunctionOutput(
            Descent(1.0), x
        ),
        outfeed_mask=[True, False],
        repeat_count=2,
    )
    assert products[0].tolist() == [3.0] * 4 + [2.0] * 4
