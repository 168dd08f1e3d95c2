"""Find the loss of a forward pass: marked by loss functions or by the front end.

Losses are marked while the forward pass runs: by the loss functions of
`torch.nn.functional`, or by the front end. A marked loss that another marked one is
computed from does not count; exactly one must remain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from popple.errors import CaptureError

LOSS_FUNCTIONS = frozenset(
    {
        F.binary_cross_entropy,
        F.binary_cross_entropy_with_logits,
        F.cosine_embedding_loss,
        F.cross_entropy,
        F.ctc_loss,
        F.gaussian_nll_loss,
        F.hinge_embedding_loss,
        F.huber_loss,
        F.kl_div,
        F.l1_loss,
        F.margin_ranking_loss,
        F.mse_loss,
        F.multi_margin_loss,
        F.multilabel_margin_loss,
        F.multilabel_soft_margin_loss,
        F.nll_loss,
        F.poisson_nll_loss,
        F.smooth_l1_loss,
        F.soft_margin_loss,
        F.triplet_margin_loss,
        F.triplet_margin_with_distance_loss,
    }
)


class LossMarks(TorchFunctionMode):
    """Collects the losses of the forward pass that runs inside it."""

    def __init__(self) -> None:
        super().__init__()
        self._marked: list[Tensor] = []

    def mark(self, loss: Tensor) -> None:
        """Say that `loss` is a loss."""
        self._marked.append(loss)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run one function of torch and mark its result if it is a loss."""
        result = func(*args, **(kwargs or {}))
        if func in LOSS_FUNCTIONS and isinstance(result, Tensor):
            self.mark(result)
        return result

    def final_loss(self) -> Tensor:
        """The one marked loss that feeds no other marked loss."""
        # Losses that depend on no trained weight only count if there are no others.
        losses = [loss for loss in self._marked if loss.requires_grad]
        losses = losses or self._marked[-1:]
        # A loss that another is computed from is a term of it, not a loss of its own.
        inner = {node for loss in losses for node in _ancestors(loss.grad_fn)}
        final = {loss.grad_fn: loss for loss in losses if loss.grad_fn not in inner}
        if not final:
            raise CaptureError(
                "Couldn't find a loss in graph!",
                remedy="A training model must compute its loss in forward: use a loss "
                "of torch.nn, or mark the tensor with poptorch.identity_loss.",
            )
        if len(final) > 1:
            raise CaptureError(
                f"Multiple independent losses found in graph: {len(final)} tensors are "
                "marked as losses and none is computed from the others.",
                remedy="Combine them and mark the sum with poptorch.identity_loss.",
            )
        return next(iter(final.values()))


def _ancestors(root: torch.autograd.graph.Node | None) -> set[Any]:
    """Autograd nodes that `root` is computed from, without itself."""
    found: set[Any] = set()
    waiting = [] if root is None else _operands(root)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += _operands(node)
    return found


def _operands(node: torch.autograd.graph.Node) -> list[Any]:
    return [child for child, _ in node.next_functions if child is not None]
