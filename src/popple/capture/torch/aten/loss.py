"""Lowering of losses that aten keeps whole; others arrive as element-wise operators."""

from __future__ import annotations

from popple.capture.torch.aten.forms import Lowering, one_op

_KINDS = {
    "nll_loss_forward": "nll_loss",
    "nll_loss_backward": "nll_loss_grad",
    "nll_loss2d_forward": "nll_loss",
    "nll_loss2d_backward": "nll_loss_grad",
    "mse_loss": "mse_loss",
    "mse_loss_backward": "mse_loss_grad",
    "smooth_l1_loss": "smooth_l1_loss",
    "smooth_l1_loss_backward": "smooth_l1_loss_grad",
    "huber_loss": "huber_loss",
    "huber_loss_backward": "huber_loss_grad",
    "binary_cross_entropy": "binary_cross_entropy",
    "binary_cross_entropy_backward": "binary_cross_entropy_grad",
    "binary_cross_entropy_with_logits": "binary_cross_entropy",
    "soft_margin_loss": "margin_loss",
    "soft_margin_loss_backward": "margin_loss_grad",
    "multi_margin_loss": "margin_loss",
    "multi_margin_loss_backward": "margin_loss_grad",
    "multilabel_margin_loss_forward": "margin_loss",
    "multilabel_margin_loss_backward": "margin_loss_grad",
}

LOWERINGS: dict[str, Lowering] = {
    f"aten.{name}": one_op(kind) for name, kind in _KINDS.items()
}
