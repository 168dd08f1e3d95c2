"""Lowerings that are more than one op for one operator, on small modules."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from popple.graph import Graph, Phase
from tests.capture.torch.tracing import kinds, lower, of_kind

IMAGE = torch.rand(2, 4, 8, 8)


def forward_kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops if op.phase is Phase.FORWARD]


class WithLoss(nn.Module):
    """A module whose squared result is the loss."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args: Tensor) -> Tensor:
        result = self.inner(*args)
        return F.mse_loss(result, torch.zeros_like(result))


# -- products


def test_a_linear_layer_is_a_product_and_a_sum() -> None:
    assert kinds(lower(nn.Linear(4, 3), torch.ones(2, 4))) == [
        "permute",
        "matmul",
        "add",
    ]


def test_a_matrix_times_itself_has_two_operands() -> None:
    (product,) = lower(lambda x: x @ x, torch.ones(3, 3)).ops
    assert product.inputs == ("input0", "input0")


def test_a_matrix_times_a_vector_is_a_product() -> None:
    graph = lower(lambda a, v: a @ v, torch.ones(3, 4), torch.ones(4))
    (product,) = of_kind(graph, "matmul")
    assert [str(graph.type_of(n)) for n in product.inputs] == ["f32[3,4]", "f32[4,1]"]


def test_a_product_added_in_place_to_a_buffer_is_kept() -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(3, 3))

        def forward(self, x: Tensor) -> Tensor:
            (total,) = self.buffers()
            total.addmm_(x, x)
            return x

    graph = lower(Sum(), torch.ones(3, 3))
    assert graph.root(of_kind(graph, "add")[0].outputs[0]) == "total"


def test_a_product_of_eight_bits_keeps_its_types() -> None:
    small = torch.ones(16, 16).to(torch.float8_e4m3fn)

    def multiply(a: Tensor, bias: Tensor) -> Tensor:
        scale = torch.ones((), device=a.device)
        wide = torch.bfloat16
        return torch._scaled_mm(a, a.t(), scale, scale, bias=bias, out_dtype=wide)

    graph = lower(multiply, small, torch.ones(16, dtype=torch.bfloat16))
    (product,) = of_kind(graph, "matmul")
    assert [str(graph.type_of(n)) for n in product.inputs] == ["f8[16,16]"] * 2
    assert str(graph.type_of(product.outputs[0])) == "bf16[16,16]"
    assert [op.inputs[0] for op in of_kind(graph, "add")] == [product.outputs[0]]


# -- triangular systems


def test_one_matrix_solves_for_every_right_hand_side() -> None:
    def solve(a: Tensor, b: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True)

    graph = lower(solve, torch.eye(3), torch.ones(2, 3, 4))
    (solved,) = of_kind(graph, "triangular_solve")
    assert [str(graph.type_of(n)) for n in solved.inputs] == [
        "f32[2,3,3]",
        "f32[2,3,4]",
    ]
    assert solved.attrs == {"is_upper": False, "is_left": True, "is_unit": True}


def test_a_decomposition_is_one_op_and_its_gradient_is_made_of_known_ops() -> None:
    class Factor(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.eye(3))

        def forward(self) -> Tensor:
            return torch.linalg.cholesky(self.weight)

    found = kinds(lower(WithLoss(Factor()), train=True))
    assert found.count("cholesky") == 1
    assert found.count("triangular_solve") == 2
    assert "generic" not in found


# -- convolutions


def test_a_convolution_adds_its_bias_along_channels() -> None:
    graph = lower(nn.Conv2d(4, 6, 3, padding=1), IMAGE)
    assert kinds(graph) == ["conv", "reshape", "add"]
    (conv,) = of_kind(graph, "conv")
    assert conv.attrs == {
        "stride": (1, 1),
        "padding": (1, 1),
        "dilation": (1, 1),
        "groups": 1,
    }
    assert str(graph.type_of(of_kind(graph, "reshape")[0].outputs[0])) == "f32[6,1,1]"


def test_a_convolution_has_three_gradients() -> None:
    layers = nn.Sequential(nn.Conv2d(4, 4, 3), nn.Conv2d(4, 4, 3))
    graph = lower(WithLoss(layers), IMAGE, train=True)
    # The first layer's input needs no gradient.
    assert len(of_kind(graph, "conv_input_grad")) == 1
    assert len(of_kind(graph, "conv_weight_grad")) == 2
    sums = [op for op in of_kind(graph, "reduce_sum") if op.phase is Phase.BACKWARD]
    assert [op.attrs["dims"] for op in sums] == [(0, 2, 3), (0, 2, 3)]


def test_a_transposed_convolution_is_the_gradient_of_one() -> None:
    layers = nn.Sequential(nn.Conv2d(4, 4, 3), nn.ConvTranspose2d(4, 2, 2, stride=2))
    graph = lower(WithLoss(layers), IMAGE, train=True)
    assert forward_kinds(graph).count("conv_input_grad") == 1
    backward = [op for op in of_kind(graph, "conv") if op.phase is Phase.BACKWARD]
    assert len(backward) == 1


