"""Programs that accumulate gradients, as the cost model sees them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

import popple  # noqa: E402
from tests.tensorflow_ipu.keras.keras_models import (  # noqa: E402
    X,
    Y,
    batches_of,
    compiled,
    sequential,
    strategy,
)

pytestmark = pytest.mark.usefixtures("own_pod")


def kinds(steps: int, *options: Any, **more: Any) -> Counter[str]:
    """How many ops of each kind a batch takes, update and accumulation left out."""
    with strategy().scope():
        model = compiled(sequential(), 8)
        if steps > 1:
            model.set_gradient_accumulation_options(steps, *options, **more)
        model.fit(X, Y, batch_size=4, shuffle=False, verbose=0)
    modelled = popple.modelled(model)
    assert modelled.graph.execution.accumulation == steps
    return Counter(op.kind for op in modelled.graph.ops if op.phase.value != "update")


# Eight batches of four: four updates of two batches, each with a pass back.
@pytest.mark.parametrize(
    ("method", "dtype"),
    [("sum", None), ("mean", tf.float16), ("running_mean", None)],
)
def test_every_accumulated_batch_goes_back_as_one_alone(
    method: str, dtype: Any
) -> None:
    assert len(batches_of(4)) == 8
    alone = kinds(1)
    added = kinds(2, method, dtype=dtype)
    for kind in ("matmul", "reduce_sum"):
        assert added[kind] == alone[kind]
    assert alone["matmul"] > 1
    assert added["accumulate"] > 0
