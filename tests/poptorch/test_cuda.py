"""Programs on a GPU: the numbers of the CPU, from one CUDA graph."""

from __future__ import annotations

import logging

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import poptorch
from tests.poptorch.models import Classifier, batch, options, twins

if not torch.cuda.is_available():
    pytest.skip("PyTorch finds no GPU", allow_module_level=True)

NUM_CALLS = 6  # some before a graph is captured, some after


def use_gpu(monkeypatch: pytest.MonkeyPatch, backend: str = "replay") -> None:
    monkeypatch.setenv("POPPLE_DEVICE", "cuda")
    monkeypatch.setenv("POPPLE_BACKEND", backend)


def trained(module: nn.Module, opts: poptorch.Options, kind: str) -> list[Tensor]:
    """Losses of some calls, halving the rate on the way, then the weights."""
    make = getattr(poptorch.optim, kind)
    model = poptorch.trainingModel(module, opts, make(module.parameters(), lr=0.1))
    group = opts.Training.gradient_accumulation * opts.device_iterations
    losses: list[Tensor] = []
    for seed in range(NUM_CALLS):
        losses.append(model(*batch(2 * group, seed))[1])
        model.setOptimizer(make(module.parameters(), lr=0.1 / (seed + 1)))
    weights = [p.detach().clone() for p in module.parameters()]
    model.destroy()
    return [*losses, *weights]


