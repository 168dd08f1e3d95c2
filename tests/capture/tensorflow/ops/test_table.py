"""The table of rules: names that exist, and what happens without an entry."""

from __future__ import annotations

import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python.framework import op_def_registry  # noqa: E402

from popple.capture.tensorflow.control.old_style import OLD_CONTROL  # noqa: E402
from popple.capture.tensorflow.control.table import CONTROL  # noqa: E402
from popple.capture.tensorflow.ops import RULES  # noqa: E402
from tests.capture.tensorflow.tracing import (  # noqa: E402
    graph_of,
    lower,
    model_program,
    of_kind,
    spec,
)


def test_every_rule_is_for_an_op_that_tensorflow_has() -> None:
    names = {*RULES, *CONTROL, *OLD_CONTROL}
    assert [name for name in names if op_def_registry.get(name) is None] == []


def test_an_op_without_a_rule_is_named() -> None:
    (op,) = of_kind(graph_of(tf.linalg.inv, spec(4, 4)), "generic")
    assert op.attrs["framework_op"] == "MatrixInverse"


def test_an_op_without_a_rule_is_priced_and_named_in_the_report() -> None:
    modelled = model_program(lower(lambda x: tf.linalg.inv(x) + 1, spec(4, 4)))
    assert modelled.planned.generic_ops == {"MatrixInverse": 1}
    assert modelled.simulation.cost.cycles > 0
