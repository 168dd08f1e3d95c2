"""PopTorch: float16 weights, how small updates survive in them, and what they save.

Near 1, float16 numbers are 1/1024 apart. An update smaller than half of that is lost:
rounded to the nearest number, the weight stays what it was. Stochastic rounding goes
up or down at random, in proportion to the distance, and is right on average. Gradients
too small for float16 are another matter: scaling the loss saves them.
"""

from itertools import pairwise

import torch
from sklearn.datasets import load_digits
from torch import nn

import popple
import poptorch
from popple.program import Category

BATCH_SIZE = 32
STEPS_PER_CALL = 56
EPOCHS = 20


class Classifier(nn.Module):
    """Fully connected layers in any type; the loss is float32 in any case."""

    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(sizes))
        self.loss = nn.CrossEntropyLoss()
        for layer in self.layers:
            nn.init.normal_(layer.weight)

    def forward(self, x, labels):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.loss(self.layers[-1](x).float(), labels)


def make_training_model(sizes, dtype, is_stochastic=False):
    """The same start for every type, and steps that are small."""
    torch.manual_seed(0)
    model = Classifier(sizes).to(dtype)
    options = poptorch.Options().deviceIterations(STEPS_PER_CALL)
    options.outputMode(poptorch.OutputMode.All)
    options.Precision.enableStochasticRounding(is_stochastic)
    optimizer = poptorch.optim.SGD(
        model.parameters(), lr=3e-4, loss_scaling=256.0, use_combined_accum=True
    )
    return poptorch.trainingModel(model, options, optimizer)


def train(training_model, pixels, labels):
    """Mean loss of the first and of the last epoch."""
    losses = [training_model(pixels, labels).mean() for _ in range(EPOCHS)]
    training_model.detachFromDevice()
    return f"loss {losses[0]:.2f} to {losses[-1]:.2f}"


def simulate(sizes, dtype, pixels, labels):
    """What a training step takes on the chip; nothing is run for that."""
    training_model = make_training_model(sizes, dtype)
    training_model.compile(pixels.to(dtype), labels)
    training_model.detachFromDevice()
    return popple.modelled(training_model).simulation


def main():
    digits = load_digits()
    num_samples = BATCH_SIZE * STEPS_PER_CALL
    pixels = torch.tensor(digits.data[:num_samples], dtype=torch.float32) / 16
    labels = torch.tensor(digits.target[:num_samples])

    small = (64, 10)
    single = make_training_model(small, torch.float32)
    nearest = make_training_model(small, torch.float16)
    stochastic = make_training_model(small, torch.float16, is_stochastic=True)
    print("float32:            ", train(single, pixels, labels))
    print("float16, to nearest:", train(nearest, pixels.half(), labels))
    print("float16, stochastic:", train(stochastic, pixels.half(), labels))

    large = (64, 2048, 2048, 10)
    before = simulate(large, torch.float32, pixels, labels)
    after = simulate(large, torch.float16, pixels, labels)
    weights = [
        each.memory.always_live[Category.VARIABLE].total for each in (before, after)
    ]
    print(f"weights take {weights[1] / weights[0]:.1%} of the memory")
    print(f"an update takes {after.cost.cycles / before.cost.cycles:.0%} of the cycles")


if __name__ == "__main__":
    main()
