"""Forms: equivalent shapes of one problem, among which the search chooses.

In: a ConvProblem. Out: the same products as other convolutions: matrix rows instead of
a field (flatten), operands exchanged (swap), kernel positions made input channels
(expand) or, where there is one field position, output channels (spread), several conv
groups computed as one with zeros in between (combine).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from popple.plan.conv.problem import ConvProblem, Dims

_COMBINED_CHANNELS = 16


@dataclass(frozen=True)
class Form:
    """A problem to search splits for, and what it takes to get there.

    `copied_inputs` and `copied_weights` are elements of the transformed operands that
    a copy writes before the convolution; views cost nothing. `is_swapped` says that
    the problem's field is the op's kernel operand.
    """

    name: str
    problem: ConvProblem
    is_swapped: bool = False
    copied_inputs: int = 0
    copied_weights: int = 0


def find_forms(problem: ConvProblem) -> tuple[Form, ...]:
    """All forms worth searching: as it stands first, but for a matrix product."""
    return tuple(_all_forms(problem))


def _all_forms(problem: ConvProblem) -> Iterator[Form]:
    forms = (Form("", problem), *_expanded(problem), *_combined(problem))
    for form in (*forms, *_spread(problem)):
        if not form.problem.is_matmul:
            yield form
            continue
        flat = replace(form, problem=flatten(form.problem))
        # An outer product is the same either way round.
        both = (flat, swap(flat)) if flat.problem.in_channels > 1 else (flat,)
        # Of equally good plans of a matrix product the first to be found swaps.
        yield from both[::-1] if problem.purpose.is_product else both


def flatten(problem: ConvProblem) -> ConvProblem:
    """Batch and field of a kernel-1 convolution as the rows of a matrix."""
    return replace(
        problem,
        batch=1,
        field=(problem.num_rows,),
        kernel=(1,),
        stride=(1,),
        padding=(0,),
        padding_before=(0,),
        dilation=(1,),
        upsampling=(1,),
    )


def swap(form: Form) -> Form:
    """The form with its operands exchanged."""
    flat = form.problem
    # (A B)' is B' A': rows become columns and the other way round.
    problem = replace(flat, field=(flat.out_channels,), out_channels=flat.field[0])
    return Form(
        f"{form.name} swap".strip(),
        problem,
        is_swapped=True,
        copied_inputs=form.copied_weights,
        copied_weights=form.copied_inputs,
    )


def _expanded(problem: ConvProblem) -> Iterator[Form]:
    dims = range(len(problem.field))
    # Zeros between elements (upsampling) would become channels that are multiplied.
    wide = [d for d in dims if problem.kernel[d] > 1 and problem.upsampling[d] == 1]
    # One dimension or all of them, to search less.
    for count in sorted({1, len(wide)} - {0}):
        for chosen in combinations(wide, count):
            expanded = expand(problem, chosen)
            name = f"expand {','.join(map(str, chosen))}"
            yield Form(name, expanded, copied_inputs=expanded.num_inputs)


def expand(problem: ConvProblem, dims: Dims) -> ConvProblem:
    """Kernel positions of `dims` as input channels, the field gathered for each."""

    def changed(values: Dims, to: Dims) -> Dims:
        return tuple(to[d] if d in dims else v for d, v in enumerate(values))

    ones, zeros = (1,) * len(problem.field), (0,) * len(problem.field)
    return replace(
        problem,
        field=changed(problem.field, problem.out_field),
        kernel=changed(problem.kernel, ones),
        stride=changed(problem.stride, ones),
        padding=changed(problem.padding, zeros),
        padding_before=changed(problem.padding_before, zeros),
        dilation=changed(problem.dilation, ones),
        in_channels=problem.in_channels * math.prod(problem.kernel[d] for d in dims),
    )


def _combined(problem: ConvProblem) -> Iterator[Form]:
    widest = max(problem.in_channels, problem.out_channels)
    factor = min(_COMBINED_CHANNELS // widest, problem.groups)
    # With that many channels a unit is filled by one group.
    if factor < 2:
        return
    combined = replace(
        problem,
        groups=-(-problem.groups // factor),
        in_channels=problem.in_channels * factor,
        out_channels=problem.out_channels * factor,
    )
    yield Form(f"combine {factor}", combined, copied_weights=combined.num_weights)


def _spread(problem: ConvProblem) -> Iterator[Form]:
    """Dimensions of one field position: each output takes a kernel position of its own.

    The gradient of a convolution whose kernel covers a whole dimension has such a one.
    """
    dims = tuple(d for d in range(len(problem.field)) if _is_spread(problem, d))
    if not dims:
        return
    spread = spread_out(problem, dims)
    copied = problem.num_weights
    yield Form("spread", spread, copied_weights=copied)
    for form in _expanded(spread):
        yield replace(form, name=f"spread {form.name}", copied_weights=copied)


def _is_spread(problem: ConvProblem, dim: int) -> bool:
    is_single = problem.field[dim] == 1 and problem.kernel[dim] > 1
    is_plain = problem.stride[dim] == 1 and problem.dilation[dim] == 1
    return is_single and is_plain and problem.out_field[dim] == problem.kernel[dim]


def spread_out(problem: ConvProblem, dims: Dims) -> ConvProblem:
    """Kernel positions of `dims` as output channels."""

    def changed(values: Dims, to: int) -> Dims:
        return tuple(to if d in dims else v for d, v in enumerate(values))

    return replace(
        problem,
        kernel=changed(problem.kernel, 1),
        padding=changed(problem.padding, 0),
        padding_before=changed(problem.padding_before, 0),
        upsampling=changed(problem.upsampling, 1),
        out_channels=problem.out_channels * math.prod(problem.kernel[d] for d in dims),
    )