@pytest.mark.parametrize("rank", [1, 3])
def test_convolutions_of_other_ranks(rank: int) -> None:
    layer = getattr(nn, f"Conv{rank}d")(2, 2, 2, bias=False)
    graph = lower(WithLoss(layer), torch.rand(1, 2, *(4,) * rank), train=True)
    assert of_kind(graph, "conv")[0].attrs["stride"] == (1,) * rank


# -- norms and pools


@pytest.mark.parametrize(
    ("layer", "kind", "count"),
    [
        (nn.BatchNorm2d(4), "batch_norm", 4),  # one for each channel
        (nn.LayerNorm([8, 8]), "layer_norm", 2 * 4),  # for each sample and channel
        (nn.GroupNorm(2, 4), "group_norm", 2 * 2),  # for each sample and group
    ],
)
def test_norms_count_their_statistics(layer: nn.Module, kind: str, count: int) -> None:
    graph = lower(WithLoss(layer), IMAGE, train=True)
    (forward,), (backward,) = of_kind(graph, kind), of_kind(graph, f"{kind}_grad")
    assert forward.attrs["num_statistics"] == count
    assert backward.attrs["num_statistics"] == count


def test_batch_norm_in_eval_mode_uses_running_statistics() -> None:
    graph = lower(nn.BatchNorm2d(4).eval(), IMAGE)
    assert kinds(graph) == ["batch_norm_inference"]


def test_pools_know_their_window() -> None:
    graph = lower(nn.Sequential(nn.MaxPool2d(2), nn.AvgPool2d((2, 1))), IMAGE)
    assert [op.attrs["kernel"] for op in graph.ops] == [(2, 2), (2, 1)]


def test_the_window_of_an_adaptive_pool_is_the_ratio_of_the_fields() -> None:
    (pool,) = lower(nn.AdaptiveAvgPool2d(4), IMAGE).ops
    assert pool.attrs["kernel"] == (2, 2)


def test_the_gradient_of_a_max_pool_finds_the_place_again() -> None:
    layers = nn.Sequential(nn.Conv2d(4, 4, 1), nn.MaxPool2d(2))
    graph = lower(WithLoss(layers), IMAGE, train=True)
    (backward,) = of_kind(graph, "max_pool_grad")
    assert [str(graph.type_of(n)) for n in backward.inputs] == [
        "f32[2,4,4,4]",
        "f32[2,4,8,8]",
    ]


# -- attention


def attention(*heads: int, mask: bool = False, train: bool = False) -> Graph:
    """Attention of 5 tokens of width 8, for queries and keys of so many heads."""

    class Attend(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(()))

        def forward(self, q: Tensor, k: Tensor, m: Tensor) -> Tensor:
            scaled = k * self.weight
            return F.scaled_dot_product_attention(
                *(q, scaled, scaled), m if mask else None, enable_gqa=q.shape != k.shape
            )

    q, k = (torch.rand(2, num_heads, 5, 8) for num_heads in heads)
    module = WithLoss(Attend()) if train else Attend()
    return lower(module, q, k, torch.zeros(5, 5), train=train)


def test_attention_is_two_products_and_a_softmax() -> None:
    ops = [kind for kind in kinds(attention(2, 2)) if kind not in ("permute", "mul")]
    assert ops == ["matmul", "softmax", "matmul"]
    assert "add" in kinds(attention(2, 2, mask=True))


def test_the_gradient_of_attention_is_five_products() -> None:
    graph = attention(2, 2, train=True)
    # Scores again, then the gradients of v, weights, q and k; no gradient is free.
    backward = [op for op in of_kind(graph, "matmul") if op.phase is Phase.BACKWARD]
    assert len(backward) == 4  # q needs no gradient: its product is dead
    assert len(of_kind(graph, "softmax_grad")) == 1


def test_heads_that_share_keys_read_repeated_keys() -> None:
    graph = attention(4, 2, train=True)
    shapes = {str(graph.type_of(op.outputs[0])) for op in of_kind(graph, "tile")}
    assert shapes == {"f32[2,4,5,8]"}
    sums = [op for op in of_kind(graph, "reduce_sum") if op.attrs["dims"] == (2,)]
    assert {str(graph.type_of(op.outputs[0])) for op in sums} == {"f32[2,2,5,8]"}


# -- gathers, shapes, in-place writes


def test_an_embedding_gathers_and_its_gradient_scatters() -> None:
    graph = lower(WithLoss(nn.Embedding(10, 4)), torch.tensor([[1, 2]]), train=True)
    (gather,) = of_kind(graph, "gather")
    assert gather.inputs == ("inner.weight", "input0")
    (scatter,) = of_kind(graph, "scatter_add")
    assert str(graph.type_of(scatter.outputs[0])) == "f32[10,4]"


