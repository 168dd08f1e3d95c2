"""Every example op becomes the ops it should."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")

from tests.capture.tensorflow.ops.examples import EXAMPLES
from tests.capture.tensorflow.tracing import graph_of, kinds


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_op_becomes_the_ops_it_should(name: str) -> None:
    function, specs, expected = EXAMPLES[name]
    assert kinds(graph_of(function, *specs)) == expected
