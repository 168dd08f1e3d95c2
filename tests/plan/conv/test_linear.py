"""The choice between one plan for all passes of a linear layer and one for each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from popple.graph import DType, LinearPass
from popple.plan.conv import find_choice, find_linear, linear_of
from popple.plan.conv.linear import Linear
from popple.plan.conv.problem import Purpose
from tests.plan.conv.machines import target_of

F16, F32 = DType.F16, DType.F32
CHIP = target_of("gc200").chip


def layer_of(rows: int, inputs: int, outputs: int, dtype: DType = F32) -> Linear:
    return Linear(1, rows, inputs, outputs, dtype, F32, dtype)


@pytest.mark.parametrize("which", list(LinearPass))
def test_a_pass_tells_its_layer(which: LinearPass) -> None:
    layer = layer_of(8, 30, 50)
    assert linear_of(layer.problem(which), which, is_turned=False) == layer


def test_passes_of_a_joint_plan_share_their_split() -> None:
    plan = find_linear(layer_of(8, 1000, 1000), CHIP, 0.6)
    assert plan.is_joint
    splits = {which: choice.best.split for which, choice in plan.choices.items()}
    forward = splits[LinearPass.FORWARD]
    back = splits[LinearPass.INPUT_GRAD]
    update = splits[LinearPass.WEIGHT_GRAD]
    assert forward.in_split == back.field.count == update.out_split
    assert forward.field.count == back.in_split == update.field.count
    assert forward.out_split == back.out_split == update.in_split == 1


def test_a_joint_plan_costs_less_than_three() -> None:
    layer = layer_of(8, 1000, 1000)
    joint = find_linear(layer, CHIP, 0.6).choices
    apart = [find_choice(layer.problem(which), CHIP, 0.6) for which in LinearPass]
    together = sum(choice.best.cycles for choice in joint.values())
    assert together < sum(choice.best.cycles for choice in apart)


@pytest.mark.parametrize(
    "layer",
    [
        # Rows cannot be split over tiles: with many of them, each pass goes alone.
        layer_of(1440, 200, 400, F16),
        # Sums in another type than the operands cannot lie beside the weights.
        Linear(1, 8, 1000, 1000, F16, F32, F32),
    ],
)
def test_passes_are_planned_alone_where_that_is_better(layer: Linear) -> None:
    plan = find_linear(layer, CHIP, 0.6)
    assert not plan.is_joint
    for which, choice in plan.choices.items():
        assert choice == find_choice(layer.problem(which), CHIP, 0.6)


def test_weights_are_brought_in_order_before_they_are_sliced() -> None:
    problem = layer_of(1024, 1024, 4096, F16).problem(LinearPass.FORWARD)
    alone = find_choice(replace(problem, purpose=Purpose.MATMUL), CHIP, 0.15).best
    one = find_choice(problem, CHIP, 0.15).best
    assert one.setting.serial == alone.setting.serial
    assert one.setting.serial.count > 1
    assert one.split == alone.split
    assert one.cost.serial > alone.cost.serial
    assert one.memory_bytes > alone.memory_bytes