def test_indices_of_64_bits_have_32_on_the_machine() -> None:
    graph = lower(lambda x: x.argmax(1), torch.ones(2, 3))
    assert str(graph.type_of(graph.outputs[0])) == "i32[2]"
    assert kinds(lower(lambda x: x.long(), torch.ones(2, dtype=torch.int32))) == []


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (torch.float64, "f32[2]"),
        (torch.bfloat16, "bf16[2]"),
        (torch.uint16, "i16[2]"),
        (torch.complex64, "f32[2,2]"),
        (torch.float8_e4m3fnuz, "f8[2]"),
    ],
)
def test_types_the_machine_lacks(dtype: torch.dtype, expected: str) -> None:
    graph = lower(lambda x: x.clone(), torch.zeros(2, dtype=dtype))
    assert str(graph.type_of("input0")) == expected


def test_parts_of_a_split_share_memory_and_know_where_they_begin() -> None:
    graph = lower(lambda x: x.split([2, 4], 1), torch.ones(3, 6))
    parts = of_kind(graph, "slice")
    assert {graph.root(op.outputs[0]) for op in parts} == {"input0"}
    assert [op.attrs for op in parts] == [
        {"dim": 1, "start": 0},
        {"dim": 1, "start": 2},
    ]


def test_cat_reads_a_tensor_as_often_as_it_is_given() -> None:
    (concat,) = lower(lambda x: torch.cat([x, x], 1), torch.ones(2, 3)).ops
    assert concat.inputs == ("input0", "input0")
    assert concat.attrs == {"dim": 1}


def test_views_are_views() -> None:
    graph = lower(lambda x: x.t().unsqueeze(0).expand(2, 3, 4), torch.ones(4, 3))
    assert kinds(graph) == ["permute", "reshape", "broadcast"]
    assert graph.root(graph.outputs[0]) == "input0"


def test_a_view_as_smaller_elements_is_no_reshape() -> None:
    (op,) = lower(lambda x: x.view(torch.uint8), torch.ones(2)).ops
    assert op.attrs == {"framework_op": "aten.view.dtype"}


def test_an_in_place_op_writes_to_the_memory_it_reads() -> None:
    graph = lower(lambda x: (2 * x).add_(1), torch.ones(3))
    mul, add = graph.ops
    assert graph.values[add.outputs[0]].storage == mul.outputs[0]


def test_a_write_through_a_view_is_kept_when_its_owner_is_read() -> None:
    def forward(x: Tensor) -> Tensor:
        y = 2 * x
        y[0].add_(1)
        return y

    assert kinds(lower(forward, torch.ones(3, 2))) == ["mul", "slice", "add"]


def test_a_write_to_something_nobody_reads_is_dead() -> None:
    def forward(x: Tensor) -> Tensor:
        (2 * x).add_(1)
        return x

    assert kinds(lower(forward, torch.ones(3))) == []


def test_an_assigned_slice_is_an_update() -> None:
    def forward(x: Tensor, y: Tensor) -> Tensor:
        z = x.clone()
        z[:2] = y
        return z

    graph = lower(forward, torch.ones(4), torch.zeros(2))
    assert kinds(graph) == ["copy", "slice", "update_slice"]


def test_a_fill_in_place_reads_one_tensor() -> None:
    graph = lower(lambda x: x.clone().fill_(x.sum()), torch.ones(3))
    assert len(of_kind(graph, "fill")[0].inputs) == 1


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x**2, ["square"]),
        (lambda x: x**0.5, ["sqrt"]),
        (lambda x: x**3, ["pow"]),
        (lambda x: x.hypot(x), ["square", "square", "add", "sqrt"]),
        (lambda x: x.xlogy(x), ["log", "mul", "equal", "select"]),
        (lambda x: torch.xlogy(2, x), ["log", "mul"]),
        (lambda x: x.xlogy(2), ["mul", "equal", "select"]),
        (
            lambda x: x.logaddexp(x),
            ["maximum", "sub", "abs", "neg", "exp", "log1p", "add"],
        ),
        (lambda x: x.clamp(0, 1), ["clamp"]),
        (lambda x: x.half(), ["cast"]),
        (lambda x: torch.ops.prims.convert_element_type(x, torch.half), ["cast"]),
        (lambda x: x.median(), ["sort", "slice"]),
        (lambda x: x.topk(2)[0], ["top_k"]),
        (lambda x: x.var(), ["reduce_variance"]),
        (lambda x: x.max(0)[0], ["reduce_max"]),
        (lambda x: F.logsigmoid(x), ["softplus"]),
    ],
)
def test_cheaper_and_special_forms(function: object, expected: list[str]) -> None:
    assert kinds(lower(function, torch.ones(3))) == expected  # type: ignore[arg-type]


def test_dropout_draws_numbers_only_when_training() -> None:
    dropout = nn.Dropout()
    assert "bernoulli" in kinds(lower(dropout, torch.ones(3)))
    assert kinds(lower(dropout.eval(), torch.ones(3))) == []
