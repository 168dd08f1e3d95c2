"""Helps for models of graphs: sizes of aggregations, and training beside the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import nn
from torch.testing import assert_close
from torch_geometric.nn import MessagePassing

import poptorch

__all__ = ["TrainingStepper", "set_aggregation_dim_size"]


def set_aggregation_dim_size(model: nn.Module, dim_size: int) -> None:
    """Let every message passing in `model` aggregate to `dim_size` nodes.

    That is at least the number of nodes of a batch; without it the number would
    depend on the values of `edge_index`.
    """

    def set_dim_size(module: nn.Module, inputs: tuple[dict[str, Any], ...]) -> Any:
        return {**inputs[-1], "dim_size": dim_size}

    for module in model.modules():
        if isinstance(module, MessagePassing):
            module.register_aggregate_forward_pre_hook(set_dim_size)


class TrainingStepper:
    """Trains two copies of a model, on the CPU and on the IPU, and compares them.

    The model returns its output and its loss. `rtol`, `atol` and `equal_nan` are those
    of `torch.testing.assert_close`; the IPU stops at floating point exceptions unless
    `enable_fp_exception` is False.
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float = 0.001,
        optimizer: Callable[..., torch.optim.Optimizer] = poptorch.optim.Adam,
        options: poptorch.Options | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        enable_fp_exception: bool = True,
        equal_nan: bool = False,
    ) -> None:
        super().__init__()
        model.train()
        self.lr = lr
        self.rtol = rtol
        self.atol = atol
        self.equal_nan = equal_nan
        self.options = poptorch.Options() if options is None else options
        if enable_fp_exception:
            self.options.Precision.enableFloatingPointExceptions(True)
        self.cpu_model = deepcopy(model)
        self.ipu_model = deepcopy(model)
        self.optimizer: torch.optim.Optimizer | None = None
        self.training_model: poptorch.PoplarExecutor | None = None
        if list(model.parameters()):
            self.optimizer = optimizer(self.cpu_model.parameters(), lr=lr)
            self.training_model = poptorch.trainingModel(
                self.ipu_model,
                options=self.options,
                optimizer=optimizer(self.ipu_model.parameters(), lr=lr),
            )
        self.inference_model = poptorch.inferenceModel(
            self.ipu_model, options=self.options
        )
        self.check_parameters()

    def check_parameters(self) -> None:
        """AssertionError unless both copies have the same parameters."""
        expected = dict(self.cpu_model.named_parameters())
        for name, parameter in self.ipu_model.named_parameters():
            self.assert_close(parameter, expected[name], name)

    def cpu_step(self, batch: Sequence[Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """One training step of the copy on the CPU: its output and loss."""
        assert self.optimizer is not None, "The model has no parameters to train."
        self.optimizer.zero_grad()
        output, loss = self.cpu_model(*batch)
        loss.backward()
        self.optimizer.step()
        return output, loss

    def ipu_step(
        self, batch: Sequence[Any], copy_weights: bool = True
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One training step of the copy on the IPU: its output and loss."""
        assert self.training_model is not None, "The model has no parameters to train."
        output, loss = self.training_model(*batch)
        if copy_weights:
            self.training_model.copyWeightsToHost()
        return output, loss

    def run(self, num_steps: int, *batches: Sequence[Any]) -> None:
        """Train both on a batch and compare outputs, losses and parameters.

        With two batches the CPU gets the first and the IPU the second; of the outputs
        as much is compared as both have.
        """
        if len(batches) not in (1, 2):
            raise TypeError(f"run takes one batch or two, not {len(batches)}.")
        cpu_batch, ipu_batch = batches[0], batches[-1]
        self.cpu_model.train()
        for _ in range(num_steps):
            expected, expected_loss = self.cpu_step(cpu_batch)
            output, loss = self.ipu_step(ipu_batch)
            if len(batches) == 2:
                size = min(len(output), len(expected))
                output, expected = output[:size], expected[:size]
            self.assert_close(output, expected, "Output")
            self.check_parameters()
            self.assert_close(loss, expected_loss, "loss")

    def run_inference(self, batch: Sequence[Any]) -> None:
        """Compare what both copies return for a batch."""
        self.cpu_model.eval()
        with torch.no_grad():
            expected = self.cpu_model(*batch)
        output, _ = self.inference_model(*batch)
        self.assert_close(output, expected, "inference")

    def assert_close(self, actual: Any, expected: Any, id: str) -> None:
        """AssertionError that names `id` unless the two are close."""
        assert_close(
            actual=actual,
            expected=expected,
            rtol=self.rtol,
            atol=self.atol,
            equal_nan=self.equal_nan,
            msg=lambda text: f"{id} was not equal:\n\n{text}\n",
        )

    def benchmark(
        self,
        num_steps: int,
        batch: Sequence[Any],
        devices: str | Sequence[str] = "ipu",
    ) -> dict[str, float]:
        """Seconds that `num_steps` training steps take on the devices named."""
        steps: dict[str, Callable[[], Any]] = {
            "ipu": lambda: self.ipu_step(batch, copy_weights=False),
            "cpu": lambda: self.cpu_step(batch),
        }
        if "gpu" in devices:
            raise NotImplementedError("There is no GPU to compare with.")
        return {
            f"{name}_time": _seconds(step, num_steps)
            for name, step in steps.items()
            if name in devices
        }


def _seconds(step: Callable[[], Any], num_steps: int) -> float:
    """What `num_steps` steps take, after one that is not counted."""
    step()
    start = time.perf_counter()
    for _ in range(num_steps):
        step()
    return time.perf_counter() - start
