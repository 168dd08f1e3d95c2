"""Plans of convolutions and their gradients."""

from __future__ import annotations

from typing import Any

import pytest

from popple.errors import PlanError
from popple.graph import DType, Signature, TensorType
from popple.plan.opplan import Compute, PlanRequest
from popple.plan.rules import conv
from tests.plan.conv.machines import (
    all_vectors,
    cycles_of,
    cycles_of_steps,
    flat_steps,
    plan_conv,
    target_of,
)

KINDS = ("conv", "conv_input_grad", "conv_weight_grad")


@pytest.mark.parametrize(
    ("field", "kernel", "options"),
    [
        ((4, 64, 56, 56), (64, 64, 3, 3), {"padding": 1}),
        ((4, 4, 224, 224), (64, 4, 7, 7), {"padding": 3, "stride": 2}),
        ((2, 8, 10, 11), (6, 8, 3, 2), {"stride": 3, "dilation": 2}),
        ((1, 3, 17), (5, 3, 4), {"stride": 2}),
        ((1, 3, 9, 8, 7), (5, 3, 2, 3, 3), {"padding": 1}),
        ((2, 32, 28, 28), (32, 1, 3, 3), {"padding": 1, "groups": 32}),
        ((2, 12, 8, 8), (8, 3, 3, 3), {"groups": 4}),
    ],
)
def test_gradients_do_the_work_of_the_convolution(
    field: tuple[int, ...], kernel: tuple[int, ...], options: dict[str, Any]
) -> None:
    plans = [plan_conv(kind, field, kernel, **options) for kind in KINDS]
    assert len({plan.flops for plan in plans}) == 1
    for plan in plans:
        assert all(len(vector.runs) <= 4 for vector in all_vectors(plan))
        assert cycles_of(plan) > 0


@pytest.mark.parametrize(
    ("field", "kernel", "padding", "published_cycles"),
    [
        # graphcore/poplibs benchmark_results.csv, forward, backward and weight update
        # on IPUModel2 (GC200), batch 4.
        ((4, 64, 56, 56), (64, 64, 3, 3), 1, 84_246),  # resnet50 bm64L0A1
        ((4, 128, 28, 28), (128, 128, 3, 3), 1, 82_252),  # resnet50 bm128L0A1
        ((4, 128, 28, 28), (512, 128, 1, 1), 0, 46_395),  # resnet50 bm128L0A2
        ((4, 512, 7, 7), (512, 512, 3, 3), 1, 81_121),  # resnet50 bm512L0A1
        ((4, 256, 56, 56), (256, 256, 3, 3), 1, 789_468),  # vgg16 v3L1
        ((4, 512, 28, 28), (512, 512, 3, 3), 1, 749_792),  # vgg16 v4L1
    ],
)
def test_training_convolutions_of_the_poplibs_benchmarks(
    field: tuple[int, ...],
    kernel: tuple[int, ...],
    padding: int,
    published_cycles: int,
) -> None:
    target = target_of("gc200")
    plans = [plan_conv(kind, field, kernel, target, padding=padding) for kind in KINDS]
    assert sum(map(cycles_of, plans)) == pytest.approx(published_cycles, rel=0.3)


def test_a_kernel_of_1_is_a_matmul() -> None:
    plan = plan_conv("conv", (4, 128, 28, 28), (512, 128, 1, 1))
    assert dict(plan.choice)["method"] == "amp-1x1"


def test_depthwise_convolutions_avoid_the_padding_of_amp() -> None:
    plan = plan_conv("conv", (4, 256, 28, 28), (256, 1, 3, 3), padding=1, groups=256)
    assert dict(plan.choice)["method"].split()[0] in ("slic", "vmac")


def test_the_output_mapping_holds_the_whole_result() -> None:
    plan = plan_conv("conv", (2, 3, 9, 9), (7, 3, 3, 3), stride=2)
    assert plan.outputs[0].bytes_by_tile.total == 2 * 7 * 4 * 4 * 2
    field, kernel = plan.inputs
    assert field is not None
    assert kernel is not None
    assert field.bytes_by_tile.total == 2 * 3 * 81 * 2
    assert kernel.bytes_by_tile.total == 7 * 3 * 9 * 2


def test_wishes_of_the_weight_gradient_are_in_the_order_of_its_inputs() -> None:
    plan = plan_conv("conv_weight_grad", (2, 3, 9, 9), (7, 3, 3, 3))
    gradient, field = plan.inputs
    assert gradient is not None
    assert field is not None
    assert gradient.bytes_by_tile.total == 2 * 7 * 49 * 2
    assert field.bytes_by_tile.total == 2 * 3 * 81 * 2


