"""Copies of many runs of rows between two tensors.

A slice is a number of rows, where they start in the source and where they go in the
destination. Slices are copied in order, so a later one overwrites an earlier one.
"""

from __future__ import annotations

import tensorflow.compat.v2 as tf

from ._tensors import Tensor, sizes, tensors


def sequence_slice(
    dst: Tensor,
    src: Tensor,
    num_elems: Tensor,
    src_offsets: Tensor,
    dst_offsets: Tensor,
    zero_unused: bool,
) -> Tensor:
    """`dst` with `num_elems[i]` rows of `src` written at `dst_offsets[i]`, for all i.

    Rows of `dst` that no slice reaches become zero if `zero_unused`.
    """
    dst, src = tensors(dst, src)
    slices = tensors(num_elems, src_offsets, dst_offsets)
    _check_slices("num_elems, src_offsets and dst_offsets", slices)
    _check_rows(src, dst)
    return _slice(dst, src, slices, zero_unused)


def sequence_slice_unpack(
    src: Tensor, num_elems: Tensor, src_offsets: Tensor, total_elements: int
) -> Tensor:
    """The slices of `src` one after the other, in `total_elements` rows."""
    src, num_elems, src_offsets = tensors(src, num_elems, src_offsets)
    _check_slices("num_elems and src_offsets", [num_elems, src_offsets])
    slices = [num_elems, src_offsets, _running_offsets(num_elems)]
    empty = tf.zeros([total_elements, *sizes(src)[1:]], src.dtype)
    return _slice(empty, src, slices, zero_unused=True)


def sequence_slice_pack(
    dst: Tensor,
    src: Tensor,
    num_elems: Tensor,
    dst_offsets: Tensor,
    zero_unused: bool,
) -> Tensor:
    """`dst` with the rows of `src`, which lie one slice after the other, written in."""
    dst, src, num_elems, dst_offsets = tensors(dst, src, num_elems, dst_offsets)
    _check_slices("num_elems and dst_offsets", [num_elems, dst_offsets])
    _check_rows(src, dst)
    slices = [num_elems, _running_offsets(num_elems), dst_offsets]
    return _slice(dst, src, slices, zero_unused)


def _running_offsets(num_elems: Tensor) -> Tensor:
    return tf.cumsum(num_elems, exclusive=True)


def _slice(dst: Tensor, src: Tensor, slices: list[Tensor], zero_unused: bool) -> Tensor:
    """Ask of every row of `dst` which slice wrote it last, and fetch that row."""
    count, source, target = (tf.cast(x, tf.int32) for x in slices)
    row = tf.range(sizes(dst)[0])[:, tf.newaxis]
    covers = tf.logical_and(row >= target, row < target + count)
    order = tf.range(1, tf.shape(count)[0] + 1)
    last = tf.reduce_max(tf.where(covers, order, 0), axis=1)
    chosen = tf.maximum(last - 1, 0)
    origin = row[:, 0] - tf.gather(target, chosen) + tf.gather(source, chosen)
    origin = tf.clip_by_value(origin, 0, sizes(src)[0] - 1)
    copied = tf.reshape(last > 0, [-1] + [1] * (dst.shape.rank - 1))
    rest = tf.zeros_like(dst) if zero_unused else dst
    return tf.where(copied, tf.gather(src, origin), rest)


def _check_slices(names: str, slices: list[Tensor]) -> None:
    shapes = {tuple(sizes(x)) for x in slices}
    if len(shapes) != 1 or any(x.shape.rank != 1 or not sizes(x)[0] for x in slices):
        raise ValueError(
            f"{names} must have matching, nonzero shapes of rank 1; "
            f"got {', '.join(str(x.shape) for x in slices)}"
        )


def _check_rows(src: Tensor, dst: Tensor) -> None:
    if sizes(src)[1:] != sizes(dst)[1:]:
        raise ValueError(
            f"src and dst inner shapes must match; got {src.shape} and {dst.shape}"
        )
