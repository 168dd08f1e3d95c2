"""A PopTorch program: train a small CNN on scikit-learn's handwritten digits.

Nothing in it is special to Popple. Run it with `popple run --report DIR` to learn what
it would cost on an IPU.
"""

import time

import torch
from sklearn.datasets import load_digits
from torch import nn

import poptorch

EPOCHS = 8
BATCH_SIZE = 16


class DigitsModel(nn.Module):
    """Two convolutions and two fully connected layers; returns the loss in training."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm = nn.GroupNorm(4, 32)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(32 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, images, labels=None):
        x = self.pool(torch.relu(self.conv1(images)))
        x = self.pool(torch.relu(self.norm(self.conv2(x))))
        x = torch.relu(self.fc1(torch.flatten(x, start_dim=1)))
        logits = self.fc2(x)
        if labels is None:
            return logits
        return logits, self.loss(logits, labels)


def load_data():
    """Training and test set: 1437 and 360 images of 8 x 8 pixels."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    train, test = order[:-360], order[-360:]
    return (
        torch.utils.data.TensorDataset(images[train], labels[train]),
        torch.utils.data.TensorDataset(images[test], labels[test]),
    )


def main():
    torch.manual_seed(0)
    train_set, test_set = load_data()
    model = DigitsModel()

    options = poptorch.Options().deviceIterations(4)
    loader = poptorch.DataLoader(options, train_set, BATCH_SIZE, shuffle=True)
    optimizer = poptorch.optim.AdamW(model.parameters(), lr=2e-3)
    training_model = poptorch.trainingModel(model, options, optimizer)

    training_model.compile(*next(iter(loader)))
    start, samples = time.perf_counter(), 0
    for epoch in range(EPOCHS):
        total_loss = 0.0
        for images, labels in loader:
            _, loss = training_model(images, labels)
            total_loss += float(loss)
            samples += len(labels)
        print(f"epoch {epoch + 1}: loss {total_loss / len(loader):.4f}")
    seconds = time.perf_counter() - start
    training_model.detachFromDevice()

    inference_model = poptorch.inferenceModel(model.eval())
    correct, count = 0, 0
    for images, labels in poptorch.DataLoader(poptorch.Options(), test_set, 20):
        predictions = inference_model(images).argmax(dim=1)
        correct += int((predictions == labels).sum())
        count += len(labels)
    inference_model.detachFromDevice()

    print(f"test accuracy: {100 * correct / count:.1f} %")
    print(f"trained at {samples / seconds:,.0f} samples/s on this computer")


if __name__ == "__main__":
    main()
