"""Options of the configuration on the ops they are for."""

from __future__ import annotations

import json
from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu._modelling import op_options  # noqa: E402
from tensorflow.python.ipu.ops.pipelining_ops import (  # noqa: E402
    PipelineStageOptions,
)

from ipu_tensorflow_addons.keras import layers  # noqa: E402
from ipu_tensorflow_addons.v1 import layers as v1_layers  # noqa: E402
from popple.graph import DType, Graph, Notes, Op  # noqa: E402
from popple.place import ApplyOpOptions  # noqa: E402
from tests.capture.tensorflow.tracing import graph_of, ints, of_kind, spec  # noqa: E402

PROPORTION = "availableMemoryProportion"


def configured(config: Any, graph: Graph, stages: str = "") -> Graph:
    said = op_options.op_options(config._create_protobuf(), stages)
    return ApplyOpOptions(said.by_family, said.by_stage, said.by_kind).apply(graph)


def mixed(x: Any, k: Any, table: Any, rows: Any) -> Any:
    """A convolution, a product, a lookup."""
    return tf.nn.conv2d(x, k, 1, "SAME"), table @ table, tf.gather(table, rows)


def mixed_graph() -> Graph:
    specs = (spec(2, 8, 8, 4), spec(3, 3, 4, 6), spec(6, 6), ints(3))
    return graph_of(mixed, *specs)


def only(graph: Graph, kind: str) -> Op:
    (op,) = of_kind(graph, kind)
    return op


def test_every_kind_of_op_has_options_of_its_own() -> None:
    config = ipu.config.IPUConfig()
    config.convolutions.poplar_options = {PROPORTION: "0.1", "partialsType": "half"}
    config.matmuls.poplar_options = {PROPORTION: "0.2", "partialsType": "float"}
    config.slices.poplar_options = {PROPORTION: "0.3"}
    graph = configured(config, mixed_graph())
    conv, product, lookup = (only(graph, k) for k in ("conv", "matmul", "gather"))
    assert conv.notes == Notes(memory_proportion=0.1, partials=DType.F16)
    assert product.notes == Notes(memory_proportion=0.2, partials=DType.F32)
    assert lookup.notes == Notes(memory_proportion=0.3)


def test_nothing_is_said_where_the_configuration_says_nothing() -> None:
    graph = mixed_graph()
    assert configured(ipu.config.IPUConfig(), graph).ops == graph.ops


def test_stages_have_options_of_their_own() -> None:
    given = {"availableMemoryProportion": "0.4"}
    options = [PipelineStageOptions(), PipelineStageOptions(matmul_options=given)]
    stages = json.dumps({"forward": [option.by_kind() for option in options]})
    graph = mixed_graph()
    for stage, expected in ((0, None), (1, 0.4)):
        staged = graph.with_ops(op.with_place(stage, stage) for op in graph.ops)
        found = configured(ipu.config.IPUConfig(), staged, stages)
        assert only(found, "matmul").notes.memory_proportion == expected


@pytest.mark.parametrize(("given", "expected"), [(0, 128), (16, 16)])
def test_solvers_work_in_blocks_of_a_given_size(given: int, expected: int) -> None:
    config = ipu.config.IPUConfig()
    config.optimizations.cholesky_block_size = given
    config.optimizations.triangular_solve_expander_block_size = given
    graph = graph_of(
        lambda a, b: tf.linalg.triangular_solve(tf.linalg.cholesky(a), b),
        spec(4, 4),
        spec(4, 2),
    )
    found = configured(config, graph)
    for kind in ("cholesky", "triangular_solve"):
        assert only(found, kind).notes.block_size == expected


@pytest.mark.parametrize("layer", [layers.LSTM, layers.GRU, v1_layers.PopnnLSTM])
def test_a_recurrent_layer_is_planned_by_its_own_options(layer: Any) -> None:
    made = layer(
        4,
        partials_dtype=tf.float16,
        options={PROPORTION: 0.1},
        options_bwd={PROPORTION: 0.2, "partialsType": "float"},
    )

    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.nest.flatten(made.call(x))[0] ** 2)
        return tape.gradient(loss, x)

    made.build((5, 2, 3))
    graph = graph_of(gradient, spec(5, 2, 3))
    found = [only(graph, kind).notes for kind in ("recurrent", "recurrent_grad")]
    assert found == [
        Notes(memory_proportion=0.1, partials=DType.F16),
        Notes(memory_proportion=0.2, partials=DType.F32),
    ]
