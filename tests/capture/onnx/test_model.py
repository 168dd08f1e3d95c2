"""A Graph as an ONNX model: names, types, edges, and the file."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto

from popple.capture.onnx import (
    DOMAIN,
    Node,
    element_type,
    make_model,
    make_value_info,
    write_model,
)
from popple.graph import DType, TensorType, Value, parse_graph

GRAPH = parse_graph("""\
graph "train" {
  input %x : f16[16,64]
  weight %fc.weight : f16[64,10]
  matmul %fc : %y : f16[16,10] = (%x, %fc.weight) forward chip=0 stage=0
  sort %s : %v : f16[16,10] ; %i : i32[16,10] = (%y) forward chip=0 stage=0
  output %v
}
""")


def model() -> onnx.ModelProto:
    nodes = [Node(f"scope/{op.name}", op.kind.title(), op) for op in GRAPH.ops]
    return make_model(GRAPH, nodes, producer_version="1.2")


def test_a_model_is_valid() -> None:
    onnx.checker.check_model(model())


def test_names_and_edges() -> None:
    first, second = model().graph.node
    assert (first.name, first.op_type, first.domain) == ("scope/fc", "Matmul", DOMAIN)
    assert list(first.input) == ["x", "fc.weight"]
    assert list(second.input) == list(first.output) == ["y"]
    assert list(second.output) == ["v", "i"]


def test_weights_are_inputs_and_results_are_outputs() -> None:
    graph = model().graph
    assert [value.name for value in graph.input] == ["x", "fc.weight"]
    assert [value.name for value in graph.output] == ["v"]


@pytest.mark.parametrize("dtype", DType)
def test_every_element_type_has_a_number(dtype: DType) -> None:
    as_numpy = onnx.helper.tensor_dtype_to_np_dtype(element_type(dtype))
    assert as_numpy.itemsize == dtype.num_bytes


@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 5)])
def test_shapes(shape: tuple[int, ...]) -> None:
    found = make_value_info(Value("x", TensorType(DType.I32, shape))).type.tensor_type
    assert tuple(size.dim_value for size in found.shape.dim) == shape
    assert found.HasField("shape")
    assert found.elem_type == TensorProto.INT32


@pytest.mark.parametrize(("is_text", "form"), [(True, "textproto"), (False, None)])
def test_a_file_holds_the_model(
    tmp_path: Path, is_text: bool, form: str | None
) -> None:
    file = tmp_path / "model.onnx"
    write_model(model(), file, is_text=is_text)
    assert onnx.load_model(file, format=form) == model()
    assert (b"producer_name" in file.read_bytes()) is is_text
