from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

import pytest

from popple.errors import GraphError
from popple.graph import (
    FAMILIES,
    OPS,
    Attr,
    AttrDef,
    AttrType,
    DType,
    OpDef,
    Signature,
    TensorType,
    find_op,
    get_op,
    ops,
)

ELEMENTWISE = """
    neg abs exp expm1 log log1p sqrt rsqrt reciprocal square sign round floor ceil sin
    cos tan erf tanh sigmoid relu gelu gelu_erf silu leaky_relu elu softplus hardtanh
    hardsigmoid hardswish logical_not bitwise_not is_nan is_finite clamp
    add sub mul div pow remainder maximum minimum atan2 equal not_equal less less_equal
    greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or
    bitwise_xor shift_left shift_right
    select fused_multiply_add fused_divide_add lerp
    relu_grad tanh_grad sigmoid_grad gelu_grad silu_grad leaky_relu_grad elu_grad
    softplus_grad hardtanh_grad hardsigmoid_grad hardswish_grad
"""
KINDS = {
    "control": "call repeat while branch",
    "matmul": "matmul",
    "conv": "conv conv_input_grad conv_weight_grad",
    "elementwise": ELEMENTWISE,
    "reduce": """
        reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_any reduce_all
        reduce_norm reduce_log_sum_exp reduce_variance arg_max arg_min cumulative_sum
    """,
    "norm": """
        batch_norm batch_norm_inference layer_norm group_norm batch_norm_grad
        layer_norm_grad group_norm_grad
    """,
    "softmax": "softmax log_softmax softmax_grad log_softmax_grad",
    "pool": "max_pool avg_pool max_pool_grad avg_pool_grad",
    "gather": "gather scatter scatter_add one_hot",
    "shape": """
        reshape permute slice broadcast diagonal copy concat pad tile flip roll resize
        triangle update_slice
    """,
    "random": "uniform normal bernoulli random_integers permutation dropout",
    "cast": "cast",
    "fill": "fill iota",
    "loss": """
        nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy
        kl_div_loss margin_loss nll_loss_grad mse_loss_grad l1_loss_grad
        smooth_l1_loss_grad huber_loss_grad binary_cross_entropy_grad kl_div_loss_grad
        margin_loss_grad
    """,
    "update": """
        sgd_update momentum_update adam_update rmsprop_update lamb_update accumulate
        clear
    """,
    "ctc": "ctc_loss",
    "recurrent": "recurrent recurrent_grad",
    "sort": "sort top_k",
    "solve": "cholesky triangular_solve",
    "copy": "stream_in stream_out remote_load remote_store chip_copy stash restore",
    "collective": "all_reduce reduce_scatter all_gather take_share",
    "generic": "generic",
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_the_known_kinds(family: str) -> None:
    assert {op.name for op in FAMILIES[family]} == set(KINDS[family].split())


def test_every_family_has_a_file_and_every_file_a_family() -> None:
    files = {module.name for module in pkgutil.iter_modules(ops.__path__)} - {"table"}
    assert files == set(FAMILIES)
    for family in FAMILIES:
        module = importlib.import_module(f"popple.graph.ops.{family}")
        assert module.OPS is FAMILIES[family]


def test_no_kind_stands_twice() -> None:
    assert len(OPS) == sum(len(family) for family in FAMILIES.values())


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_every_op_is_documented_and_belongs_to_its_family(op: OpDef) -> None:
    assert op.doc.endswith(".")
    assert len(op.doc) > 2
    assert op in FAMILIES[op.family]


F32, F16 = DType.F32, DType.F16


def some_value(attr: AttrDef) -> Attr:
    """A value that the attribute may have."""
    values = {
        AttrType.INT: 1,
        AttrType.INTS: (1,),
        AttrType.BOOL: True,
        AttrType.TEXT: "text",
        AttrType.TEXTS: ("text",),
    }
    return attr.choices[0] if attr.choices else values[attr.type]


def signature(
    kind: str,
    inputs: Iterable[tuple[int, ...]],
    outputs: Iterable[tuple[int, ...]],
    **attrs: Attr,
) -> Signature:
    """A use of the op, with some value for every attribute that it must have."""
    op = get_op(kind)
    needed = {a.name: some_value(a) for a in op.attrs if a.is_mandatory}
    given = op.schema.complete({**needed, **attrs}, kind, "")
    return Signature(
        kind,
        tuple(TensorType(F32, shape) for shape in inputs),
        tuple(TensorType(F32, shape) for shape in outputs),
        tuple(sorted(given.items())),
    )


def plain(op: OpDef, num_inputs: int, num_outputs: int) -> Signature:
    """A use with so many inputs and outputs of one shape."""
    shapes = [(4, 4)] * num_inputs, [(4, 4)] * num_outputs
    return signature(op.name, *shapes)


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_every_op_checks_its_arity(op: OpDef) -> None:
    low, high = op.arity
    num_outputs = 1 if op.num_outputs is None else op.num_outputs
    assert op.complaint(plain(op, low, num_outputs)) == ""
    if low:
        assert "inputs, got" in op.complaint(plain(op, low - 1, num_outputs))
    if high is not None:
        assert "inputs, got" in op.complaint(plain(op, high + 1, num_outputs))
    if op.num_outputs is not None:
        assert "outputs, got" in op.complaint(plain(op, low, num_outputs + 1))


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_attributes_are_documented_and_have_good_defaults(op: OpDef) -> None:
    for known in op.attrs:
        assert known.doc.endswith(".")
        assert known.default is None or known.complaint(known.default) == ""


@pytest.mark.parametrize(
    ("use", "complaint"),
    [
        (signature("add", [(2, 3), (3,)], [(2, 3)]), ""),
        (signature("add", [(2, 3), (2,)], [(2, 3)]), "cannot broadcast f32[2] to"),
        (signature("add", [(1, 2, 3)], [(2, 3)]), "cannot broadcast f32[1,2,3]"),
        (signature("relu", [(2, 3)], [(3, 2)]), "keeps the shape, but f32[2,3] became"),
        (signature("reshape", [(2, 3)], [(6,)]), ""),
        (signature("reshape", [(2, 3)], [(7,)]), "keeps the number of elements"),
        (signature("reduce_sum", [(2, 3)], [(2,)], dims=(1,)), ""),
        (signature("reduce_sum", [(2, 3)], [(2,)], dims=(2,)), "reduces dimension 2"),
        (signature("matmul", [(2, 3), (3, 4)], [(2, 4)]), ""),
        (signature("matmul", [(5, 2, 3), (5, 3, 4)], [(5, 2, 4)]), ""),
        (signature("matmul", [(2, 3), (4, 4)], [(2, 4)]), "cannot multiply"),
        (signature("matmul", [(5, 2, 3), (6, 3, 4)], [(5, 2, 4)]), "cannot multiply"),
        (signature("matmul", [(3,), (3, 4)], [(4,)]), "rank of at least 2"),
        (signature("matmul", [(2, 3), (3, 4)], [(2, 3)]), "gives [...,2,4]"),
    ],
)
def test_types_are_checked(use: Signature, complaint: str) -> None:
    found = get_op(use.kind).complaint(use)
    assert complaint in found
    assert bool(found) == bool(complaint)


def test_views_are_marked() -> None:
    views = {op.name for op in OPS.values() if op.is_view}
    assert views == {"reshape", "permute", "slice", "broadcast", "diagonal"}


def test_an_unknown_kind_is_answered_with_near_ones() -> None:
    assert find_op("matmul") is OPS["matmul"]
    assert find_op("matmull") is None
    with pytest.raises(GraphError, match="Did you mean 'matmul'"):
        get_op("matmull")


def test_an_arity_must_allow_something() -> None:
    with pytest.raises(GraphError, match="op x: arity"):
        OpDef("x", "f", "X.", arity=(2, 1))
