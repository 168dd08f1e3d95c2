from __future__ import annotations

from dataclasses import replace

import pytest

from popple.errors import GraphError
from popple.graph import (
    NO_NOTES,
    DType,
    Execution,
    Notes,
    Phase,
    Role,
    TensorType,
    Value,
    parse_graph,
)

GRAPH = parse_graph("""
graph "g" {
  input %x : f32[2,3]
  weight %w : f16[3]
  state %m : f16[3]
  slice %r : %y : f32[1,3] shares %x = (%x) {"start": 1, "dim": 0} notes \
{"block_size": 4} forward chip=0 stage=0
  permute %p : %z : f32[3,1] shares %y = (%y) {"order": [1, 0]} forward chip=0 stage=0
  cholesky %c : %l : f32[2,3] = (%x) {"is_upper": true} forward chip=0 stage=0
}
""")


@pytest.mark.parametrize(
    ("dtype", "num_bytes", "is_float"),
    [
        (DType.F32, 4, True),
        (DType.BF16, 2, True),
        (DType.F8, 1, True),
        (DType.U32, 4, False),
        (DType.BOOL, 1, False),
    ],
)
def test_element_types_know_their_size(
    dtype: DType, num_bytes: int, is_float: bool
) -> None:
    assert (dtype.num_bytes, dtype.is_float) == (num_bytes, is_float)


def test_every_element_type_has_a_size() -> None:
    assert {dtype.num_bytes for dtype in DType} == {1, 2, 4}


def test_tensor_types_count_elements_and_bytes() -> None:
    matrix = TensorType(DType.F16, (3, 5))
    assert (matrix.num_elements, matrix.num_bytes, str(matrix)) == (15, 30, "f16[3,5]")
    scalar = TensorType(DType.F32, ())
    assert (scalar.num_elements, str(scalar)) == (1, "f32[]")


def test_a_dimension_cannot_be_negative() -> None:
    with pytest.raises(GraphError, match="negative dimension"):
        TensorType(DType.F32, (2, -1))


def test_views_lead_to_the_value_that_owns_the_memory() -> None:
    assert [GRAPH.root(name) for name in ("x", "y", "z", "w")] == ["x", "x", "x", "w"]


def test_values_are_found_by_role() -> None:
    found = GRAPH.with_role(Role.ACTIVATION)
    assert [value.name for value in found] == ["y", "z", "l"]


def test_signatures_sort_attributes_and_forget_names() -> None:
    signature = GRAPH.signature(GRAPH.ops[0])
    assert signature.attrs == (("dim", 0), ("start", 1))
    assert signature.notes == Notes(block_size=4)
    assert signature.inputs == (TensorType(DType.F32, (2, 3)),)
    assert str(signature) == "slice(f32[2,3]) -> f32[1,3]"


def test_attributes_are_read_by_their_types() -> None:
    part, turned, factor = map(GRAPH.signature, GRAPH.ops)
    assert (part.integer("start"), part.ints("dim")) == (1, (0,))
    assert turned.ints("order") == (1, 0)
    assert factor.flag("is_upper")


def test_absent_attributes_have_what_the_reader_says() -> None:
    signature = GRAPH.signature(GRAPH.ops[0])
    assert signature.attr("order", 7) == 7
    assert signature.ints("order") == ()
    with pytest.raises(KeyError):
        signature.attr("order")


def test_an_op_beside_another_has_its_place_and_nothing_else() -> None:
    op = GRAPH.ops[0].with_place(chip=1, stage=2)
    other = op.beside("o", "relu", ("y",), ("e",))
    assert (other.chip, other.stage, other.phase) == (1, 2, Phase.FORWARD)
    assert (other.attrs, other.notes) == ({}, NO_NOTES)


def test_a_copy_between_chips_reads_on_the_chip_it_copies_from() -> None:
    op = GRAPH.ops[0].with_place(chip=1, stage=0)
    copy = op.beside("o", "chip_copy", ("x",), ("e",), {"source": 3})
    assert (op.source_chip, copy.source_chip) == (1, 3)


def test_a_changed_copy_leaves_the_graph_alone() -> None:
    extra = Value("e", TensorType(DType.F32, ()))
    moved = GRAPH.ops[0].with_place(chip=1, stage=2)
    changed = GRAPH.with_ops([moved], [extra])
    assert (changed.ops[0].chip, changed.ops[0].stage) == (1, 2)
    assert "e" in changed.values
    assert "e" not in GRAPH.values
    assert len(GRAPH.ops) == 3


def test_training_has_more_than_a_forward_phase() -> None:
    assert not GRAPH.is_training
    update = parse_graph(
        'graph "g" {\n clear %c : %y : f32[] = () update chip=0 stage=0\n}'
    )
    assert update.ops[0].phase is Phase.UPDATE
    assert update.is_training


def test_samples_per_run_count_every_repetition() -> None:
    execution = Execution(
        micro_batch=2, accumulation=3, replicas=4, device_iterations=5
    )
    assert execution.samples_per_run == 2 * 3 * 4 * 5


def test_a_checkpoint_is_computed_as_other_ops_are() -> None:
    op = GRAPH.ops[2]
    kept = replace(op, notes=replace(op.notes, is_checkpoint=True))
    assert GRAPH.signature(kept) == GRAPH.signature(op)
