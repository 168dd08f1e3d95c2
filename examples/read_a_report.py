"""Reports in Python: what costs most, what fills the memory, when it is fullest.

PopTorch writes a report when the options ask for one, in the format of the vendor's
tools. `pva` reads it under the names that IPU programs use; `popple.open_report` reads
it as plain data, and `popple.explain` says why an operation or a layer costs what it
costs. `popple view DIR` shows the same in the browser.
"""

import tempfile
from collections import Counter
from pathlib import Path

import torch
from torch import nn

import popple
import poptorch
import pva
from popple.report import bytes_by_category

BATCH_SIZE = 32


class Model(nn.Module):
    """Two convolutions and a layer that sees all pixels at once."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 32, 3, padding=1)
        self.dense = nn.Linear(32 * 16 * 16, 10)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, images, labels):
        x = torch.relu(self.conv2(torch.relu(self.conv1(images))))
        return self.loss(self.dense(x.flatten(1)), labels)


def write_report(directory):
    """Compile a training step; the path of its report."""
    model = Model()
    options = poptorch.Options().enableProfiling(str(directory))
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.1)
    training_model = poptorch.trainingModel(model, options, optimizer)
    images = torch.zeros(BATCH_SIZE, 3, 16, 16)
    training_model.compile(images, torch.zeros(BATCH_SIZE, dtype=torch.long))
    training_model.detachFromDevice()
    return next(directory.rglob("profile.pop"))


def read_with_pva(path):
    """What scripts written for the vendor's tools ask a report."""
    report = pva.openReport(str(path))
    target = report.compilation.target
    print(f"{target.numIPUs} IPU, {target.numTiles} tiles")
    cycles = Counter()
    for step in report.execution.steps:
        cycles[step.program.type.name] += step.ipus[0].cycles
    for kind in ("OnTileExecute", "DoExchange", "StreamCopyMid"):
        print(f"  {cycles[kind]:7,} cycles of {kind}")

    # Liveness: the memory that is in use at each step, beyond what always is.
    peak = max(
        (step.notAlwaysLiveMemory for step in report.compilation.livenessProgramSteps),
        key=lambda memory: memory.bytes,
    )
    largest = max(peak.variables, key=lambda variable: variable.size)
    print(f"liveness peak: {peak.bytes / 2**20:.1f} MiB, largest part {largest.name}")


def read_with_popple(path):
    """The costliest operations, one layer, and the categories of memory."""
    with popple.open_report(path) as report:
        run = popple.explain(report)
        print(f"{run.operation.cycles:,} cycles, {len(run.parts)} operations")
        for part in run.parts[:4]:
            print(f"  {part.share:5.1%}  {part.name}, bound by {part.bound_by}")
        layer = popple.explain(report, "conv2")
        print(f"conv2, forward and backward: {layer.share:.0%} of the run")
        categories = bytes_by_category(report)
        for name in ("variable", "vertexCode", "internalExchangeCode"):
            print(f"  {categories[name].sum() / 2**20:4.1f} MiB  {name}")


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as directory:
        path = write_report(Path(directory))
        read_with_pva(path)
        read_with_popple(path)


if __name__ == "__main__":
    main()
