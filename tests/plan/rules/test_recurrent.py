"""Recurrent layers: a loop whose body does not grow with the sequence."""

from __future__ import annotations

import pytest

from popple.plan.opplan import Loop, OpPlan, Temporary
from tests.plan.machines import plan
from tests.plan.signatures import f16, make

UNITS = {"lstm": 4, "gru": 3, "gru_reset_before": 3}
PRODUCTS = {"lstm": 1, "gru": 2, "gru_reset_before": 2}


def layer(cell: str, time: int, *, keeps: bool = False, size: int = 64) -> OpPlan:
    states = [f16(8, size)] * (2 if cell == "lstm" else 1)
    width = UNITS[cell] * size
    inputs = [f16(time, 8, 32), *states, f16(width, 32), f16(width, size), f16(width)]
    kept = [f16(time, 8, 6 * size)] if keeps else []
    outputs = [f16(time, 8, size), *states, *kept]
    attrs = {"cell": cell, "num_states": len(states)}
    return plan(make("recurrent", inputs, outputs, **attrs), (None,) * len(inputs))


def gradient(cell: str, time: int, size: int = 64) -> OpPlan:
    states = [f16(8, size)] * (2 if cell == "lstm" else 1)
    width = UNITS[cell] * size
    own = [f16(time, 8, 32), *states, f16(width, 32), f16(width, size), f16(width)]
    before = [f16(time, 8, size), *states, f16(time, 8, 6 * size)]
    attrs = {"cell": cell, "num_states": len(states)}
    return plan(make("recurrent_grad", [*before, *own], own, **attrs))


def loops_of(found: OpPlan) -> list[Loop]:
    return [step for step in found.steps if isinstance(step, Loop)]


def loop_of(found: OpPlan) -> Loop:
    (loop,) = loops_of(found)
    return loop


@pytest.mark.parametrize("cell", UNITS)
def test_a_step_is_planned_once_for_all_of_them(cell: str) -> None:
    short, long = layer(cell, 3), layer(cell, 300)
    assert loop_of(long).count == 300
    assert loop_of(long).steps == loop_of(short).steps
    assert long.flops == 100 * short.flops


@pytest.mark.parametrize("cell", UNITS)
def test_every_step_multiplies_as_the_cell_does(cell: str) -> None:
    names = [getattr(step, "name", "") for step in loop_of(layer(cell, 3)).steps]
    assert names.count("product/partials") == PRODUCTS[cell]
    back, update = loops_of(gradient(cell, 3))
    for loop, product in ((back, "back"), (update, "update")):
        names = [getattr(step, "name", "") for step in loop.steps]
        assert names.count(f"{product}/partials") == PRODUCTS[cell]


def test_gates_of_many_steps_are_used_up_at_once() -> None:
    # 96 x 256 turned weights take less than 8 x 256 gradients of 13 steps.
    assert len(loops_of(gradient("lstm", 11))) == 2
    assert len(loops_of(gradient("lstm", 13))) == 1


def test_products_have_the_flops_of_the_weights() -> None:
    # 8 rows by 32 + 64 columns by 4 gates of 64, and a few for every gate.
    products = 2 * 8 * 96 * 256
    assert products <= layer("lstm", 1).flops < 1.1 * products


def test_what_is_kept_is_copied_in_every_step() -> None:
    names = [getattr(s, "name", "") for s in loop_of(layer("gru", 3, keeps=True)).steps]
    assert "keep" in names


@pytest.mark.parametrize("cell", UNITS)
def test_results_are_whole(cell: str) -> None:
    outputs = layer(cell, 5).outputs
    assert outputs[0].bytes_by_tile.total == 5 * 8 * 64 * 2
    made = gradient(cell, 5).outputs
    assert made[0].bytes_by_tile.total == 5 * 8 * 32 * 2
    assert made[-1].bytes_by_tile.total == UNITS[cell] * 64 * 2


def test_weights_are_not_copied_in_the_loop() -> None:
    # 2.4 MB of weights: what a step holds besides is far less.
    found = layer("lstm", 3, size=512)
    (held,) = [t for t in found.temporaries if t.name == "steps" and _is_plain(t)]
    assert held.bytes_by_tile.total < 4 * 512 * (32 + 512) * 2


def _is_plain(temporary: Temporary) -> bool:
    return not temporary.is_interleaved


def test_one_matrix_may_be_that_of_input_and_state() -> None:
    inputs = [f16(3, 8, 32), f16(8, 64), f16(96, 192), f16(192)]
    outputs = [f16(3, 8, 64), f16(8, 64)]
    attrs = {"cell": "gru", "num_states": 1}
    found = plan(make("recurrent", inputs, outputs, **attrs), (None,) * 4)
    assert loop_of(found).steps == loop_of(layer("gru", 3)).steps
    *_, matrix, bias = found.inputs
    assert matrix is not None
    assert bias is None
