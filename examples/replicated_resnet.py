"""PopTorch: four replicas of a ResNet share the work and the optimiser's memory.

Each replica trains on a quarter of the batch; their gradients are averaged before every
update, so the weights are those of one IPU that has seen the whole batch. Adam keeps
two numbers for each weight. Sharded, each replica holds a quarter of them; off the
chip they take no tile memory, but travel to the chip and back for every update.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

import popple
import poptorch
from popple.program import Category

MICRO_BATCH = 8
GLOBAL_BATCH = 64
NUM_IMAGES = 1024
CHANNELS = 64


class ResidualBlock(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False)
        # Group norm looks at one image at a time: batches of any size are alike to it.
        self.norm1 = nn.GroupNorm(4, CHANNELS)
        self.norm2 = nn.GroupNorm(4, CHANNELS)

    def forward(self, x):
        y = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(x + self.norm2(self.conv2(y)))


class ResNet(nn.Module):
    """A stem, two residual blocks and a head; returns the loss."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, CHANNELS, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(ResidualBlock(), ResidualBlock())
        self.head = nn.Linear(CHANNELS * 4 * 4, 10)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, images, labels):
        x = self.blocks(self.stem(images))
        return self.loss(self.head(x.flatten(1)), labels)


def make_options(num_replicas, state=None):
    """The same global batch for any number of replicas; `state`: where Adam's lies."""
    options = poptorch.Options().replicationFactor(num_replicas)
    options.Training.gradientAccumulation(GLOBAL_BATCH // MICRO_BATCH // num_replicas)
    options.outputMode(poptorch.OutputMode.All)
    if state is not None:
        options.TensorLocations.setOptimizerLocation(state)
    return options


def train(options):
    """One epoch; returns the losses, the weights, and the model of the machine."""
    torch.manual_seed(0)
    model = ResNet()
    optimizer = poptorch.optim.AdamW(model.parameters(), lr=1e-3)
    training_model = poptorch.trainingModel(model, options, optimizer)
    digits = load_digits()
    images = torch.tensor(digits.images[:NUM_IMAGES], dtype=torch.float32) / 16
    labels = torch.tensor(digits.target[:NUM_IMAGES])
    dataset = torch.utils.data.TensorDataset(images.unsqueeze(1), labels)
    loader = poptorch.DataLoader(options, dataset, MICRO_BATCH)
    losses = [float(training_model(*batch).mean()) for batch in loader]
    training_model.detachFromDevice()
    return losses, model.state_dict(), popple.modelled(training_model)


def main():
    losses, expected, alone = train(make_options(1))
    print(f"one replica: loss {losses[0]:.2f} to {losses[-1]:.2f}")

    locations = poptorch.TensorLocationSettings
    sharded = locations().useReplicatedTensorSharding(True)
    off_chip = locations().useOnChipStorage(False)
    ways = {
        "4 replicas": make_options(4),
        "state sharded": make_options(
            4, sharded.minElementsForReplicatedTensorSharding(4)
        ),
        "state off chip": make_options(4, off_chip.minElementsForOffChip(4)),
    }
    for name, options in ways.items():
        _, weights, modelled = train(options)
        is_equal = all(torch.equal(weights[key], expected[key]) for key in expected)
        speed = modelled.samples_per_second / alone.samples_per_second
        variables = modelled.simulation.memory.always_live[Category.VARIABLE].total
        print(
            f"{name}: weights equal {is_equal}, {speed:.1f} times as fast, "
            f"{variables / 2**20:.2f} MiB of weights, sums and state per IPU"
        )


if __name__ == "__main__":
    main()
