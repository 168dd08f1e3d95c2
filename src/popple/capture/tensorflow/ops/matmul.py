"""Matrix products: MatMul, the batched ones, and Einsum as permutations around them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from popple.capture.tensorflow.context import OpContext, Rule
from popple.capture.tensorflow.known import Known
from popple.capture.tensorflow.ops.forms import lower_generic
from popple.graph import TensorType


def lower_matmul(context: OpContext) -> Sequence[Known]:
    """Two matrices, either of them transposed or not."""
    left = _turned(context, 0, context.attr("transpose_a"), ".a")
    right = _turned(context, 1, context.attr("transpose_b"), ".b")
    return [context.emit_one("matmul", [left, right], context.result_type())]


def lower_batch_matmul(context: OpContext) -> Sequence[Known]:
    """Stacks of matrices; a stack of one is multiplied with each of the other."""
    left = _turned(context, 0, context.attr("adj_x"), ".x")
    right = _turned(context, 1, context.attr("adj_y"), ".y")
    result = context.result_type()
    # One large product uses the tiles better than many small ones with one weight.
    if len(context.type_of(right).shape) == 2 < len(result.shape):
        return [_rows_by_matrix(context, left, right, result)]
    batch = result.shape[:-2]
    sources = [_spread(context, name, batch) for name in (left, right)]
    return [context.emit_one("matmul", sources, result)]


def _turned(context: OpContext, index: int, is_turned: object, suffix: str) -> str:
    name = context.name(index)
    if not is_turned:
        return name
    rank = len(context.type_of(name).shape)
    order = (*range(rank - 2), rank - 1, rank - 2)
    return context.permute(name, order, suffix)


def _rows_by_matrix(
    context: OpContext, left: str, right: str, result: TensorType
) -> str:
    """All rows of a stack by one matrix: one product."""
    *batch, rows, inner = context.type_of(left).shape
    flat = context.reshape(left, (math.prod(batch) * rows, inner), ".rows")
    wide = TensorType(result.dtype, (math.prod(batch) * rows, result.shape[-1]))
    product = context.emit_one("matmul", [flat, right], wide, suffix=".product")
    return context.reshape(product, result.shape)


def _spread(context: OpContext, name: str, batch: tuple[int, ...]) -> str:
    """The stack repeated along the dimensions in which it has one matrix."""
    kind = context.type_of(name)
    if kind.shape[:-2] == batch:
        return name
    wide = (*(1,) * (len(batch) + 2 - len(kind.shape)), *kind.shape)
    name = context.reshape(name, wide, ".wide")
    full = TensorType(kind.dtype, (*batch, *kind.shape[-2:]))
    return context.emit_one("broadcast", [name], full, suffix=".spread", storage=name)


def lower_einsum(context: OpContext) -> Sequence[Known]:
    """A sum over products of elements: as a matrix product if there are two."""
    equation = str(context.attr("equation")).replace(" ", "")
    terms, result = equation.split("->")
    labels = terms.split(",")
    ranks = [len(context.input_type(i).shape) for i in range(len(labels))]
    labels, result = expand_dots(labels, result, ranks)
    if any(len(set(term)) != len(term) for term in labels):  # a diagonal
        return lower_generic(context)
    if len(labels) == 1:
        return [_reduced(context, context.name(0), labels[0], result)]
    if len(labels) > 2:
        return lower_generic(context)
    return [_product(context, labels, result)]


def expand_dots(
    labels: Sequence[str], result: str, ranks: Sequence[int]
) -> tuple[list[str], str]:
    """The equation with letters in place of `...`, aligned at the right."""
    # Characters that no equation may use for labels, which are ASCII letters.
    spare = "".join(map(chr, range(0x100, 0x100 + 16)))
    wide = ""
    expanded: list[str] = []
    for term, rank in zip(labels, ranks, strict=True):
        count = rank - len(term.replace("...", ""))
        dots = spare[len(spare) - count :] if "..." in term else ""
        wide = max(wide, dots, key=len)
        expanded.append(term.replace("...", dots))
    return expanded, result.replace("...", wide)


def _product(context: OpContext, labels: Sequence[str], result: str) -> str:
    """Two operands: what each has alone and the result lacks is summed first."""
    sizes = _sizes(context, labels)
    left = _shared(labels[0], labels[1] + result)
    right = _shared(labels[1], labels[0] + result)
    a = _reduced(context, context.name(0), labels[0], left, ".a")
    b = _reduced(context, context.name(1), labels[1], right, ".b")
    batch = [c for c in left if c in right and c in result]
    inner = [c for c in left if c in right and c not in result]
    rows = [c for c in left if c not in right]
    columns = [c for c in right if c not in left]
    a = _matrix(context, a, left, [batch, rows, inner], sizes, ".a")
    b = _matrix(context, b, right, [batch, inner, columns], sizes, ".b")
    shape = [math.prod(sizes[c] for c in part) for part in (batch, rows, columns)]
    kept = tuple(shape if batch else shape[1:])
    wide = TensorType(context.result_type().dtype, kept)
    product = context.emit_one("matmul", [a, b], wide, suffix=".product")
    made = [*batch, *rows, *columns]
    shaped = context.reshape(product, [sizes[c] for c in made], ".shaped")
    return context.permute(shaped, tuple(made.index(c) for c in result), "")


def _shared(term: str, others: str) -> str:
    """The labels of a term that something else mentions."""
    return "".join(label for label in term if label in others)


def _sizes(context: OpContext, labels: Sequence[str]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for index, term in enumerate(labels):
        shape = context.input_type(index).shape
        for label, size in zip(term, shape, strict=True):
            # A dimension of 1 may stand for one that is broadcast.
            sizes[label] = max(size, sizes.get(label, 1))
    return sizes


def _matrix(
    context: OpContext,
    name: str,
    labels: str,
    parts: Sequence[Sequence[str]],
    sizes: Mapping[str, int],
    suffix: str,
) -> str:
    """The operand as [batch, rows, columns], without batch where there is none."""
    flat = [label for part in parts for label in part]
    moved = context.permute(name, tuple(labels.index(c) for c in flat), suffix)
    shape = [math.prod(sizes[c] for c in part) for part in parts]
    return context.reshape(moved, shape if parts[0] else shape[1:], f"{suffix}.matrix")


def _reduced(
    context: OpContext, name: str, labels: str, result: str, suffix: str = ""
) -> str:
    """One operand summed over the labels that the result lacks, in its order."""
    kind = context.type_of(name)
    dims = tuple(i for i, label in enumerate(labels) if label not in result)
    if dims:
        kept = tuple(size for i, size in enumerate(kind.shape) if i not in dims)
        reduced = TensorType(kind.dtype, kept)
        attrs = {"dims": dims}
        name = context.emit_one(
            "reduce_sum", [name], reduced, suffix=f"{suffix}.sum", attrs=attrs
        )
    left = [label for label in labels if label in result]
    return context.permute(name, tuple(left.index(label) for label in result))


RULES: dict[str, Rule] = {
    "MatMul": lower_matmul,
    "BatchMatMul": lower_batch_matmul,
    "BatchMatMulV2": lower_batch_matmul,
    "BatchMatMulV3": lower_batch_matmul,
    "Einsum": lower_einsum,
}
