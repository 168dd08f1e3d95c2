"""Every entry of the aten table: it exists, it is reached, and it lowers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree

from popple.capture.torch.aten import TABLE, find_lowering, lower_generic
from tests.capture.torch.aten.examples import Arguments, make_examples
from tests.capture.torch.tracing import kinds, lower_traced, operators, trace

EXAMPLES = make_examples()


def call(name: str, arguments: Arguments) -> Callable[..., Any]:
    """A function of the tensors among the arguments."""
    leaves, structure = pytree.tree_flatten(arguments)
    is_tensor = [isinstance(leaf, torch.Tensor) for leaf in leaves]

    def function(*tensors: torch.Tensor) -> Any:
        supply = iter(tensors)
        filled = [
            next(supply) if wanted else leaf
            for leaf, wanted in zip(leaves, is_tensor, strict=True)
        ]
        given = pytree.tree_unflatten(filled, structure)
        keywords = given[-1] if isinstance(given[-1], dict) else {}
        positional = given[:-1] if keywords else given
        return getattr(torch.ops.aten, name)(*positional, **keywords)

    return function


def tensors_of(arguments: Arguments) -> list[torch.Tensor]:
    leaves = pytree.tree_leaves(arguments)
    return [leaf.clone() for leaf in leaves if isinstance(leaf, torch.Tensor)]


def test_every_entry_has_an_example_and_no_example_is_left_over() -> None:
    assert {f"aten.{name}" for name in EXAMPLES} == {
        name for name in TABLE if name.startswith("aten.")
    }


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_entry_is_reached_and_lowers_to_a_valid_graph(name: str) -> None:
    arguments = EXAMPLES[name]
    step = trace(call(name, arguments), *tensors_of(arguments))
    assert f"aten.{name}" in operators(step)
    assert "generic" not in kinds(lower_traced(step).graph)


def test_in_place_forms_use_the_entry_of_the_plain_form() -> None:
    assert find_lowering("aten.add_.Tensor") is TABLE["aten.add"]
    assert find_lowering("aten.copy_.default") is TABLE["aten.copy_"]


def test_an_operator_without_an_entry_is_generic() -> None:
    assert find_lowering("aten.linalg_inv_ex.default") is lower_generic
    assert find_lowering("some_higher_order_operator") is lower_generic
