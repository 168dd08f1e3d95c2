"""Options reach the chip and the tensor they are meant for, in modelled numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import popple
import poptorch
from popple import report as rp
from popple.pipeline import write_report
from popple.record import memory_by_role
from tests.poptorch.models import options

WIDTH = 1024
HALF, SINGLE = torch.float16, torch.float32


class Net(nn.Module):
    """One product on each of two IPUs."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH, bias=False)
        self.second = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        poptorch.Block.start("a", ipu_id=0)
        x = self.first(x)
        poptorch.Block.start("b", ipu_id=1)
        return poptorch.identity_loss(self.second(x), "mean")


def modelled(opts: poptorch.Options, g: int = 1, **types: Any) -> popple.Modelled:
    """A training step of the net in half precision, with Adam."""
    opts.Training.gradientAccumulation(g)
    net = Net().half()
    adam = poptorch.optim.Adam(net.parameters(), lr=0.1, **types)
    model = poptorch.trainingModel(net, opts.useOfflineIpuTarget(), adam)
    model.compile(torch.zeros(256 * g, WIDTH, dtype=HALF))
    return popple.modelled(model)


def sharded() -> poptorch.Options:
    return options().setExecutionStrategy(poptorch.ShardedExecution())


def cycles_of_products(model: popple.Modelled) -> list[int]:
    """Those of all products, by IPU."""
    costs = model.simulation.cost_by_op
    products = [op for op in model.graph.ops if op.kind == "matmul"]
    return [
        sum(costs[op.name].cycles for op in products if op.chip == chip)
        for chip in range(2)
    ]


def test_each_ipu_has_its_own_share_of_memory() -> None:
    alone = cycles_of_products(modelled(sharded()))
    small = sharded().setAvailableMemoryProportion({"IPU1": 0.01})
    bounded = cycles_of_products(modelled(small))
    # The other IPU's plans may leave what arrives here in another order: a little.
    assert bounded[0] == pytest.approx(alone[0], rel=0.02)
    assert bounded[1] > 2 * alone[1]


def bytes_of(role: str, model: popple.Modelled) -> int:
    """Bytes of a role on the fullest tile of the first IPU."""
    (first, _) = memory_by_role(model.graph, model.simulation)
    return first.bytes_by_role.get(role, 0)


@pytest.mark.parametrize(
    ("types", "bytes_of_a_weight"),
    [
        ({}, 4 + 4),
        ({"first_order_momentum_accum_type": HALF}, 2 + 4),
        ({"second_order_momentum_accum_type": HALF}, 4 + 2),
        (
            {
                "first_order_momentum_accum_type": HALF,
                "second_order_momentum_accum_type": HALF,
            },
            2 + 2,
        ),
    ],
)
def test_each_state_has_its_own_type(
    types: dict[str, torch.dtype], bytes_of_a_weight: int
) -> None:
    # A weight of 1024 x 1024 on 1472 tiles: 712 elements a tile, dealt out in blocks.
    found = bytes_of("optimiser state", modelled(sharded(), 1, **types))
    evenly = bytes_of_a_weight * WIDTH * WIDTH / 1472
    assert found == pytest.approx(evenly, rel=0.1)


def test_accumulators_have_the_type_that_is_asked_for() -> None:
    half, single = (
        bytes_of("accumulators", modelled(sharded(), 2, accum_type=dtype))
        for dtype in (HALF, SINGLE)
    )
    assert single == 2 * half > 0


def test_phases_keep_tensors_off_the_chip(tmp_path: Path) -> None:
    phased = poptorch.ParallelPhasedExecution("a", "b")
    phased.sendTensorsOffChipAfterFwd()
    model = modelled(options().setExecutionStrategy(phased), 2)
    kept = modelled(sharded(), 2).simulation
    kinds = [op.kind for op in model.graph.ops]
    # Weights in each pass and for the update, sums for each batch and the update.
    assert kinds.count("remote_load") >= 2 * (1 + 1 + 2)
    assert len(model.simulation.liveness.always_live) < len(kept.liveness.always_live)
    path = write_report(model, tmp_path, framework="torch", framework_version="")
    with rp.open_report(path) as report:
        notes = " ".join(rp.summarize(report).notes)
    assert "Not modelled: activations off the chip" in notes
    assert "phases side by side" in notes


def test_what_a_program_leaves_on_the_chip_stays_there_in_phases() -> None:
    on_chip = poptorch.TensorLocationSettings().useOnChipStorage(True)
    opts = options().setExecutionStrategy(poptorch.SerialPhasedExecution("a", "b"))
    for kind in ("Weight", "Optimizer", "Accumulator", "Activation"):
        getattr(opts.TensorLocations, f"set{kind}Location")(on_chip)
    model = modelled(opts)
    assert "remote_load" not in {op.kind for op in model.graph.ops}
    assert model.options.not_modelled == ()
