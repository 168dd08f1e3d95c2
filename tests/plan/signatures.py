"""A plausible signature for every op of the table, for tests that walk it."""

from __future__ import annotations

from popple.graph import OPS, Attr, DType, OpDef, Signature, TensorType

F16, F32, I32 = DType.F16, DType.F32, DType.I32

_FIELD = TensorType(F16, (4, 16, 8, 8))
_KERNEL = TensorType(F16, (32, 16, 3, 3))
_CONV_OUT = TensorType(F16, (4, 32, 8, 8))
_CONV_ATTRS: dict[str, Attr] = {
    "stride": (1, 1),
    "padding": (1, 1),
    "dilation": (1, 1),
    "groups": 1,
}
_MATRIX = TensorType(F16, (64, 96))
_ROW = TensorType(F16, (96,))
_STATS = TensorType(F32, (64,))
_INDICES = TensorType(I32, (48,))
_SCALAR = TensorType(F32, ())
_WEIGHT = TensorType(F32, (64, 96))


def f16(*shape: int) -> TensorType:
    """A half tensor."""
    return TensorType(F16, shape)


def f32(*shape: int) -> TensorType:
    """A float tensor."""
    return TensorType(F32, shape)


def make(
    kind: str,
    inputs: list[TensorType],
    outputs: list[TensorType],
    **attrs: Attr,
) -> Signature:
    """A signature in one line, its attributes complete."""
    complete = OPS[kind].schema.complete(attrs, kind, "")
    listed = tuple(sorted(complete.items()))
    return Signature(kind, tuple(inputs), tuple(outputs), listed)


def signature_of(kind: str) -> Signature:
    """A plausible use of the op."""
    op = OPS[kind]
    return _SPECIAL[kind] if kind in _SPECIAL else _by_family(op)


def _by_family(op: OpDef) -> Signature:
    kind, count = op.name, max(op.arity[0], 1 if op.arity[1] else 0)
    if op.family == "elementwise":
        return make(kind, [_MATRIX] * (op.arity[1] or count), [_MATRIX])
    if op.family == "reduce":
        return make(kind, [_MATRIX], [_STATS], dims=(1,))
    if op.family == "norm":
        full = [_MATRIX, _MATRIX] if kind.endswith("_grad") else [_MATRIX]
        outputs = [_MATRIX, _ROW, _ROW] if len(full) == 2 else [_MATRIX, _STATS, _STATS]
        return make(kind, [*full, _ROW, _ROW], outputs, num_statistics=64)
    if op.family == "softmax":
        return make(kind, [_MATRIX] * count, [_MATRIX], dim=1)
    if op.family == "loss":
        result = _MATRIX if kind.endswith("_grad") else _SCALAR
        return make(kind, [_MATRIX, TensorType(I32, (64,))], [result])
    if op.family == "update":
        outputs = [_WEIGHT] * (op.num_outputs or op.arity[0] - 1)
        return make(kind, [_WEIGHT] * op.arity[0], outputs)
    if op.family == "collective":
        return make(kind, [_WEIGHT], [_COLLECTIVE.get(kind, _WEIGHT)], replicas=4)
    return make(kind, [_MATRIX] * op.arity[0], [_MATRIX] * (op.num_outputs or 1))


