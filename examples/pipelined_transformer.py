"""PopTorch: a transformer in four blocks, pipelined over four IPUs.

An image of a handwritten digit is read as a sequence of eight rows. While IPU 1 works
on one micro-batch, IPU 0 works on the next. Around every weight update the pipeline is
filled and drained, and IPUs wait: bubbles. The more micro-batches an update gathers,
the fewer they are.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

import popple
import poptorch
from popple.program import chip_totals

NUM_IPUS = 4
WIDTH = 32
MICRO_BATCH = 16
EPOCHS = 3


class Transformer(nn.Module):
    """Four encoder layers, each on an IPU of its own."""

    def __init__(self):
        super().__init__()
        # A block reaches from where it begins to where the next one begins.
        self.embed = poptorch.BeginBlock(nn.Linear(8, WIDTH), ipu_id=0)
        self.position = nn.Parameter(0.1 * torch.randn(8, WIDTH))
        layers = [
            nn.TransformerEncoderLayer(
                WIDTH, nhead=4, dim_feedforward=64, dropout=0.0, batch_first=True
            )
            for _ in range(NUM_IPUS)
        ]
        for ipu in range(1, NUM_IPUS):
            poptorch.BeginBlock(layers[ipu], ipu_id=ipu)
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(WIDTH, 10)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, rows, labels):
        x = self.layers(self.embed(rows) + self.position)
        logits = self.head(x.mean(dim=1))
        return logits, self.loss(logits, labels)


def make_training_model(accumulation):
    """A pipelined model that updates its weights every `accumulation` micro-batches."""
    torch.manual_seed(0)
    model = Transformer()
    options = poptorch.Options()
    options.setExecutionStrategy(poptorch.PipelinedExecution())
    options.Training.gradientAccumulation(accumulation)
    optimizer = poptorch.optim.AdamW(model.parameters(), lr=5e-3)
    return poptorch.trainingModel(model, options, optimizer)


def make_loader(training_model):
    """Batches that each hold the micro-batches of one update."""
    digits = load_digits()
    rows = torch.tensor(digits.images, dtype=torch.float32) / 16
    dataset = torch.utils.data.TensorDataset(rows, torch.tensor(digits.target))
    return poptorch.DataLoader(
        training_model.options, dataset, MICRO_BATCH, shuffle=True
    )


def train(training_model):
    """Print the mean loss of every epoch."""
    loader = make_loader(training_model)
    for epoch in range(EPOCHS):
        losses = [training_model(*batch)[1] for batch in loader]
        print(f"epoch {epoch + 1}: loss {torch.stack(losses).mean():.3f}")
    training_model.detachFromDevice()


def print_stages(training_model):
    """What each IPU does and holds, as the model of the machine says."""
    modelled = popple.modelled(training_model)
    simulation, chip = modelled.simulation, modelled.target.chip
    totals = chip_totals(simulation.memory.total, NUM_IPUS, chip.num_tiles)
    for ipu, total in enumerate(totals):
        slices = [each for each in simulation.timeline.slices if each.chip == ipu]
        stages = sorted({each.stage for each in slices if each.stage >= 0})
        busy = simulation.busy_cycles_by_chip[ipu] / simulation.cost.cycles
        print(f"IPU {ipu}: stages {stages}, busy {busy:.0%}, {total / 2**20:.0f} MiB")
    print(f"fits: {simulation.fits}")


def print_bubbles(training_model):
    """How much of their time the IPUs wait."""
    modelled = popple.modelled(training_model)
    count = modelled.graph.execution.accumulation
    idle = modelled.simulation.timeline.idle_fraction
    print(f"{count} micro-batches per update: idle {idle:.0%} of the time")


def main():
    short = make_training_model(accumulation=8)
    train(short)
    print_stages(short)
    print_bubbles(short)

    # To be modelled, a program need not run.
    long = make_training_model(accumulation=64)
    long.compile(*next(iter(make_loader(long))))
    print_bubbles(long)


if __name__ == "__main__":
    main()
