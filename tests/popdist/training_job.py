"""A program that trains alone or as one of several instances, on the same data.

    python training_job.py FOLDER [dropout] [groups] [half]

Every instance writes its weights and losses to FOLDER.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

import popdist
import popdist.poptorch
import popple
import poptorch

REPLICAS, BATCH, ACCUMULATION, STEPS = 4, 8, 2, 5


class Model(torch.nn.Module):
    """Two layers, with dropout between them if asked for."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.first = torch.nn.Linear(16, 32)
        self.dropout = torch.nn.Dropout(dropout)
        self.second = torch.nn.Linear(32, 4)
        self.scale = torch.nn.Parameter(torch.ones(REPLICAS // 2, 4))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        hidden = self.dropout(torch.relu(self.first(x)))
        # The host's tensor has one row per group of replicas, the device's has not.
        scale = self.scale if self.scale.dim() == 1 else self.scale[0]
        out = self.second(hidden) * scale
        loss = torch.nn.functional.cross_entropy(out.float(), y)
        return out, poptorch.identity_loss(loss, "mean")


def options() -> poptorch.Options:
    if popdist.isPopdistEnvSet():
        popdist.init()
        opts = popdist.poptorch.Options()
    else:
        opts = poptorch.Options().replicationFactor(REPLICAS)
    opts.randomSeed(3)
    opts.Training.gradientAccumulation(ACCUMULATION)
    return opts.showCompilationProgressBar(False)


def own_part(values: torch.Tensor) -> torch.Tensor:
    """What this instance's replicas read, of all replicas' data of one step."""
    local = REPLICAS // popdist.getNumInstances()
    first = popdist.getInstanceIndex() * local
    return values[:, first : first + local].flatten(0, 2)


def main(folder: str, *features: str) -> None:
    opts = options()
    model = Model(0.5 if "dropout" in features else 0.0)
    optimizer = poptorch.optim.AdamW(model.parameters(), lr=0.01)
    trained = poptorch.trainingModel(model, opts, optimizer=optimizer)
    if "groups" in features:
        trained.scale.replicaGrouping(
            poptorch.CommGroupType.Consecutive,
            2,
            poptorch.VariableRetrievalMode.OnePerGroup,
        )
    generator = torch.Generator().manual_seed(0)
    shape = (STEPS, ACCUMULATION, REPLICAS, BATCH)
    x = torch.randn((*shape, 16), generator=generator)
    y = torch.randint(0, 4, shape, generator=generator)
    losses = [
        trained(own_part(a), own_part(b))[1].tolist() for a, b in zip(x, y, strict=True)
    ]
    trained.copyWeightsToHost()
    index = popdist.getInstanceIndex()
    state = {name: value.tolist() for name, value in model.state_dict().items()}
    cycles = popple.modelled(trained).simulation.cost.cycles
    found = {"weights": state, "losses": losses, "cycles": cycles}
    Path(folder, f"{index}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
