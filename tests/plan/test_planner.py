"""The planner answers equal questions once and checks what rules give it."""

from dataclasses import replace

import pytest

from popple.errors import PlanError
from popple.graph import DType, Notes
from popple.plan import OpPlan, Planner, PlanOptions, PlanRequest, TileMapping
from popple.plan import planner as module
from popple.plan.layout import Layout, Named
from popple.program import TileVector
from tests.plan.machines import bow, linear_inputs
from tests.plan.signatures import f32, make

ADD = make("add", [f32(64), f32(64)], [f32(64)])


def test_equal_questions_are_answered_once() -> None:
    planner = Planner(bow(), PlanOptions())
    inputs = linear_inputs(ADD, bow())
    assert planner.plan(ADD, inputs) is planner.plan(ADD, inputs)
    assert (planner.num_plans, planner.num_hits) == (1, 1)


def test_other_mappings_are_other_questions() -> None:
    planner = Planner(bow())
    planner.plan(ADD, linear_inputs(ADD, bow()))
    planner.plan(ADD, (None, None))
    assert (planner.num_plans, planner.num_hits) == (2, 0)


def test_a_rule_that_forgets_a_result_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        module, "get_rule", lambda kind: lambda request: OpPlan("x", ())
    )
    with pytest.raises(PlanError, match="mapped 0 of 1 results"):
        Planner(bow()).plan(ADD, (None, None))


def test_an_op_can_have_wishes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[PlanOptions] = []

    def rule(request: PlanRequest) -> OpPlan:
        seen.append(request.options)
        return OpPlan(
            "x", (TileMapping(TileVector.zeros(1), Layout(Named("nowhere"))),)
        )

    monkeypatch.setattr(module, "get_rule", lambda kind: rule)
    planner = Planner(bow(), PlanOptions(partials="f16"))
    for notes in (Notes(memory_proportion=0.1), Notes(partials=DType.F32)):
        planner.plan(replace(ADD, notes=notes), (None, None))
    assert seen == [PlanOptions(0.1, "f16"), PlanOptions(0.6, "f32")]


def test_wide_loads_are_for_the_families_that_are_named() -> None:
    planner = Planner(bow(), PlanOptions(wide_loads=("conv",)))
    rates = [
        planner.request(replace(ADD, kind=kind), ()).target.chip
        for kind in ("conv_weight_grad", "matmul")
    ]
    loads = [chip.conv_unit_coeff_load_bytes_per_cycle for chip in rates]
    assert loads == [16, 8]
