"""How torch behaves inside forward, and which errors tell what it may not do."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses.fake_tensor import DynamicOutputShapeException
from torch.distributions import Distribution, Normal, Uniform

import poptorch
from poptorch import poptorch_core
from tests.poptorch.models import options


class Function(nn.Module):
    """A module whose forward is a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, x: Tensor) -> Any:
        return self._function(x)


def run(function: Callable[..., Any], x: Tensor) -> Any:
    return poptorch.inferenceModel(Function(function), options())(x)


ONES = torch.ones(2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + torch.ones(2, device="ipu"),
        lambda x: x.to("ipu") + 1,
        lambda x: x + torch.tensor([1, 1], device=torch.device("ipu", 0)),
        lambda x: x + torch.LongTensor([1, 1]).to("ipu"),
    ],
    ids=["made there", "moved", "device object", "from the host"],
)
def test_the_device_may_be_called_ipu(function: Callable[..., Any]) -> None:
    assert run(function, ONES).tolist() == [2, 2]


@pytest.mark.parametrize(
    "function",
    [
        torch.nonzero,
        torch.unique,
        lambda x: x[x > 0],
        lambda x: torch.masked_select(x, x > 0),
        lambda x: torch.where(x > 0),
    ],
    ids=["nonzero", "unique", "mask", "masked_select", "where"],
)
def test_shapes_that_depend_on_values_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(poptorch.Error, match=r"test_trace_rules.py:.*shape") as caught:
        run(lambda x: function(x), ONES)
    assert isinstance(caught.value, DynamicOutputShapeException)
    assert not poptorch_core.isCompilingWithDispatcher()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x * x[0].item(),
        lambda x: x.tolist(),
    ],
    ids=["if", "item", "tolist"],
)
def test_values_are_not_known_while_compiling(function: Callable[..., Any]) -> None:
    with pytest.raises(poptorch.Error, match=r"test_trace_rules.py:.*value"):
        run(function, ONES)


@pytest.mark.parametrize("mode", ["linear", "trilinear"])
def test_upsampling_knows_the_nearest_only(mode: str) -> None:
    x = torch.ones(1, 1, 2) if mode == "linear" else torch.ones(1, 1, 2, 2, 2)
    with pytest.raises(poptorch.Error, match="only 'nearest' is supported"):
        run(lambda x: F.interpolate(x, scale_factor=2, mode=mode), x)


def test_errors_of_torch_are_the_same_as_on_the_host() -> None:
    def wrong(x: Tensor) -> Tensor:
        return x.scatter(0, x)  # type: ignore[call-overload]

    with pytest.raises(TypeError) as on_host:
        wrong(ONES)
    with pytest.raises(TypeError) as on_device:
        run(wrong, ONES)
    assert str(on_device.value) == str(on_host.value)


def test_a_model_can_be_called_rightly_after_an_error() -> None:
    model = poptorch.inferenceModel(Function(lambda x: x.reshape(3)), options())
    with pytest.raises(RuntimeError, match="shape"):
        model(ONES)
    assert model(torch.ones(3)).tolist() == [1, 1, 1]


def test_distributions_do_not_look_at_their_parameters() -> None:
    def sample(x: Tensor) -> tuple[Tensor, Tensor]:
        return Normal(x, 1.0).sample(), Uniform(x, x + 1).sample()

    before = Distribution._validate_args
    normal, uniform = run(sample, ONES)
    assert normal.shape == (2,)
    assert ((uniform >= 1) & (uniform < 2)).all()
    assert Distribution._validate_args is before


def test_transformers_take_any_mask() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    x = torch.randn(3, 1, 4)
    result = poptorch.inferenceModel(encoder, options())(x, mask)
    torch.testing.assert_close(result, encoder(x, mask).detach())


X = torch.randn(3, 5)


@pytest.mark.parametrize(
    "function",
    [
        torch.cov,
        torch.corrcoef,
        lambda x: torch.combinations(x[0]),
        lambda x: torch.combinations(x[0], 3, with_replacement=True),
        lambda x: torch.cov(x[0]),
        lambda x: torch.corrcoef(x[0]),
        lambda x: torch.cov(x, correction=0, fweights=torch.tensor([1, 2, 1, 3, 1])),
        lambda x: torch.cov(x, aweights=x[0].abs()),
        lambda x: F.gaussian_nll_loss(x, x + 1, x**2, full=True),
        lambda x: F.gaussian_nll_loss(x, x + 1, 1e-9, reduction="sum"),
        lambda x: F.gaussian_nll_loss(x, x + 1, x[:, 0] ** 2, reduction="none"),
    ],
)
def test_functions_that_need_no_values_work(function: Callable[..., Any]) -> None:
    torch.testing.assert_close(run(lambda x: function(x), X), function(X))


