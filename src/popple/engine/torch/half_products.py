"""Half precision on processors without arithmetic for it: products in float32.

PyTorch multiplies float16 matrices an order of magnitude slower than float32 ones where
the processor has no such instructions, and converts as fast as memory allows. There,
products, convolutions, attention and recurrent layers compute in float32 and round
once. Whether it is so is measured, once in a process.
"""

from __future__ import annotations

import functools
import time

import torch
from torch.fx import Graph, Node

from popple.engine.torch.rewrites.wide import (
    HALF,
    SINGLE,
    compute_in_float,
    makes_or_takes_half,
    to_nearest,
)

aten = torch.ops.aten

PRODUCTS = frozenset(
    {
        aten.mm.default,
        aten.addmm.default,
        aten.bmm.default,
        aten.baddbmm.default,
        aten.addbmm.default,
        aten.mv.default,
        aten.addmv.default,
        aten.dot.default,
        aten.vdot.default,
        aten.addr.default,
        aten.linear.default,
        aten.matmul.default,
        aten._trilinear.default,
        aten.convolution.default,
        aten.convolution_backward.default,
        aten._scaled_dot_product_flash_attention_for_cpu.default,
        aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
        aten._cdist_forward.default,
        aten._cdist_backward.default,
        torch.ops.popple.recurrent.default,
        torch.ops.popple.recurrent_backward.default,
    }
)
"""Operators that sum products."""

_SIZE = 128
_ATTEMPTS = 3
# Converting operands and results costs a tenth of a product of this size; the slow
# kernels take ten times a product and more.
_SLOW = 2.0


@functools.cache
def is_half_slow() -> bool:
    """Whether this processor multiplies float16 slower than float32."""
    return _seconds(HALF) > _SLOW * _seconds(SINGLE)


def _seconds(dtype: torch.dtype) -> float:
    """The time of a product, the best of some."""
    matrix = torch.ones(_SIZE, _SIZE, dtype=dtype)
    times: list[float] = []
    for _ in range(_ATTEMPTS):
        start = time.perf_counter()
        torch.mm(matrix, matrix)
        times.append(time.perf_counter() - start)
    return min(times)


def use_float_products(graph: Graph) -> None:
    """Let products of float16 compute in float32, if that is faster here."""
    chosen = {n for n in graph.nodes if _is_half_product(n)}
    if chosen and is_half_slow():
        compute_in_float(graph, chosen.__contains__, to_nearest)


def _is_half_product(node: Node) -> bool:
    if node.target not in PRODUCTS or not makes_or_takes_half(node):
        return False
    operands = (source.meta.get("val") for source in node.all_input_nodes)
    tensors = [value for value in operands if isinstance(value, torch.Tensor)]
    return all(tensor.device.type == "cpu" for tensor in tensors)
