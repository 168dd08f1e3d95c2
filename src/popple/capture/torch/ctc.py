"""CTC loss with static shapes: an operator with torch's values and a fixed table.

torch's own operator makes a table as wide as the longest target, which only the values
tell. Here the table is as wide as targets can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from popple.errors import CaptureError
from popple.marks import CTC, CTC_BACKWARD, library_name

Lengths = Tensor | Sequence[int]
_OPERANDS = (
    "Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths"
)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """What torch.nn.functional.ctc_loss gives, for targets in rows of equal length."""
    is_batched = log_probs.dim() == 3
    rows = targets if is_batched else targets[None]
    if rows.dim() != 2:
        raise CaptureError(
            "ctc_loss has targets in one row: which are whose, only values tell.",
            remedy="Give targets as rows of equal length, [batch, longest target].",
        )
    lengths = _lengths(target_lengths)
    losses, _ = _ctc(
        log_probs if is_batched else log_probs[:, None],
        rows,
        _lengths(input_lengths),
        lengths,
        blank,
        zero_infinity,
    )
    if zero_infinity:
        losses = torch.where(losses == torch.inf, 0.0, losses)
    if reduction == "mean":
        return (losses / lengths.clamp(min=1)).mean()
    if reduction == "sum":
        return losses.sum()
    return losses if is_batched else losses[0]


def _lengths(lengths: Lengths) -> Tensor:
    if isinstance(lengths, Tensor):
        return lengths.reshape(-1)
    return torch.tensor(lengths).reshape(-1)


@torch.library.custom_op(
    library_name(CTC),
    mutates_args=(),
    schema=f"({_OPERANDS}, int blank, bool zero_infinity) -> (Tensor, Tensor)",
)
def _ctc(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    zero_infinity: bool,
) -> tuple[Tensor, Tensor]:
    """The loss of each row, and the table its gradient is made from."""
    losses, table = torch._ctc_loss(
        log_probs.float(),
        targets.long(),
        input_lengths.tolist(),
        target_lengths.tolist(),
        blank,
        zero_infinity,
    )
    # The logarithm of probability 0: places that no target reaches.
    whole = table.new_full(_table_shape(log_probs, targets), -torch.inf)
    whole[:, :, : table.shape[2]] = table
    return losses.to(log_probs.dtype), whole


@_ctc.register_fake
def _(log_probs: Tensor, targets: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    losses = log_probs.new_empty(log_probs.shape[1])
    shape = _table_shape(log_probs, targets)
    return losses, log_probs.new_empty(shape, dtype=torch.float32)


def _table_shape(log_probs: Tensor, targets: Tensor) -> tuple[int, int, int]:
    return log_probs.shape[1], log_probs.shape[0], 2 * targets.shape[1] + 1


@torch.library.custom_op(
    library_name(CTC_BACKWARD),
    mutates_args=(),
    schema=f"(Tensor gradient, {_OPERANDS}, Tensor losses, Tensor table, int blank, "
    "bool zero_infinity) -> Tensor",
)
def _ctc_backward(
    gradient: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    losses: Tensor,
    table: Tensor,
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    # The table as wide as torch's own forward makes it.
    width = 2 * int(target_lengths.max()) + 1
    result = torch.ops.aten._ctc_loss_backward(
        gradient.float().contiguous(),
        log_probs.float(),
        targets.long(),
        input_lengths.tolist(),
        target_lengths.tolist(),
        losses.float(),
        table[:, :, :width].contiguous(),
        blank,
        zero_infinity,
    )
    return result.to(log_probs.dtype)


@_ctc_backward.register_fake
def _(gradient: Tensor, log_probs: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(log_probs)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:4], *output)
    ctx.settings = inputs[4:]


def _differentiate(ctx: Any, gradient: Tensor, _: Any) -> tuple[Any, ...]:
    result = _ctc_backward(gradient, *ctx.saved_tensors, *ctx.settings)
    return result, None, None, None, None, None


_ctc.register_autograd(_differentiate, setup_context=_remember)