_COLLECTIVE = {
    "reduce_scatter": TensorType(F32, (16, 96)),
    "all_gather": TensorType(F32, (256, 96)),
}
# Input of 6 steps, 2 samples and 8 channels; output, cell; weights of four gates.
_LAYER = [f32(6, 2, 8), f32(2, 20), f32(2, 20), f32(80, 8), f32(80, 20)]
_POOLED = TensorType(F16, (4, 16, 4, 4))
_SPECIAL: dict[str, Signature] = {
    "matmul": make("matmul", [f16(64, 96), f16(96, 128)], [f16(64, 128)]),
    "conv": make("conv", [_FIELD, _KERNEL], [_CONV_OUT], **_CONV_ATTRS),
    "conv_input_grad": make(
        "conv_input_grad", [_CONV_OUT, _KERNEL], [_FIELD], **_CONV_ATTRS
    ),
    "conv_weight_grad": make(
        "conv_weight_grad", [_CONV_OUT, _FIELD], [_KERNEL], **_CONV_ATTRS
    ),
    "cumulative_sum": make("cumulative_sum", [_MATRIX], [_MATRIX], dims=(1,)),
    "max_pool": make("max_pool", [_FIELD], [_POOLED], kernel=(2, 2)),
    "avg_pool": make("avg_pool", [_FIELD], [_POOLED], kernel=(2, 2)),
    "max_pool_grad": make("max_pool_grad", [_POOLED, _FIELD], [_FIELD], kernel=(2, 2)),
    "avg_pool_grad": make("avg_pool_grad", [_POOLED], [_FIELD], kernel=(2, 2)),
    "gather": make("gather", [f16(1000, 64), _INDICES], [f16(48, 64)]),
    "scatter": make("scatter", [f16(1000, 64), _INDICES, f16(48, 64)], [f16(1000, 64)]),
    "scatter_add": make("scatter_add", [f16(48, 64), _INDICES], [f16(1000, 64)]),
    "one_hot": make("one_hot", [_INDICES], [f16(48, 1000)]),
    "reshape": make("reshape", [_MATRIX], [f16(96, 64)]),
    "permute": make("permute", [_MATRIX], [f16(96, 64)], order=(1, 0)),
    "slice": make("slice", [_MATRIX], [f16(16, 96)], start=16),
    "broadcast": make("broadcast", [_ROW], [_MATRIX]),
    "diagonal": make("diagonal", [_MATRIX], [f16(64)]),
    "concat": make("concat", [_MATRIX, _MATRIX], [f16(128, 96)], dim=0),
    "pad": make("pad", [_MATRIX], [f16(64, 100)]),
    "tile": make("tile", [_MATRIX], [f16(128, 96)]),
    "resize": make("resize", [_POOLED], [_FIELD]),
    "update_slice": make("update_slice", [_MATRIX, f16(16, 96)], [_MATRIX]),
    "fill": make("fill", [], [_MATRIX]),
    "iota": make("iota", [], [TensorType(I32, (64,))]),
    "dropout": make("dropout", [_MATRIX], [_MATRIX, TensorType(DType.BOOL, (64, 96))]),
    "cast": make("cast", [_MATRIX], [_WEIGHT]),
    "sort": make("sort", [_MATRIX], [_MATRIX, TensorType(I32, (64, 96))], dim=1),
    "top_k": make("top_k", [_MATRIX], [f16(64, 5), TensorType(I32, (64, 5))], dim=1),
    "ctc_loss": make(
        "ctc_loss",
        [f32(20, 2, 8), TensorType(I32, (2, 5))],
        [f32(2), f32(20, 2, 8)],
    ),
    "cholesky": make("cholesky", [f32(2, 40, 40)], [f32(2, 40, 40)]),
    "triangular_solve": make(
        "triangular_solve", [f32(2, 40, 40), f32(2, 40, 3)], [f32(2, 40, 3)]
    ),
    "recurrent": make(
        "recurrent",
        [*_LAYER, f32(80)],
        [f32(6, 2, 20), f32(2, 20), f32(2, 20), f32(6, 2, 120)],
        cell="lstm",
        num_states=2,
    ),
    "recurrent_grad": make(
        "recurrent_grad",
        [f32(6, 2, 20), f32(2, 20), f32(2, 20), f32(6, 2, 120), *_LAYER],
        _LAYER,
        cell="lstm",
        num_states=2,
    ),
    "stream_in": make("stream_in", [], [_MATRIX]),
    "stream_out": make("stream_out", [_MATRIX], []),
    "remote_store": make("remote_store", [_MATRIX], []),
    "chip_copy": make("chip_copy", [_MATRIX], [_MATRIX], source=1),
    "stash": make("stash", [f16(3, 64, 96), _MATRIX], [f16(3, 64, 96)]),
    "restore": make("restore", [f16(3, 64, 96)], [_MATRIX]),
    "generic": make("generic", [_MATRIX, _ROW], [_MATRIX], framework_op="aten.lgamma"),
}
