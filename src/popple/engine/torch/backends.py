"""Backends and devices of the PyTorch engine: replay or inductor, CPU or CUDA.

    replay     straight-line Python over the framework's kernels (default)
    inductor   compiled by torch.compile into fused kernels of its own

On a GPU the step of either one is captured into a CUDA graph (`cuda_graphs.py`).
`popple run --backend NAME --device NAME` chooses.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule

from popple.distributed import find_instance
from popple.engine.torch.replay import MakeFunction
from popple.engine.torch.rewrites.channels_last import (
    gains_by_channels_last,
    lay_channels_last,
)
from popple.engine.torch.straight_line import straight_line
from popple.errors import UsageError, suggest
from popple.session import Settings

BACKENDS = ("replay", "inductor")
DEVICES = ("cpu", "cuda")
_ON_DEVICE = {torch.float64: torch.float32, torch.bfloat16: torch.float32}

# Recurrent layers, which torch.compile leaves to eager PyTorch, too: the kernel of the
# CPU keeps what its backward needs only where gradients are enabled, and compiled code
# runs where they are not; on a GPU every position has its own operators, and compiling
# them takes minutes.
_RECURRENT = frozenset(
    {
        torch.ops.aten.mkldnn_rnn_layer.default,
        torch.ops.aten._thnn_fused_lstm_cell.default,
        torch.ops.aten._thnn_fused_gru_cell.default,
    }
)


def check_backend(backend: str, device: str) -> None:
    """UsageError if there is no such backend or device here."""
    if backend not in BACKENDS:
        raise UsageError(
            f"there is no backend {backend!r}.", remedy=suggest(backend, BACKENDS)
        )
    if device not in DEVICES:
        raise UsageError(
            f"there is no device {device!r}.", remedy=suggest(device, DEVICES)
        )
    if device == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            "PyTorch finds no GPU on this computer.",
            remedy="Use --device cpu, or install a PyTorch built for your GPU.",
        )


@dataclass(frozen=True)
class Backend:
    """A way to execute steps, and the computer's device they run on.

    The machine has no bfloat16, so it becomes float32; a GPU, which has it, may be told
    to keep it.
    """

    name: str = "replay"
    device: str = "cpu"
    keeps_bfloat16: bool = False

    def __post_init__(self) -> None:
        check_backend(self.name, self.device)
        if self.keeps_bfloat16 and self.device != "cuda":
            raise UsageError(
                "Only a GPU keeps bfloat16; here it is computed in float32.",
                remedy="Use --device cuda, or leave out --keep-bfloat16.",
            )

    @property
    def is_default(self) -> bool:
        """Whether steps are replayed on the CPU."""
        return (self.name, self.device) == ("replay", "cpu")

    def typed(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor in a floating-point type that steps compute in.

        Integers keep 64 bits while they run: their values are the same, and operators
        of PyTorch ask for them. They come back with 32.
        """
        dtype = _ON_DEVICE.get(tensor.dtype)
        is_kept = self.keeps_bfloat16 and tensor.dtype is torch.bfloat16
        return tensor if dtype is None or is_kept else tensor.to(dtype)

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor where steps run."""
        return tensor if self.device == "cpu" else tensor.to(self.device)

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        """A context to trace in: tensors are made where steps run."""
        if self.device == "cpu":
            yield
            return
        # cuDNN's recurrent layers lay their weights out anew, which a trace that
        # exchanges weights cannot do; PyTorch's own ones need no such thing.
        with torch.device(self.device), torch.backends.cudnn.flags(enabled=False):
            yield


REPLAY = Backend()
"""Replay on the CPU."""


def chosen_backend(settings: Settings) -> Backend:
    """The backend that the user's settings name; UsageError if it is not there."""
    backend = Backend(settings.backend, settings.device, settings.keeps_bfloat16)
    if backend.device == "cuda" and (instance := find_instance()) is not None:
        # Instances of a host take its GPUs in turn, and share them if there are fewer.
        torch.cuda.set_device(instance.local_index % torch.cuda.device_count())
    return backend


def function_maker(backend: str) -> MakeFunction | None:
    """How this backend makes a graph into a function; None for straight-line Python."""
    return _compiled if backend == "inductor" else None


def _compiled(module: GraphModule) -> Callable[..., Sequence[Any]]:
    if any(node.target in _RECURRENT for node in module.graph.nodes):
        return straight_line(module)
    # torch.compile takes a whole training step for inference and would lay out its
    # forward pass alone; on the CPU that makes small convolutions a third slower.
    options: dict[str, Any] = {"layout_optimization": False}
    if not _is_on_cpu(module) and gains_by_channels_last(module.graph):
        module = lay_channels_last(module)
        options["layout_optimization"] = True
    # Shapes of a step never change, so nothing is compiled for dynamic ones; a graph
    # that breaks would lose the point of compiling the whole step.
    return torch.compile(module.forward, fullgraph=True, dynamic=False, options=options)


def _is_on_cpu(module: GraphModule) -> bool:
    """Whether a step runs on the CPU, whose kernels lay tensors out themselves."""
    values = (node.meta.get("val") for node in module.graph.nodes)
    return all(v.device.type == "cpu" for v in values if isinstance(v, torch.Tensor))
