"""Ops that matter, each behind those it reads from."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("tensorflow")

from popple.capture.tensorflow.order import needed_ops, units_in_order


@dataclass(eq=False)
class FakeOp:
    """An op with what it reads from."""

    name: str
    sources: tuple[FakeOp, ...] = ()
    control_inputs: tuple[FakeOp, ...] = ()
    type: str = "Sin"
    inputs: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        self.inputs = [SimpleNamespace(op=source) for source in self.sources]

    def get_attr(self, name: str) -> bool:
        """Every op is marked with every attribute."""
        return True


def names(ops: list[Any]) -> str:
    return "".join(op.name for op in ops)


def test_inputs_come_first() -> None:
    c = FakeOp("c")
    b = FakeOp("b", (c,))
    a = FakeOp("a", (b,))
    units = units_in_order([a, b, c], lambda op: None)
    assert [(key, names(ops)) for key, ops in units] == [
        (None, "c"),
        (None, "b"),
        (None, "a"),
    ]


def test_ops_of_one_unit_stay_together() -> None:
    first = FakeOp("1")
    outside = FakeOp("o")
    second = FakeOp("2", (first, outside))
    after = FakeOp("a", (second,))
    keys = {first: "unit", second: "unit"}
    units = units_in_order([first, after, outside, second], keys.get)
    assert [names(ops) for _, ops in units] == ["o", "12", "a"]


def test_a_deep_chain_needs_no_recursion() -> None:
    ops = [FakeOp("0")]
    for index in range(5000):
        ops.append(FakeOp(str(index), (ops[-1],)))
    units = units_in_order(ops[::-1], lambda op: None)
    assert [unit[0] for _, unit in units] == ops


def test_what_nobody_needs_is_left_out() -> None:
    a, b = FakeOp("a"), FakeOp("b")
    c = FakeOp("c", (a,))
    d = FakeOp("d", control_inputs=(b,))
    assert names(needed_ops([a, b, c, d], [c])) == "ac"
    assert names(needed_ops([a, b, c, d], [d])) == "bd"


def test_what_only_imitates_the_machine_is_left_out() -> None:
    update, computed = FakeOp("u"), FakeOp("c")
    imitation = FakeOp("i", (computed,), (update,), type="AssignVariableOp")
    after = FakeOp("a", (), (imitation,))
    ops = [update, computed, imitation, after]
    assert names(needed_ops(ops, [after])) == "ua"
