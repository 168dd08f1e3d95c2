"""Weight casts: weights of a traced layer follow the element type of their input.

Where PyTorch wants all operands of a product, convolution or normalisation in one
type, the IPU takes activations and weights of different ones: weights are cast to the
type of what they are applied to, and that is the type of the result. The casts are
part of the traced step, so gradients come back in the weights' own type.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch import Tensor

__all__ = ["LAYERS", "STATISTICS", "is_mixed", "normalise", "with_one_type"]

_METHODS = ("matmul", "mm", "bmm", "mv", "dot", "__matmul__")

LAYERS: dict[Callable[..., Any], int] = {
    **dict.fromkeys((F.linear, F.bilinear, torch.prelu, Tensor.prelu), 0),
    **dict.fromkeys((F.conv1d, F.conv2d, F.conv3d), 0),
    **dict.fromkeys((F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d), 0),
    **dict.fromkeys((F.layer_norm, F.group_norm, F.rms_norm), 0),
    **dict.fromkeys((torch.layer_norm, torch.group_norm, torch.rms_norm), 0),
    **dict.fromkeys((torch.lstm_cell, torch.gru_cell), 0),
    **dict.fromkeys((torch.rnn_tanh_cell, torch.rnn_relu_cell), 0),
    **dict.fromkeys((torch.matmul, torch.mm, torch.bmm, torch.mv, torch.dot), 0),
    **dict.fromkeys((getattr(Tensor, name) for name in _METHODS), 0),
    F.multi_head_attention_forward: 0,
    torch.einsum: 1,
    # What a product is added to comes before its factors.
    **dict.fromkeys((torch.addmm, torch.baddbmm, torch.addbmm, torch.addmv), 1),
    **dict.fromkeys((Tensor.addmm, Tensor.baddbmm, Tensor.addbmm, Tensor.addmv), 1),
}
"""Layers whose operands need one type, and which argument decides it."""

STATISTICS = {
    F.batch_norm: inspect.signature(F.batch_norm),
    F.instance_norm: inspect.signature(F.instance_norm),
}


def _floating(values: Any) -> list[Tensor]:
    leaves = pytree.tree_leaves(values)
    tensors = (leaf for leaf in leaves if isinstance(leaf, Tensor))
    return [tensor for tensor in tensors if tensor.is_floating_point()]


def is_mixed(values: Any) -> bool:
    return len({tensor.dtype for tensor in _floating(values)}) > 1


def with_one_type(
    args: tuple[Any, ...], kwargs: dict[str, Any], leading: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments in the type of the first tensor from argument `leading` on."""
    if not is_mixed((args, kwargs)):
        return args, kwargs
    found = _floating((args[leading:], kwargs))
    dtype = found[0].dtype

    def cast(leaf: Any) -> Any:
        is_other = isinstance(leaf, Tensor) and leaf.is_floating_point()
        return leaf.to(dtype) if is_other else leaf

    return pytree.tree_map(cast, (args, kwargs))


def normalise(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A normalisation with running statistics, which keep a type of their own.

    The kernels take float parameters with half activations, so the statistics are
    float in between if any of them is; what they become is written back.
    """
    bound = STATISTICS[func].bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    dtype: torch.dtype = given["input"].dtype
    held = {name: given[name] for name in ("running_mean", "running_var")}
    held = {name: tensor for name, tensor in held.items() if tensor is not None}
    common = dtype if all(t.dtype == dtype for t in held.values()) else torch.float32
    for name in ("weight", "bias"):
        if given[name] is not None:
            # Rounded to the type of the activations first, as the machine has them,
            # even if the kernel takes float.
            given[name] = given[name].to(dtype).to(common)
    for name, tensor in held.items():
        given[name] = tensor.to(common)
    result = func(*bound.args, **bound.kwargs)
    is_updated = given.get("training", given.get("use_input_stats"))
    for name, tensor in held.items():
        if is_updated and given[name] is not tensor:
            tensor.copy_(given[name])
    return result
