"""Copies around a plan: operands and results that do not lie as the vertices want.

In: a `Setting` and the tiles its candidates use. Out: `Copies`, what the planner of
graphcore/poplibs (lib/poplin/ConvModel.cpp, addTransformCycleEstimate) expects them to
cost: each element once through the exchange, then put in place one by one. Operands
are copied if the form changes them, if their channels fill no whole groups, or if they
come from another pass with another dimension innermost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from popple.graph import DType
from popple.plan.conv.methods import amp_depth
from popple.plan.conv.problem import ConvProblem, Purpose
from popple.plan.conv.setting import Setting
from popple.plan.conv.vertices import Ints, ceil_of
from popple.units import round_up

_WORD_BYTES = 8


@dataclass(frozen=True)
class Copies:
    """Cycles and temporary bytes of the copies of each candidate.

    `inputs_cycles` are those of the copies of inputs, which `cycles` include.
    """

    cycles: Ints
    temporary_bytes: Ints
    inputs_cycles: Ints


@dataclass(frozen=True)
class _Copied:
    """Which tensors are copied; a result that is only regrouped stays on its tile."""

    inputs: bool
    weights: bool
    result: bool
    regrouped: bool


def estimate_copies(num_used: Ints, setting: Setting) -> Copies:
    """Copies before and after; both exist while one is written from the other."""
    before = _estimate_before(num_used, setting)
    after = _estimate_after(num_used, setting)
    # Copies before are over when those after begin: their memory is the same.
    most = np.maximum(before.temporary_bytes, after.temporary_bytes)
    return Copies(before.cycles + after.cycles, most, before.inputs_cycles)


def _find_copied(setting: Setting) -> _Copied:
    form, method, problem = setting.form, setting.method, setting.form.problem
    is_gradient = problem.purpose is Purpose.WEIGHT_GRAD
    is_linear = problem.purpose.is_linear
    is_matmul = problem.purpose.is_product
    is_changed = bool(form.copied_inputs or form.copied_weights)
    pads_in = problem.in_channels % method.in_group != 0
    pads_out = problem.out_channels % method.out_group != 0
    # Products are searched with operands exchanged and wish them so; a convolution that
    # is exchanged has to turn them.
    is_turned = form.is_swapped != is_matmul
    is_copied = is_gradient or is_changed or is_turned or pads_in
    turns_result = form.is_swapped != (is_gradient or is_matmul)
    return _Copied(
        inputs=is_copied or _wants_inputs(problem.purpose, setting.is_joint),
        weights=is_copied or pads_out,
        result=pads_out
        or turns_result
        or (problem.purpose is Purpose.LINEAR_WEIGHT_GRAD and not setting.is_joint),
        # The next layer is taken to want groups of what a weight load covers.
        regrouped=not is_linear and method.out_group != _wide_group(problem, setting),
    )


def _wants_inputs(purpose: Purpose, is_joint: bool) -> bool:
    """Whether a gradient's operand lies as another pass of the layer has it."""
    if purpose is Purpose.LINEAR_INPUT_GRAD:
        return not is_joint
    return purpose is Purpose.LINEAR_WEIGHT_GRAD


def _wide_group(problem: ConvProblem, setting: Setting) -> int:
    dtype = problem.dtype if problem.dtype.is_float else DType.F32
    return amp_depth(dtype, setting.chip)


def _estimate_before(num_used: Ints, setting: Setting) -> Copies:
    copied, problem, method = (
        _find_copied(setting),
        setting.form.problem,
        setting.method,
    )
    in_channels = round_up(problem.in_channels, method.in_group)
    out_channels = round_up(problem.out_channels, method.out_group)
    inputs = weights = 0
    if copied.inputs:
        inputs = problem.num_inputs // problem.in_channels * in_channels
    if copied.weights:
        # Padded channels are copied as well: vertices read whole groups.
        kernel = problem.num_weights // (problem.in_channels * problem.out_channels)
        weights = kernel * in_channels * out_channels
    channels, size = problem.in_channels * problem.out_channels, setting.element_bytes
    both = _estimate(num_used, inputs + weights, channels, size, setting)
    alone = _estimate(num_used, inputs, channels, size, setting)
    return replace(both, inputs_cycles=alone.cycles)


def _estimate_after(num_used: Ints, setting: Setting) -> Copies:
    copied, problem, method = (
        _find_copied(setting),
        setting.form.problem,
        setting.method,
    )
    if not (copied.result or copied.regrouped):
        return _none(num_used)
    size, channels = problem.output.num_bytes, problem.out_channels
    elements = problem.num_outputs // channels * round_up(channels, method.out_group)
    if copied.result:
        return _estimate(num_used, elements, channels, size, setting)
    each = ceil_of(elements, num_used) * size
    # A group stays together, so it is copied a word at a time.
    rate = min(_WORD_BYTES, method.out_group * size)
    cycles = _whole(each * _overhead(channels, size) / rate)
    return replace(_none(num_used), cycles=cycles, temporary_bytes=2 * each)


def _estimate(
    num_used: Ints, elements: int, channels: int, size: int, setting: Setting
) -> Copies:
    """All elements through the exchange, then put in place one by one."""
    if not elements:
        return _none(num_used)
    each = ceil_of(elements, num_used) * size
    moved = each / setting.chip.exchange_bytes_per_cycle
    placed = each * _overhead(channels, size) / min(_WORD_BYTES, size)
    cycles = _whole(moved + placed)
    return replace(_none(num_used), cycles=cycles, temporary_bytes=2 * each)


def _overhead(channels: int, size: int) -> float:
    """A quarter more, two thirds more if channels fill no 64-bit words."""
    return 5 / 4 if channels % (_WORD_BYTES // size) == 0 else 5 / 3


def _none(num_used: Ints) -> Copies:
    zeros = np.zeros_like(num_used)
    return Copies(zeros, zeros, zeros)


def _whole(cycles: NDArray[np.float64]) -> Ints:
    return np.ceil(cycles).astype(np.int64)