def test_whole_numbers_of_the_model_can_be_read() -> None:
    class Repeated(nn.Module):
        times: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("times", torch.tensor(3))
            self.norm = nn.BatchNorm1d(2, momentum=None)

        def forward(self, x: Tensor) -> Tensor:
            for _ in range(int(self.times)):
                x = x + 1
            return self.norm(x)

    module = Repeated()
    model = poptorch.inferenceModel(module, options())
    model(torch.tensor([[0.0, 1.0], [2.0, 1.0]]))
    model.copyWeightsToHost()
    # The first batch of a running average counts fully: 3 + the means 1 and 1.
    mean = module.norm.running_mean
    assert mean is not None
    assert mean.tolist() == [4, 4]


def test_whole_numbers_are_drawn_in_place() -> None:
    drawn = run(lambda x: torch.empty(100).random_(3, 6) + 0 * x.sum(), ONES)
    assert set(drawn.tolist()) == {3, 4, 5}


def test_counting_needs_a_length_and_keeps_to_it() -> None:
    x = torch.tensor([0, 2, 2])
    counts = run(lambda x: torch.bincount(x, minlength=4), x)
    assert counts.tolist() == [1, 0, 2, 0]
    weighted = run(lambda x: torch.bincount(x, x.float(), minlength=4), x)
    assert weighted.tolist() == [0, 0, 4, 0]


def test_the_gather_that_comes_with_poptorch() -> None:
    def gather(x: Tensor) -> Tensor:
        index = torch.tensor([[[1], [0]]])
        (result,) = poptorch.custom_op(
            [x, index], "FastGatherLastDim", "poptorch.custom_ops", 1, [x[..., :1]]
        )
        return result

    x = torch.arange(4.0).view(1, 2, 2)
    assert run(gather, x).tolist() == [[[1], [2]]]
    with pytest.raises(poptorch.Error, match="three dimensions"):
        run(gather, torch.ones(2, 2))


def test_gelu_by_the_error_function_is_an_op_of_its_own() -> None:
    def exact(x: Tensor) -> Tensor:
        return poptorch.custom_op([x], "GeluErf", "ai.graphcore", 1, [x])[0]

    x = torch.tensor([-1.0, 0.5])
    assert torch.allclose(run(exact, x), torch.nn.functional.gelu(x))


def test_subclasses_of_dict_come_back_as_they_are() -> None:
    def forward(x: Tensor) -> Any:
        grown = defaultdict(list, {"a": x + 1})
        return OrderedDict(b=grown, c=[x, 3])

    result = run(forward, ONES)
    assert result["b"]["new"] == []
    assert result["b"]["a"].tolist() == [2, 2]
    assert result["c"][1] == 3


def test_bounded_variances_have_the_gradient_of_torch() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.var = nn.Parameter(torch.tensor([1e-9, 2.0]))

        def forward(self, x: Tensor) -> Tensor:
            return F.gaussian_nll_loss(x, x + 1, self.var)

    ours, theirs = Model(), Model()
    sgd = torch.optim.SGD(theirs.parameters(), lr=1e-9)
    theirs(ONES).backward()
    sgd.step()
    optimizer = torch.optim.SGD(ours.parameters(), lr=1e-9)
    poptorch.trainingModel(ours, options(), optimizer)(ONES)
    torch.testing.assert_close(ours.var.detach(), theirs.var.detach())


def test_objects_that_hide_tensors_are_refused() -> None:
    @dataclass
    class Result:
        hidden: Tensor

    with pytest.raises(poptorch.Error, match=r"attribute hidden.*CustomArgParser"):
        run(Result, ONES)


def test_outputs_of_the_host_are_told() -> None:
    constant = torch.ones(3)
    with pytest.warns(UserWarning, match="Output expected to be on the IPU but is on"):
        _, kept = run(lambda x: (x, constant), ONES)
    assert kept.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fnuz, torch.float8_e5m2fnuz])
def test_float8_is_for_inside(dtype: torch.dtype) -> None:
    x = torch.tensor([[0.3, 1.0]])
    weight = nn.Parameter(torch.tensor([[0.7, -2.0]]), requires_grad=False)

    def product(x: Tensor) -> Tensor:
        return F.linear(x, weight.to(dtype))

    expected = x @ weight.to(dtype).float().t()
    assert run(product, x).tolist() == expected.tolist()
    with pytest.raises(poptorch.Error, match=r"float8.*half\(\)"):
        run(lambda x: x.to(dtype), x)
