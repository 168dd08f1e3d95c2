"""Sorting: a network of passes, each with an exchange."""

from popple.graph import DType, TensorType
from popple.plan.opplan import Compute, Loop, OpPlan
from tests.plan.machines import plan
from tests.plan.signatures import f16, f32, make


def top(tensor: TensorType, kept: TensorType) -> OpPlan:
    indices = TensorType(DType.I32, kept.shape)
    signature = make("top_k", [tensor], [kept, indices], dim=1)
    return plan(signature)


def loops(made: OpPlan) -> list[int]:
    return [step.count for step in made.steps if isinstance(step, Loop)]


def test_passes_of_one_size_are_one_loop() -> None:
    # 8, 8, 4, 4, 2: see the formula.
    assert loops(top(f32(64, 8), f32(64, 2))) == [2, 2, 1]
    assert loops(top(f32(64, 8), f32(64, 8))) == [6]


def test_fewer_kept_are_fewer_passes() -> None:
    few, all_ = (
        dict(top(f32(64, 1024), f32(64, kept)).choice)["passes"] for kept in (4, 1024)
    )
    assert int(few) < int(all_) == 55


def test_halves_are_sorted_as_floats() -> None:
    made = top(f16(64, 8), f16(64, 2))
    casts = [s.name for s in made.steps if isinstance(s, Compute) and "cast" in s.name]
    assert casts == ["keys/cast", "result/cast"]
