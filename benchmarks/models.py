"""The models that benchmarks train: each returns its loss from forward."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Case = tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]


class WithLoss(nn.Module):
    """A classifier that returns its cross-entropy."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch."""
        return F.cross_entropy(self.body(x), labels)


def mnist_cnn() -> nn.Module:
    """The usual CNN for 28 x 28 images."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(1024, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def mlp() -> nn.Module:
    """Four fully connected layers."""
    return nn.Sequential(
        nn.Linear(784, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 10),
    )


class Residual(nn.Module):
    """A basic block of ResNet-18."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                nn.BatchNorm2d(outputs),
            )

    def forward(self, x: Tensor) -> Tensor:
        """Two convolutions beside a shortcut."""
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.skip(x))


def resnet18() -> nn.Module:
    """ResNet-18 for 32 x 32 images."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 3, 1, 1, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
    ]
    width = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Residual(width, outputs, stride), Residual(outputs, outputs, 1)]
        width = outputs
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)
    )


class Bottleneck(nn.Module):
    """A block of ResNet-50: narrow, convolve, widen, beside a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                nn.BatchNorm2d(outputs),
            )

    def forward(self, x: Tensor) -> Tensor:
        """Three convolutions beside a shortcut."""
        return F.relu(self.layers(x) + self.skip(x))


def resnet50() -> nn.Module:
    """ResNet-50 for 224 x 224 images."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    inputs = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(count):
            layers.append(Bottleneck(inputs, width, stride if index == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)
    )


class Transformer(nn.Module):
    """Four encoder layers over token embeddings, without dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 512, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of a sequence."""
        return self.head(self.encoder(self.embed(x)).mean(1))


class EncoderLayer(nn.Module):
    """A layer of BERT: attention and a feed-forward part, normalised afterwards."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sequence after this layer; attention sees what a mask allows."""
        split = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.norm1(x + self.project(mixed.transpose(1, 2).flatten(2)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    """BERT with a head that predicts every token, without dropout.

    `dtype` is what autocast computes in; None leaves it off.
    """

    def __init__(
        self,
        width: int = 768,
        num_layers: int = 12,
        vocabulary: int = 30_522,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dtype = dtype
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(512, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(
            EncoderLayer(width, width // 64) for _ in range(num_layers)
        )
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """The loss of predicting the labels."""
        is_mixed = self.dtype is not None
        with torch.autocast(ids.device.type, self.dtype, enabled=is_mixed):
            x = self.words(ids) + self.positions.weight[: ids.shape[1]]
            x = self.norm(x)
            for layer in self.layers:
                x = layer(x)
            return F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())


class Lstm(nn.Module):
    """An LSTM whose last state is classified."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(32, 64, batch_first=True)
        self.head = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of a sequence."""
        return self.head(self.lstm(x)[0][:, -1])


class Gru(nn.Module):
    """GRU layers whose last state is classified."""

    def __init__(self, inputs: int = 32, width: int = 64, num_layers: int = 1) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, width, num_layers, batch_first=True)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of a sequence."""
        return self.head(self.gru(x)[0][:, -1])


class DecoderLayer(nn.Module):
    """A layer of GPT-2: causal attention and a feed-forward part, normalised before."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """The sequence after this layer."""
        split = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """GPT-2 without dropout; the head shares the embedding's weight."""

    def __init__(
        self, width: int = 768, num_layers: int = 12, vocabulary: int = 50_257
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(1024, width)
        heads = max(1, width // 64)
        self.layers = nn.ModuleList(
            DecoderLayer(width, heads) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(width)
        for embedding in (self.words, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)  # as GPT-2 begins

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """The loss of predicting the labels."""
        x = self.words(ids) + self.positions.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        logits = F.linear(self.norm(x), self.words.weight)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class GraphNetwork(nn.Module):
    """Three graph convolutions by gather and scatter over a fixed graph."""

    def __init__(self, num_nodes: int = 500, num_edges: int = 2000) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(3))
        self.head = nn.Linear(64, 10)
        edges = torch.randint(0, num_nodes, (2, num_edges))
        self.register_buffer("source", edges[0])
        self.register_buffer("target", edges[1])

    def forward(self, x: Tensor) -> Tensor:
        """Logits of every node."""
        for layer in self.layers:
            messages = layer(x).index_select(0, self.source)
            x = F.relu(x + torch.zeros_like(x).index_add(0, self.target, messages))
        return self.head(x)


def tokens(
    vocabulary: int, batch: int, length: int
) -> Callable[[], tuple[Tensor, ...]]:
    """Random sequences, and as many labels."""
    shape = (batch, length)
    return lambda: tuple(torch.randint(0, vocabulary, shape) for _ in range(2))


def _images(*shape: int) -> Callable[[], tuple[Tensor, ...]]:
    return lambda: (torch.randn(*shape), torch.randint(0, 10, (shape[0],)))


CASES: dict[str, Case] = {
    "MNIST CNN, batch 16": (lambda: WithLoss(mnist_cnn()), _images(16, 1, 28, 28)),
    "MLP, batch 32": (lambda: WithLoss(mlp()), _images(32, 784)),
    "ResNet-18 32x32, batch 32": (
        lambda: WithLoss(resnet18()),
        _images(32, 3, 32, 32),
    ),
    "transformer, 4 layers": (
        lambda: WithLoss(Transformer()),
        lambda: (torch.randint(0, 1000, (8, 64)), torch.randint(0, 10, (8,))),
    ),
    "LSTM": (lambda: WithLoss(Lstm()), _images(16, 40, 32)),
    "GRU": (lambda: WithLoss(Gru()), _images(16, 40, 32)),
    "graph network": (lambda: WithLoss(GraphNetwork()), _images(500, 64)),
}

GPT2_TINY: Case = (lambda: Gpt2(128, 2, 1000), tokens(1000, 8, 64))
"""GPT-2 with two layers of 128."""
