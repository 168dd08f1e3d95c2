"""Matrix products in pieces, and sums over segments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf

from ._tensors import Tensor, sizes, tensors


def serialized_matmul(
    a: Tensor,
    b: Tensor,
    serialization_factor: int,
    serialization_dimension: str,
    transpose_a: bool = False,
    transpose_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """`a @ b` as `serialization_factor` smaller products, one after the other.

    With `a` of shape `[.., m, k]` and `b` of shape `[.., k, n]` after transposition,
    `serialization_dimension` says which dimension is cut: `a_columns` (m),
    `a_rows_b_columns` (k) or `b_rows` (n).
    """
    factor = int(serialization_factor)
    if factor < 1:
        raise ValueError(f"serialization_factor is {factor}, and has to be at least 1.")
    for which, matrix in (("a", a), ("b", b)):
        if matrix.shape.rank < 2:
            raise ValueError(f"Expected tensor '{which}' to have a minimum rank of 2")
    if serialization_dimension not in _SERIALIZED:
        raise ValueError(
            f"Invalid serialization_dimension={serialization_dimension}, "
            f"expected one of: {', '.join(repr(key) for key in _SERIALIZED)}."
        )
    with tf.name_scope(name or "serialized_matmul"):
        left = tf.linalg.matrix_transpose(a) if transpose_a else a
        right = tf.linalg.matrix_transpose(b) if transpose_b else b
        return _SERIALIZED[serialization_dimension](left, right, factor)


def segment_sum(
    data: Tensor, segment_ids: Tensor, num_segments: int, name: str | None = None
) -> Tensor:
    """Row `i` of the result is the sum of the rows of `data` whose id is `i`.

    The ids must be sorted.
    """
    data, segment_ids = tensors(data, segment_ids)
    _check_segments(data, segment_ids)
    if num_segments < 1:
        raise ValueError(f"num_segments must be greater than 0; got {num_segments}")
    return tf.math.unsorted_segment_sum(data, segment_ids, num_segments, name=name)


def _check_segments(data: Tensor, segment_ids: Tensor) -> None:
    for name, tensor in (("data", data), ("segment_ids", segment_ids)):
        if not tensor.shape.is_fully_defined():
            raise ValueError(
                f"Shape of {name} must be fully defined; it is {tensor.shape}"
            )
    data.shape.with_rank_at_least(1)
    segment_ids.shape.assert_has_rank(1)
    if sizes(data)[0] != sizes(segment_ids)[0]:
        raise ValueError(
            f"segment_ids (shape {segment_ids.shape}) must have same length as axis 0 "
            f"of data (shape {data.shape})"
        )


def _by_a_columns(a: Tensor, b: Tensor, factor: int) -> Tensor:
    _check_divides(factor, sizes(a)[-2], "columns dimension of 'a'")
    parts = tf.split(a, factor, axis=-2)
    return tf.concat([tf.matmul(part, b) for part in parts], axis=-2)


def _by_b_rows(a: Tensor, b: Tensor, factor: int) -> Tensor:
    _check_divides(factor, sizes(b)[-1], "rows dimension of 'b'")
    parts = tf.split(b, factor, axis=-1)
    return tf.concat([tf.matmul(a, part) for part in parts], axis=-1)


def _by_a_rows_b_columns(a: Tensor, b: Tensor, factor: int) -> Tensor:
    if sizes(a)[-1] != sizes(b)[-2]:
        raise ValueError(
            f"'a' has {sizes(a)[-1]} columns and 'b' has {sizes(b)[-2]} rows: a "
            "product needs as many of the one as of the other."
        )
    _check_divides(factor, sizes(a)[-1], "rows dimension of 'a'")
    lefts, rights = tf.split(a, factor, axis=-1), tf.split(b, factor, axis=-2)
    return tf.add_n([tf.matmul(x, y) for x, y in zip(lefts, rights, strict=True)])


def _check_divides(factor: int, size: int, what: str) -> None:
    if size % factor:
        raise ValueError(
            f"Expected 'serialization_factor' ({factor}) to divide the {what} ({size})."
        )


_SERIALIZED: dict[str, Callable[[Tensor, Tensor, int], Any]] = {
    "a_columns": _by_a_columns,
    "a_rows_b_columns": _by_a_rows_b_columns,
    "b_rows": _by_b_rows,
}
