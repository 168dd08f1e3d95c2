"""All of PyTorch: whatever its own table of operators calls is captured rightly.

The first sample of every entry is traced, lowered to a valid graph and replayed; the
result is that of eager PyTorch. Exceptions are named below with their reason.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch import Tensor

from popple.capture.torch import DynamicShape, Unsupported, ValueNeeded
from popple.capture.torch.effects import is_random
from tests.capture.torch.tracing import lower_traced, replayed, trace

pytest.importorskip("expecttest", reason="PyTorch's own samples are made with it")
with pytest.MonkeyPatch.context() as patch:
    # Importing them would forbid the rest of the process to set flags of back ends.
    patch.setattr(torch.backends, "disable_global_flags", lambda: None)
    samples = "torch.testing._internal.common_methods_invocations"
    database = pytest.importorskip(samples)

VALUES_ARE_ASKED_FOR = (ValueNeeded, DynamicShape)
REFUSED: dict[str, tuple[type[Exception], ...]] = {
    "allclose": VALUES_ARE_ASKED_FOR,
    "argwhere": VALUES_ARE_ASKED_FOR,
    "equal": VALUES_ARE_ASKED_FOR,
    "item": VALUES_ARE_ASKED_FOR,
    "linalg.lstsq": VALUES_ARE_ASKED_FOR,
    "linalg.lstsq.grad_oriented": VALUES_ARE_ASKED_FOR,
    "masked_select": VALUES_ARE_ASKED_FOR,
    "nn.functional.interpolate.linear": (Unsupported,),
    "nn.functional.interpolate.trilinear": (Unsupported,),
    "nonzero": VALUES_ARE_ASKED_FOR,
    "unique": VALUES_ARE_ASKED_FOR,
    "unique_consecutive": VALUES_ARE_ASKED_FOR,
    "tensor_split": (RuntimeError,),  # reads where to split from a tensor
    "to_sparse": (Unsupported,),
}
UNDEFINED = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty")


def _name(entry: Any) -> str:
    variant = entry.variant_test_name
    return f"{entry.name}.{variant}" if variant else entry.name


def _tensors(values: Any) -> list[Tensor]:
    leaves = pytree.tree_leaves(values)
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def _first_sample(entry: Any) -> Any:
    """A sample with dense tensors that hold something, or None."""
    for sample in entry.sample_inputs("cpu", torch.float32, requires_grad=False):
        tensors = _tensors((sample.input, sample.args, sample.kwargs))
        dense = all(t.layout is torch.strided and not t.is_nested for t in tensors)
        if tensors and dense and all(t.numel() for t in tensors):
            return sample
    return None


ENTRIES = {
    _name(entry): entry
    for entry in database.op_db
    if torch.float32 in entry.dtypes and not entry.name.startswith("jiterator")
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_an_operator_is_captured(name: str) -> None:
    entry = ENTRIES[name]
    sample = _first_sample(entry)
    if sample is None:
        pytest.skip("no sample with dense tensors")
    arguments = ((sample.input, *sample.args), dict(sample.kwargs))
    leaves, structure = pytree.tree_flatten(arguments)
    inputs = _tensors(leaves)

    def function(*given: Tensor) -> list[Tensor]:
        supply = iter(given)
        filled = [next(supply) if isinstance(x, Tensor) else x for x in leaves]
        args, kwargs = pytree.tree_unflatten(filled, structure)
        return _tensors(entry.op(*args, **kwargs))

    if name in REFUSED:
        with pytest.raises(REFUSED[name]):
            trace(function, *inputs)
        return
    expected = function(*(x.clone() for x in inputs))
    step = trace(function, *inputs)
    lower_traced(step)
    results = replayed(step, *(x.clone() for x in inputs))
    _check(
        name,
        list(results),
        expected,
        any(map(is_random, step.graph_module.graph.nodes)),
    )


def _check(
    name: str, results: list[Any], expected: list[Tensor], by_chance: bool
) -> None:
    assert [r.shape for r in results] == [e.shape for e in expected]
    assert [r.dtype for r in results] == [e.dtype for e in expected]
    if not by_chance and not name.startswith(UNDEFINED):
        torch.testing.assert_close(results, expected, equal_nan=True)