@pytest.mark.parametrize("backend", ["replay", "inductor"])
@pytest.mark.parametrize("kind", ["SGD", "AdamW", "RMSprop", "LAMB"])
def test_training_is_that_of_the_cpu(
    kind: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    module, other = twins(Classifier())
    expected = trained(other, options(), kind)
    use_gpu(monkeypatch, backend)
    found = trained(module, options(), kind)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sizes", [{"g": 3}, {"d": 3}, {"d": 2, "g": 2}], ids=str)
def test_several_micro_batches(
    sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    module, other = twins(Classifier())
    expected = trained(other, options(**sizes), "SGD")
    use_gpu(monkeypatch)
    for mine, theirs in zip(
        trained(module, options(**sizes), "SGD"), expected, strict=True
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_outputs_stay_what_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    use_gpu(monkeypatch)
    model = poptorch.inferenceModel(nn.Identity(), options())
    kept = [model(torch.full((2,), float(number))) for number in range(NUM_CALLS)]
    assert [int(output[0]) for output in kept] == list(range(NUM_CALLS))
    assert all(output.device.type == "cpu" for output in kept)


def test_a_model_that_prints_has_no_graph(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    use_gpu(monkeypatch)

    class Printing(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return poptorch.ipu_print_tensor(x, "x") + 1

    model = poptorch.inferenceModel(Printing(), options())
    with caplog.at_level(logging.WARNING, "poptorch::python"):
        for _ in range(NUM_CALLS):
            assert model(torch.ones(1)).item() == 2
    assert capfd.readouterr().err.count("x: (1.000)") == NUM_CALLS
    assert "without a CUDA graph: popple.print_tensor.default" in caplog.text


def test_random_numbers_repeat_with_the_seed_and_differ_between_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_gpu(monkeypatch)

    class Noise(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.dropout(x, 0.5, training=True)

    def draw() -> list[Tensor]:
        model = poptorch.inferenceModel(Noise(), options().randomSeed(7))
        return [model(torch.ones(64)) for _ in range(NUM_CALLS)]

    first, second = draw(), draw()
    for mine, again in zip(first, second, strict=True):
        assert torch.equal(mine, again)
    assert not torch.equal(first[-1], first[-2])


def test_running_statistics_move(monkeypatch: pytest.MonkeyPatch) -> None:
    class Normed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 4, 3)
            self.norm = nn.BatchNorm2d(4)

        def forward(self, x: Tensor) -> Tensor:
            return poptorch.identity_loss(self.norm(self.conv(x)).square(), "mean")

    torch.manual_seed(0)
    module, other = twins(Normed())
    x = torch.randn(8, 1, 6, 6)
    for _ in range(NUM_CALLS):
        other(x)
    use_gpu(monkeypatch, "inductor")
    frozen = poptorch.optim.SGD(module.parameters(), lr=0.0)
    model = poptorch.trainingModel(module, options(), frozen)
    for _ in range(NUM_CALLS):
        model(x)
    assert isinstance(module, Normed)
    assert isinstance(other, Normed)
    for name in ("running_mean", "running_var"):
        mine, theirs = getattr(module.norm, name), getattr(other.norm, name)
        torch.testing.assert_close(mine.detach(), theirs, rtol=1e-3, atol=1e-4)


class Sequences(nn.Module):
    """A recurrent layer, batch first, whose last state is the result."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.layer = getattr(nn, kind)(3, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return poptorch.identity_loss(self.layer(x)[0][:, -1], "sum")


@pytest.mark.parametrize("backend", ["replay", "inductor"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_layers(
    kind: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    pair = twins(Sequences(kind))
    results: list[list[Tensor]] = []
    for module in pair:
        model = poptorch.trainingModel(
            module, options(), poptorch.optim.SGD(module.parameters(), lr=0.1)
        )
        x = torch.linspace(-1, 1, 2 * 5 * 3).view(2, 5, 3)
        losses = [model(x) for _ in range(NUM_CALLS)]
        model.destroy()
        results.append([*losses, *(p.detach() for p in module.parameters())])
        use_gpu(monkeypatch, backend)
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("backend", ["replay", "inductor"])
def test_half_weights_with_float_state(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    results: list[Tensor] = []
    for module in twins(Summed(nn.Linear(4, 4).half())):
        model = poptorch.trainingModel(
            module, options(), poptorch.optim.AdamW(module.parameters(), lr=0.1)
        )
        for _ in range(NUM_CALLS):
            model(torch.ones(2, 4).half())
        model.destroy()
        results.append(next(module.parameters()).detach())
        use_gpu(monkeypatch, backend)
    torch.testing.assert_close(results[1], results[0], rtol=2e-3, atol=1e-3)


class Shrunk(nn.Module):
    """Convolutions, pooling and a view: channels lie innermost on a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 96, 3, padding=1)
        self.norm = nn.BatchNorm2d(96)
        self.second = nn.Conv2d(96, 8, 3, stride=2)
        self.last = nn.Linear(8 * 31 * 31, 10)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        x = F.relu(self.second(F.relu(self.norm(self.first(x)))))
        x = self.last(x.flatten(1))
        return x, self.loss(x, labels)


@pytest.mark.parametrize("group", [1, 2])
def test_large_inputs_and_channels_innermost(
    group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs that cross early, each used once and overwritten by the program."""
    torch.manual_seed(0)
    images = torch.randn(NUM_CALLS, 8 * group, 3, 64, 64)
    labels = torch.randint(0, 10, (8 * group,))

    def losses(module: nn.Module) -> list[float]:
        sgd = poptorch.optim.SGD(module.parameters(), lr=0.01)
        model = poptorch.trainingModel(module, options(g=group), sgd)
        given = torch.empty_like(images[0])
        found: list[float] = []
        for each in images:
            found.append(float(model(given.copy_(each), labels)[1]))
            given.zero_()
        return found

    module, other = twins(Shrunk())
    expected = losses(other)
    use_gpu(monkeypatch, "inductor")
    assert losses(module) == pytest.approx(expected, rel=5e-3)
    torch.testing.assert_close(
        module.state_dict(), other.state_dict(), rtol=0, atol=5e-3
    )


class Weighted(nn.Module):
    """A product whose result says in which type it was computed."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 1, bias=False)
        nn.init.constant_(self.layer.weight, 1 + 2**-7)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.layer(x))


def test_bfloat16_is_kept_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    use_gpu(monkeypatch)
    found: list[float] = []
    for keeps in ("", "1"):
        monkeypatch.setenv("POPPLE_KEEP_BFLOAT16", keeps)
        model = poptorch.inferenceModel(Weighted().bfloat16(), options())
        found.append(float(model(torch.ones(1, 1, dtype=torch.bfloat16)).float()))
    # (1 + 2^-7)^2 is exact in float32; bfloat16 has 7 bits behind the point.
    assert found == [1 + 2**-6 + 2**-14, 1 + 2**-6]


class Summed(nn.Module):
    """A module whose loss is the sum of its outputs."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        return poptorch.identity_loss(self.body(x), "sum")


class Attention(nn.Module):
    """Self-attention of two heads and a loss."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.layer = nn.Linear(32, 96)
        self.dropout = dropout

    def forward(self, given: Tensor) -> Tensor:
        parts = self.layer(given).unflatten(-1, (3, 2, 16)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*parts, dropout_p=self.dropout)
        return poptorch.identity_loss(mixed, reduction="mean")


def attend(dropout: float) -> poptorch.PoplarExecutor:
    """A model of attention that has trained a step."""
    net = Attention(dropout)
    optimizer = poptorch.optim.SGD(net.parameters(), lr=0.1)
    opts = poptorch.Options()
    opts.logCycleCount(True)
    model = poptorch.trainingModel(net, opts, optimizer)
    model(torch.rand(4, 8, 32))
    return model


def test_attention_costs_what_it_costs_on_a_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cycles = attend(dropout=0.0).cycleCount()
    use_gpu(monkeypatch)
    assert attend(dropout=0.0).cycleCount() == cycles


def test_attention_with_dropout_is_made_of_known_ops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_gpu(monkeypatch)
    kinds = {op.kind for op in attend(dropout=0.1).__popple__().graph.ops}
    assert "dropout" in kinds
    assert "generic" not in kinds