def test_a_kernel_as_wide_as_the_field_costs_no_padding() -> None:
    # The input gradient of a whole-field kernel: each gradient meets 200 positions
    # once, though the padded field has 399.
    forward = plan_conv("conv", (16, 1, 200), (64, 1, 200))
    backward = plan_conv("conv_input_grad", (16, 1, 200), (64, 1, 200))
    assert forward.flops == backward.flops == 2 * 16 * 64 * 200


@pytest.mark.parametrize("num_tiles", [4, 14720])
@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_tiles(kind: str, num_tiles: int) -> None:
    target = target_of("bow", num_tiles)
    plan = plan_conv(kind, (4, 16, 20, 20), (32, 16, 3, 3), target, padding=1)
    assert {len(vector) for vector in all_vectors(plan)} == {num_tiles}


@pytest.mark.parametrize("kind", KINDS)
def test_the_steps_cost_what_the_search_estimated(kind: str) -> None:
    target = target_of("bow")
    plan = plan_conv(kind, (4, 64, 56, 56), (64, 64, 3, 3), target, padding=1)
    cycles = cycles_of_steps(plan.steps, target.chip)
    # Of the copies the planner expects, the steps have those of the plan's form.
    expected = int(dict(plan.choice)["estimated_cycles"])
    assert 0.98 * cycles_of(plan) <= cycles <= 1.02 * expected


def test_single_precision_takes_longer() -> None:
    half, single = (
        cycles_of(plan_conv("conv", (4, 64, 56, 56), (64, 64, 3, 3), dtype=dtype))
        for dtype in (DType.F16, DType.F32)
    )
    assert single > 1.5 * half


def test_dilation_leaves_fewer_outputs() -> None:
    dense, wide = (
        plan_conv("conv", (1, 16, 64), (16, 16, 5), dilation=d) for d in (1, 8)
    )
    assert wide.outputs[0].bytes_by_tile.total == 16 * 32 * 2
    assert dense.outputs[0].bytes_by_tile.total == 16 * 60 * 2


def request_of(field: tuple[int, ...], kernel: tuple[int, ...]) -> PlanRequest:
    types = (TensorType(DType.F16, field), TensorType(DType.F16, kernel))
    attrs = (("dilation", (1, 1)), ("groups", 1), ("padding", (0, 0)))
    signature = Signature("conv", types, types[:1], (*attrs, ("stride", (1, 1))))
    return PlanRequest(signature, (None, None), target_of("bow"))


@pytest.mark.parametrize(
    ("field", "kernel"),
    [((0, 3, 8, 8), (4, 3, 3, 3)), ((1, 3, 8, 0), (4, 3, 3, 3)), ((3, 8), (4, 3))],
)
def test_what_is_empty_or_flat_is_refused(
    field: tuple[int, ...], kernel: tuple[int, ...]
) -> None:
    with pytest.raises(PlanError):
        conv.RULES["conv"](request_of(field, kernel))


def test_a_kernel_larger_than_its_field_is_refused() -> None:
    with pytest.raises(PlanError, match="does not fit"):
        conv.RULES["conv"](request_of((1, 3, 4, 4), (4, 3, 9, 9)))


def test_operands_of_a_weight_gradient_are_transposed() -> None:
    forward = plan_conv("conv", (4, 64, 56, 56), (64, 64, 1, 1))
    field = forward.inputs[0]
    plan = plan_conv(
        "conv_weight_grad",
        (4, 64, 56, 56),
        (64, 64, 1, 1),
        given=(forward.outputs[0], field),
    )
    # Channels lie innermost, the sum runs over batch and positions.
    names = [step.name for step in flat_steps(plan.steps) if isinstance(step, Compute)]
    assert names[0].startswith("transpose ")


def test_elements_that_a_form_repeats_are_sent_once() -> None:
    shape, kernel = (1, 480, 14, 14), (480, 1, 5, 5)
    plan = plan_conv(
        "conv", shape, kernel, target_of("gc200"), 1, 2, groups=480, dtype=DType.F32
    )
    found = {each.name: each for each in plan.temporaries}
    ready, received = found["rearranged inputs"], found["inputs"]
    # 25 positions of the kernel as channels, each with all 480 * 196 floats.
    assert found["message of inputs"].bytes_by_tile.total == 376_320
    assert ready.bytes_by_tile.total == 25 * 376_320
    # The product reads most of them where they are; few come from other tiles.
    assert received.bytes_by_tile.total < ready.bytes_by_tile.total / 10
    assert ready.last == received.last
