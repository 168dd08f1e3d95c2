"""Methods: groups that vertices work in, and the memory they take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from popple.graph import DType
from popple.plan.conv.cost import partials_bytes
from popple.plan.conv.methods import Method, find_methods
from popple.plan.conv.problem import ConvProblem, matmul_problem
from popple.plan.conv.setting import Setting
from popple.plan.conv.splits import Serial, find_candidates
from popple.plan.conv.transforms import Form
from tests.plan.conv.machines import target_of

GC200, GC2 = (target_of(name).chip for name in ("gc200", "gc2"))


def single(columns: int) -> ConvProblem:
    shape = (64, 64, columns)
    return matmul_problem(1, shape, DType.F32, DType.F32, DType.F32)


def out_groups(problem: ConvProblem, is_gc2: bool = False) -> set[int]:
    methods = find_methods(problem, GC2 if is_gc2 else GC200)
    return {m.out_group for m in methods if m.name.startswith("amp-1x1")}


def test_chips_of_16_units_can_leave_half_of_them_idle() -> None:
    assert out_groups(single(64)) == {8, 16}
    assert out_groups(single(64), is_gc2=True) == {8}


def test_results_of_few_channels_take_the_memory_of_a_group() -> None:
    problem = single(3)
    method = next(m for m in find_methods(problem, GC2) if m.out_group == 8)
    found = find_candidates(problem, method, 1, Serial())
    # One tile has all 64 rows, and 8 columns for the 3 that are wanted.
    assert np.array_equal(found.partials, [64 * 8])


def test_slic_vertices_keep_sums_of_a_set_of_groups_twice() -> None:
    problem = ConvProblem(
        batch=1,
        groups=4,
        field=(32, 32),
        kernel=(3, 3),
        in_channels=1,
        out_channels=1,
        stride=(1, 1),
        padding=(2, 2),
        dilation=(1, 1),
        dtype=DType.F16,
        partials=DType.F32,
        output=DType.F16,
    )
    slic = next(m for m in find_methods(problem, GC2) if m.name == "slic 4x1")

    def bytes_of(method: Method) -> int:
        setting = Setting(Form("", problem), method, GC2, Serial())
        only = find_candidates(problem, method, 1, Serial())
        return int(partials_bytes(only, setting)[0])

    # 32 x 32 sums of 4 bytes for 4 groups, all of them in one set.
    assert bytes_of(replace(slic, is_buffered=False)) == 16384
    assert bytes_of(slic) == 2 * 16384 + 200
