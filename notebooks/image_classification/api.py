"""Reading handwritten digits: the application behind the notebook.

`Digits` is a `popple.notebook.Application`: its checkpoint and its data can be changed,
it can be trained, saved, evaluated and closed.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

import poptorch
from popple.notebook import release_devices

NUM_TEST_IMAGES = 360


class Network(nn.Module):
    """Two convolutions and two fully connected layers; returns the loss in training."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.GroupNorm(4, 32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
        self.loss = nn.CrossEntropyLoss()

    def forward(self, images, labels=None):
        logits = self.head(self.features(images).flatten(1))
        return logits if labels is None else (logits, self.loss(logits, labels))


def load_data():
    """Images of 8 x 8 pixels between 0 and 1, shape (n, 1, 8, 8), and labels 0 to 9."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    return images, torch.tensor(digits.target)


class Digits:
    """Trains a network on `num_ipus` IPUs, each with a copy of it."""

    def __init__(self, num_ipus=1, batch_size=16, learning_rate=2e-3, cache=None):
        torch.manual_seed(0)
        self.network, self.batch_size = Network(), batch_size
        self.options = poptorch.Options().replicationFactor(num_ipus)
        if cache is not None:
            self.options.enableExecutableCaching(str(cache))
        optimizer = poptorch.optim.AdamW(self.network.parameters(), lr=learning_rate)
        self.training_model = poptorch.trainingModel(
            self.network, self.options, optimizer
        )
        self.inference_model = poptorch.inferenceModel(self.network)
        self.change_dataset(load_data())

    def __repr__(self):
        state = "trained" if self.training_model.isCompiled() else "new"
        count = self.options.replication_factor
        return f"Digits({state}, {count} IPUs, {len(self.train_set)} training images)"

    def change_dataset(self, dataset):
        """`dataset`: images and labels as `load_data` returns them."""
        images, labels = dataset
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
        train, test = order[:-NUM_TEST_IMAGES], order[-NUM_TEST_IMAGES:]
        self.train_set = torch.utils.data.TensorDataset(images[train], labels[train])
        self.test_set = images[test], labels[test]

    def change_checkpoint(self, checkpoint):
        """Continue with the weights of a file that `save_checkpoint` wrote."""
        self.network.load_state_dict(torch.load(checkpoint, weights_only=True))
        if self.training_model.isCompiled():
            self.training_model.copyWeightsToDevice()
        if self.inference_model.isCompiled():
            self.inference_model.copyWeightsToDevice()

    def save_checkpoint(self, path):
        """Write the present weights."""
        torch.save(self.network.state_dict(), path)

    def train(self, epochs):
        """The mean loss of every epoch."""
        loader = poptorch.DataLoader(
            self.options, self.train_set, self.batch_size, shuffle=True
        )
        means = []
        for _ in range(epochs):
            losses = [self.training_model(*batch)[1].mean() for batch in loader]
            means.append(float(torch.stack(losses).mean()))
        return means

    def predict(self, images):
        """The digit on each image."""
        release_devices(self.training_model)
        return self.inference_model(images).argmax(dim=1)

    def evaluate(self):
        """How many of the test images are read as what they are."""
        images, labels = self.test_set
        return {"accuracy": float((self.predict(images) == labels).float().mean())}

    def close(self):
        """Give the IPUs back."""
        release_devices(self.training_model, self.inference_model)
