"""Host traces: what the computer beside the IPU does, and how long it takes.

`libpvti` marks what a program does; PopTorch marks compilation and execution by itself.
PVTI_OPTIONS in the environment asks for a trace, usually from outside:

    PVTI_OPTIONS='{"enable": "true"}' python train.py

The trace is a `.pvti` file, which `pva` reads.
"""

import json
import os
import tempfile
from collections import Counter

import torch
from sklearn.datasets import load_digits
from torch import nn

import poptorch
import pva

BATCH_SIZE = 64
EPOCHS = 2


class Classifier(nn.Module):
    """One layer; returns the loss."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 10)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, pixels, labels):
        return self.loss(self.layer(pixels), labels)


def train_traced(directory):
    """Train with trace points around the parts of the loop; the path of the trace."""
    os.environ["PVTI_OPTIONS"] = json.dumps({"enable": "true", "directory": directory})
    import libpvti  # reads PVTI_OPTIONS when it is imported

    digits = load_digits()
    pixels = torch.tensor(digits.data, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    model = Classifier()
    options = poptorch.Options()
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.1)
    training_model = poptorch.trainingModel(model, options, optimizer)

    channel = libpvti.createTraceChannel("Training")
    losses = libpvti.Graph("Loss").addSeries("training")
    for _ in range(EPOCHS):
        with libpvti.Tracepoint(channel, "epoch"):
            for start in range(0, len(labels) - BATCH_SIZE, BATCH_SIZE):
                chosen = slice(start, start + BATCH_SIZE)
                with libpvti.Tracepoint(channel, "prepare"):
                    batch = pixels[chosen] / 16, labels[chosen]
                with libpvti.Tracepoint(channel, "step"):
                    losses.add(float(training_model(*batch)))
    training_model.detachFromDevice()
    path = libpvti.getCurrentTraceFilename()
    libpvti.closeTrace()
    return path


def walk(events, depth=0):
    """Events in order, each with its depth in the tree."""
    for event in events:
        yield depth, event
        yield from walk(event.children(), depth + 1)


def print_tree(path):
    """Each label once, with its number of events, under what it happened in."""
    trace = pva.openTrace(path)
    found, counts, microseconds = [], Counter(), Counter()
    for depth, event in walk(trace.processes[0].threads[0].events):
        key = (depth, event.channel, event.label)
        found += [] if key in counts else [key]
        counts[key] += 1
        microseconds[key] += event.duration
    for key in found:
        depth, channel, label = key
        seconds = microseconds[key] / 1e6
        print(f"{'  ' * depth}{channel}: {label}, {counts[key]} times, {seconds:.3f} s")


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as directory:
        print_tree(train_traced(directory))


if __name__ == "__main__":
    main()
