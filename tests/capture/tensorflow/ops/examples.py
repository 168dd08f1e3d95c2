"""Example calls of TensorFlow ops, with the kinds of ops they become.

One line for each: what is called, with which inputs, and what the Graph has then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tests.capture.tensorflow.tracing import ints, spec

Example = tuple[Callable[..., Any], tuple[tf.TensorSpec, ...], list[str]]

_X = (spec(4, 6),)
_XY = (spec(4, 6), spec(4, 6))
_IMAGE = (spec(2, 8, 8, 3),)
raw: Any = tf.raw_ops


def _call_host(x: Any) -> Any:
    result = tf.py_function(lambda value: value, [x], tf.float32)
    result.set_shape((4, 6))
    return result


EXAMPLES: dict[str, Example] = {
    "Relu": (tf.nn.relu, _X, ["relu"]),
    "Softsign": (tf.nn.softsign, _X, ["div"]),
    "AddV2": (lambda x, y: x + y, _XY, ["add"]),
    "Mul by a number": (lambda x: x * 2.0, _X, ["mul"]),
    "Mul broadcasts": (tf.multiply, (spec(4, 6), spec(6)), ["mul"]),
    "SquaredDifference": (tf.math.squared_difference, _XY, ["sub", "square"]),
    "AddN": (lambda x, y: tf.add_n([x, y, x]), _XY, ["add", "add"]),
    "Pow 2": (lambda x: x**2, _X, ["square"]),
    "Pow 3": (lambda x: x**3, _X, ["pow"]),
    "Xlogy": (tf.math.xlogy, _XY, ["log", "mul", "equal", "select"]),
    "Xlogy of a number": (lambda y: tf.math.xlogy(2.0, y), _X, ["log", "mul"]),
    "Xlog1py": (tf.math.xlog1py, _XY, ["log1p", "mul", "equal", "select"]),
    "Cast": (lambda x: tf.cast(x, tf.float16), _X, ["cast"]),
    "Cast to the same": (lambda x: tf.cast(x, tf.float64), _X, []),
    "Cholesky": (tf.linalg.cholesky, (spec(2, 4, 4),), ["cholesky"]),
    "MatrixTriangularSolve": (
        tf.linalg.triangular_solve,
        (spec(2, 4, 4), spec(2, 4, 3)),
        ["triangular_solve"],
    ),
    "A matrix solves for all": (
        lambda a, b: raw.MatrixTriangularSolve(matrix=a, rhs=b),
        (spec(4, 4), spec(2, 4, 3)),
        ["reshape", "broadcast", "triangular_solve"],
    ),
    "CTCLoss": (
        lambda x: raw.CTCLoss(
            inputs=x,
            labels_indices=np.zeros((6, 2), np.int64),
            labels_values=np.zeros(6, np.int32),
            sequence_length=np.full(2, 8, np.int32),
        ),
        (spec(8, 2, 5),),
        ["log_softmax", "ctc_loss"],
    ),
    "ClipByValue": (
        lambda x: raw.ClipByValue(t=x, clip_value_min=0.0, clip_value_max=1.0),
        _X,
        ["clamp"],
    ),
    "Clip by tensors": (
        lambda x, y: raw.ClipByValue(t=x, clip_value_min=y, clip_value_max=1.0),
        _XY,
        ["maximum", "minimum"],
    ),
    "SelectV2": (lambda x, y: tf.where(x > y, x, y), _XY, ["greater", "select"]),
    "Select a number": (lambda x: tf.where(x > 0, x, 0.0), _X, ["greater", "select"]),
    "BiasAdd": (tf.nn.bias_add, (spec(4, 6), spec(6)), ["add"]),
    "Bitcast": (lambda x: tf.bitcast(x, tf.int32), _X, ["reshape"]),
    "MatMul": (tf.matmul, (spec(4, 6), spec(6, 5)), ["matmul"]),
    "MatMul transposed": (
        lambda x, y: tf.matmul(x, y, transpose_b=True),
        _XY,
        ["permute", "matmul"],
    ),
    "BatchMatMulV2": (tf.matmul, (spec(2, 4, 6), spec(2, 6, 5)), ["matmul"]),
    "BatchMatMul of one": (
        tf.matmul,
        (spec(3, 2, 4, 6), spec(2, 6, 5)),
        ["reshape", "broadcast", "matmul"],
    ),
    "Sum": (lambda x: tf.reduce_sum(x, 1), _X, ["reduce_sum"]),
    "Mean kept": (
        lambda x: tf.reduce_mean(x, 1, keepdims=True),
        _X,
        ["reduce_mean", "reshape"],
    ),
    "ArgMax": (lambda x: tf.argmax(x, 1), _X, ["arg_max"]),
    "Cumsum": (lambda x: tf.cumsum(x, -1), _X, ["cumulative_sum"]),
    "L2Loss": (tf.nn.l2_loss, _X, ["square", "reduce_sum"]),
    "Softmax": (tf.nn.softmax, _X, ["softmax"]),
    "LogSoftmax": (tf.nn.log_softmax, _X, ["log_softmax"]),
    "MaxPool": (
        lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME"),
        _IMAGE,
        ["permute", "max_pool", "permute"],
    ),
    "AvgPool": (
        lambda x: tf.nn.avg_pool2d(x, 2, 2, "VALID"),
        _IMAGE,
        ["permute", "avg_pool", "permute"],
    ),
    "GatherV2": (lambda x, i: tf.gather(x, i), (spec(9, 4), ints(3)), ["gather"]),
    "Gather columns": (
        lambda x, i: tf.gather(x, i, axis=1),
        (spec(9, 4), ints(3)),
        ["permute", "gather", "permute"],
    ),
    "ScatterNd": (
        lambda i, x: tf.scatter_nd(i, x, (9, 4)),
        (ints(3, 1), spec(3, 4)),
        ["fill", "scatter_add"],
    ),
    "UnsortedSegmentSum": (
        lambda x, i: tf.math.unsorted_segment_sum(x, i, 5),
        (spec(9, 4), ints(9)),
        ["fill", "scatter_add"],
    ),
    "OneHot": (lambda i: tf.one_hot(i, 10), (ints(3),), ["one_hot"]),
    "Unique": (lambda i: tf.unique(i)[1], (ints(7),), ["sort"]),
    "Reshape": (lambda x: tf.reshape(x, (3, 8)), _X, ["reshape"]),
    "Transpose": (tf.transpose, _X, ["permute"]),
    "Transpose twice": (lambda x: tf.transpose(tf.transpose(x)), _X, []),
    "BroadcastTo": (lambda x: tf.broadcast_to(x, (3, 4, 6)), _X, ["broadcast"]),
    "Tile": (lambda x: tf.tile(x, (2, 1)), _X, ["tile"]),
    "Tile ones": (lambda x: tf.tile(x, (5, 1)), (spec(1, 6),), ["broadcast"]),
    "StridedSlice": (lambda x: x[1:3], _X, ["slice"]),
    "StridedSlice reversed": (lambda x: x[::-1], _X, ["slice", "copy"]),
    "Slice elsewhere": (
        lambda x, i: tf.slice(x, i, (2, 2)),
        (spec(4, 6), ints(2)),
        ["slice", "copy"],
    ),
    "Split": (lambda x: tf.split(x, 2, axis=1), _X, ["slice", "slice"]),
    "Unpack": (tf.unstack, (spec(2, 6),), ["slice", "slice"]),
    "ConcatV2": (lambda x, y: tf.concat([x, y], 1), _XY, ["concat"]),
    "Pack": (lambda x, y: tf.stack([x, y]), _XY, ["concat"]),
    "Pad": (lambda x: tf.pad(x, ((1, 1), (0, 0))), _X, ["pad"]),
    "ReverseV2": (lambda x: tf.reverse(x, [1]), _X, ["flip"]),
    "Roll": (lambda x: tf.roll(x, 1, 0), _X, ["roll"]),
    "MatrixBandPart": (
        lambda x: tf.linalg.band_part(x, 0, -1),
        (spec(6, 6),),
        ["triangle"],
    ),
    "MatrixDiagPart": (tf.linalg.diag_part, (spec(6, 6),), ["diagonal"]),
    "ResizeBilinear": (lambda x: tf.image.resize(x, (4, 4)), _IMAGE, ["resize"]),
    "SpaceToDepth": (lambda x: tf.nn.space_to_depth(x, 2), _IMAGE, ["copy"]),
    "Shape": (lambda x: tf.reshape(x, (tf.shape(x)[1], -1)), _X, ["reshape"]),
    "ZerosLike": (lambda x: x + tf.zeros_like(x), _X, ["add"]),
    "Fill large": (lambda x: tf.fill((99, 99), 1.0) + x, (spec(),), ["fill", "add"]),
    "Fill computed": (lambda x: tf.fill((3,), x), (spec(),), ["broadcast"]),
    "RandomUniform": (lambda x: x + tf.random.uniform((4, 6)), _X, ["uniform", "add"]),
    "RandomStandardNormal": (
        lambda: raw.RandomStandardNormal(shape=(4,), dtype=tf.float32),
        (),
        ["normal"],
    ),
    "StatelessRandom": (
        lambda: raw.StatelessRandomUniform(shape=(4,), seed=(1, 2)),
        (),
        ["uniform"],
    ),
    "TopKV2": (lambda x: tf.math.top_k(x, 2), _X, ["top_k"]),
    "SparseSoftmaxCrossEntropy": (
        lambda x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(y, x),
        (spec(4, 6), ints(4)),
        ["log_softmax", "nll_loss"],
    ),
    "SoftmaxCrossEntropy": (
        lambda x, y: tf.nn.softmax_cross_entropy_with_logits(y, x),
        _XY,
        ["log_softmax", "kl_div_loss"],
    ),
    "py_function": (
        _call_host,
        _X,
        ["stream_out", "stream_in"],
    ),
    "Print": (lambda x: (tf.print(x), x + 1)[1], _X, ["add"]),
}
