"""Operations that are functions of tensors: each against NumPy or its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402

from popple.graph import parse_notes  # noqa: E402


def some(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_every_module_has_two_names() -> None:
    assert ipu.ops.nn_ops is ipu.nn_ops
    assert "nn_ops" in dir(ipu.ops)
    with pytest.raises(AttributeError, match="no attribute 'nm_ops'"):
        ipu.ops.nm_ops  # noqa: B018


@pytest.mark.parametrize("approximate", [True, False])
def test_gelu_keeps_large_half_precision_numbers(approximate: bool) -> None:
    x = tf.constant([-250.0, 0.0, 250.0], tf.float16)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = ipu.nn_ops.gelu(x, approximate)
    assert y.numpy().tolist() == [0.0, 0.0, 250.0]
    assert tape.gradient(y, x).numpy().tolist() == [0.0, 0.5, 1.0]


def test_activations() -> None:
    x = np.array([-3.0, 0.0, 1.0, 3.0], np.float32)
    assert np.allclose(ipu.nn_ops.hard_sigmoid(x), [0, 0.5, 0.7, 1])
    assert np.allclose(ipu.nn_ops.swish(x), x / (1 + np.exp(-x)))
    softmax = np.exp(x) / np.exp(x).sum()
    assert np.allclose(ipu.nn_ops.softmax(x, stable=True), softmax)


def test_ctc_loss_of_one_step_is_the_labels_share() -> None:
    logits = np.log(np.array([[[0.2, 0.5, 0.3]]], np.float32))
    args = ([[1]], logits + 4, [1], [1])
    assert np.allclose(ipu.nn_ops.ctc_loss_v2(*args, blank_index=0), -np.log(0.5))
    # As log probabilities the 4 counts: nothing normalises them.
    loss = ipu.nn_ops.ctc_loss_with_log_probs(
        [[1]], tf.constant(logits + 4), [1], [1], blank_index=0
    )
    assert np.allclose(loss, -np.log(0.5) - 4)


def test_ctc_losses_are_not_narrowed() -> None:
    with pytest.raises(ValueError, match="out_dtype cannot be float16"):
        ipu.nn_ops.ctc_loss_v2([[1]], tf.zeros([1, 1, 3]), [1], [1], 0, tf.float16)


@pytest.mark.parametrize("blank", [0, 1, 2])
def test_beam_search_finds_the_only_likely_path(blank: int) -> None:
    labels = [c for c in range(3) if c != blank]
    path = [labels[0], blank, labels[1], labels[1]]
    logits = 20 * np.eye(3, dtype=np.float32)[path][:, np.newaxis]
    probs, lengths, decoded = ipu.nn_ops.ctc_beam_search_decoder(
        tf.constant(logits), [4], blank_index=blank
    )
    assert np.allclose(probs, 0, atol=1e-3)
    assert lengths.numpy().tolist() == [[2]]
    assert decoded.numpy().tolist() == [[[*labels, blank, blank]]]


@pytest.mark.parametrize("loss", ["sampled_softmax_loss", "nce_loss"])
def test_sampled_losses_of_given_samples(loss: str) -> None:
    weights, inputs = some(4, 3), some(2, 3, seed=1)
    labels, expected = [[0], [1]], np.ones([2, 1], np.float32)
    found = getattr(ipu.nn_ops, loss)(
        tf.constant(weights),
        tf.zeros([4]),
        tf.constant(labels),
        tf.constant(inputs),
        num_sampled=2,
        num_classes=4,
        sampled_values=([2, 3], expected, np.ones([2], np.float32)),
    )
    # The expected counts are 1, so nothing is subtracted from the logits.
    logits = np.stack([inputs @ weights[c] for c in (0, 1, 2, 3)], axis=1)
    chosen = np.stack([logits[[0, 1], [0, 1]], logits[:, 2], logits[:, 3]], axis=1)
    if loss == "nce_loss":
        signs = np.array([1, -1, -1])
        assert np.allclose(found, np.log1p(np.exp(-signs * chosen)).sum(1), rtol=1e-5)
    else:
        share = chosen[:, 0] - np.log(np.exp(chosen).sum(1))
        assert np.allclose(found, -share, rtol=1e-5)


def test_multi_conv_calls_the_function() -> None:
    double = ipu.nn_ops.multi_conv(lambda x, y: (2 * x, y))
    assert [t.numpy() for t in double(1.0, 2.0)] == [2.0, 2.0]
    refused = ipu.nn_ops.multi_conv(lambda x: x, options=["a"])
    with pytest.raises(TypeError, match="`options` of multi_conv are a `dict`"):
        refused(1.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"planTyp": "serial"}, "Unrecognised option 'planTyp'"),
        ({"planType": "both"}, "Invalid value 'both' for option 'planType'"),
        ({"perConvReservedTiles": "few"}, "Invalid value 'few'"),
    ],
)
def test_multi_conv_refuses_options_that_it_does_not_have(
    options: dict[str, str], words: str
) -> None:
    wrong = ipu.nn_ops.multi_conv(lambda x: x, options=options)
    for call in (wrong, tf.function(wrong)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            call(1.0)
    right = ipu.nn_ops.multi_conv(lambda x: x, options={"cycleBackOff": "0.2"})
    assert tf.function(right)(1.0).numpy() == 1.0


@pytest.mark.parametrize("plan_type", ["parallel", "serial"])
def test_options_of_multi_conv_are_on_its_convolutions(plan_type: str) -> None:
    options = {"planType": plan_type, "cycleBackOff": "0.5"}

    @ipu.nn_ops.multi_conv(options=options)
    def convolve(x: Any) -> Any:
        return tf.nn.conv2d(x, tf.ones((1, 1, 1, 1)), 1, "VALID")

    concrete = tf.function(convolve).get_concrete_function(tf.ones((1, 2, 2, 1)))
    (op,) = (op for op in concrete.graph.get_operations() if op.type == "Conv2D")
    marks = op.node_def.attr
    assert ("_ipu_multi_conv" in marks) == (plan_type == "parallel")
    if plan_type == "parallel":
        group = parse_notes(marks["_ipu_multi_conv"].s.decode()).multi_conv
        assert group is not None
        assert group.cycle_back_off == 0.5


def test_convolutions_side_by_side_do_not_need_each_other() -> None:
    def convolve(x: Any) -> Any:
        return tf.nn.conv2d(x, tf.ones((1, 1, 1, 1)), 1, "VALID")

    x = tf.ones((1, 2, 2, 1))
    beside = ipu.nn_ops.multi_conv(lambda x: (convolve(x), convolve(x)))
    assert len(tf.function(beside)(x)) == 2
    behind = ipu.nn_ops.multi_conv(lambda x: convolve(convolve(x)))
    with pytest.raises(tf.errors.FailedPreconditionError, match="independent of"):
        tf.function(behind)(x)


@pytest.mark.parametrize("dimension", ["a_columns", "a_rows_b_columns", "b_rows"])
@pytest.mark.parametrize("transposed", [False, True])
def test_serialized_matmul(dimension: str, transposed: bool) -> None:
    a, b = some(4, 6), some(6, 8, seed=1)
    args = (a.T, b.T) if transposed else (a, b)
    found = ipu.math_ops.serialized_matmul(
        *map(tf.constant, args), 2, dimension, transposed, transposed
    )
    assert np.allclose(found, a @ b, atol=1e-5)


@pytest.mark.parametrize(
    ("factor", "dimension", "message"),
    [
        (0, "b_rows", "at least 1"),
        (3, "a_columns", r"divide the columns dimension of 'a' \(4\)"),
        (1, "rows", "Invalid serialization_dimension"),
    ],
)
def test_serialized_matmul_refuses(factor: int, dimension: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ipu.math_ops.serialized_matmul(
            tf.zeros([4, 6]), tf.zeros([6, 8]), factor, dimension
        )


def test_segment_sum() -> None:
    total = ipu.math_ops.segment_sum([[1.0], [2.0], [4.0]], [0, 0, 2], 4)
    assert total.numpy().tolist() == [[3.0], [0.0], [4.0], [0.0]]
    with pytest.raises(ValueError, match="must have same length"):
        ipu.math_ops.segment_sum([1.0], [0, 0], 1)


def test_an_image_is_normalised_and_padded() -> None:
    image = np.arange(6, dtype=np.uint8).reshape(2, 3)
    found = ipu.image_ops.normalise_image(tf.constant(image), [1, 2, 3], [1, 2, 4], 2)
    # (0 * 2 - 1) * 1, (1 * 2 - 2) * 2, (2 * 2 - 3) * 4, padding; and so on.
    assert found.numpy().tolist() == [[-1, 0, 4, 0], [5, 12, 28, 0]]
    assert found.dtype == tf.float16
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 channels"):
        ipu.image_ops.normalise_image(tf.zeros([2, 2]), [1] * 3, [1] * 3)


def test_a_histogram_counts_from_each_level_on() -> None:
    values = np.array([-5, 0, 1, 1, 2], np.float32)
    levels = np.array([0, 1], np.float32)
    hist = ipu.statistics_ops.histogram(values, levels)
    assert hist.numpy().tolist() == [1, 1, 3]
    absolute = ipu.statistics_ops.histogram_update(hist, values, levels, True)
    assert absolute.numpy().tolist() == [1, 2, 7]
    normal = ipu.statistics_ops.histogram_normalize(hist)
    assert np.allclose(normal, [0.2, 0.2, 0.6])
    bins = ipu.statistics_ops.fixed_width_bins(values, 3)
    assert bins.numpy().tolist() == [-5, -1.5, 2]


def test_later_slices_overwrite_earlier_ones() -> None:
    rows = np.arange(6, dtype=np.float32)[:, np.newaxis]
    found = ipu.slicing_ops.sequence_slice(
        -tf.ones([6, 1]), rows, [3, 2], [0, 4], [1, 2], False
    )
    # Rows 0, 1, 2 go to 1, 2, 3; then rows 4, 5 go to 2, 3.
    assert found.numpy().ravel().tolist() == [-1, 0, 4, 5, -1, -1]


def test_unpacked_slices_pack_again() -> None:
    rows = np.arange(5, dtype=np.float32)[:, np.newaxis]
    flat = ipu.slicing_ops.sequence_slice_unpack(rows, [2, 1], [3, 0], 3)
    assert flat.numpy().ravel().tolist() == [3, 4, 0]
    packed = ipu.slicing_ops.sequence_slice_pack(
        tf.ones([5, 1]), flat, [2, 1], [3, 0], True
    )
    assert packed.numpy().ravel().tolist() == [0, 0, 0, 3, 4]


def test_slices_of_different_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="matching, nonzero shapes"):
        ipu.slicing_ops.sequence_slice_unpack(tf.zeros([2, 1]), [1, 1], [0], 2)


def test_dropout_scales_what_it_keeps() -> None:
    kept = ipu.rand_ops.dropout(tf.ones([64, 64]), rate=0.75, seed=[1, 2])
    assert set(np.unique(kept)) == {0.0, 4.0}
    assert abs(float(tf.reduce_mean(kept)) - 1) < 0.1
    again = ipu.rand_ops.dropout(tf.ones([64, 64]), rate=0.75, seed=[1, 2], ref=False)
    assert np.array_equal(kept, again)


def test_dropout_shares_draws_along_a_dimension() -> None:
    kept = ipu.rand_ops.dropout(tf.ones([8, 4]), noise_shape=[8, 1], seed=[0, 0])
    assert all(len(set(row)) == 1 for row in kept.numpy().tolist())
    with pytest.raises(ValueError, match="Dimension mismatch"):
        ipu.rand_ops.dropout(tf.ones([8, 4]), noise_shape=[2, 4])


@pytest.mark.parametrize("for_gradients", [True, False])
def test_a_barrier_changes_no_value(for_gradients: bool) -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        a, b = ipu.control_flow_ops.barrier([x, 3 * x], for_gradients)
        y = tf.reduce_sum(a * b)
    assert float(y) == 15.0
    assert tape.gradient(y, x).numpy().tolist() == [6.0, 12.0]


def test_an_outlined_function_is_the_function() -> None:
    @ipu.outlined_function
    def scaled(x: Any, y: Any) -> Any:
        return {"product": x * y, "none": None}

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        product = scaled(x, 2.0)["product"]
    assert (float(product), float(tape.gradient(product, x))) == (6.0, 2.0)


def test_embedding_lookup_has_a_dense_gradient() -> None:
    table = tf.Variable(some(4, 2))
    with tf.GradientTape() as tape:
        rows = ipu.embedding_ops.embedding_lookup(table, [[1, 1], [3, 9]], 2)
    assert np.allclose(rows, table.numpy()[[[1, 1], [3, 3]]])
    # Row 1 was read twice; 9 is no row, so only one of the others counts for row 3.
    gradient = tape.gradient(rows, table)
    assert gradient.numpy().tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]]
    with pytest.raises(ValueError, match=r"serialization_factor \(3\) must divide"):
        ipu.embedding_ops.embedding_lookup(table, [0], 3)


def test_shards_are_reduced_and_gathered() -> None:
    shards = [tf.constant([1.0, 2.0, 3.0]), tf.constant([4.0, 5.0])]
    ops = ipu.within_replica_ops
    reduced = ops.all_reduce(shards, "COLLECTIVE_OP_ADD")
    assert [r.numpy().tolist() for r in reduced] == [[5, 7, 3]] * 2
    pieces = ops.reduce_scatter(shards, "COLLECTIVE_OP_MAX")
    assert [p.numpy().tolist() for p in pieces] == [[4, 5], [3, 0]]
    gathered = ops.all_gather(shards)
    assert [g.numpy().tolist() for g in gathered] == [[1, 2, 3, 4, 5]] * 2


def test_shards_that_do_not_match_are_refused() -> None:
    one = tf.zeros([2])
    with pytest.raises(ValueError, match="duplicate"):
        ipu.within_replica_ops.all_gather([one, one])
    with pytest.raises(ValueError, match="same type"):
        ipu.within_replica_ops.all_gather([one, tf.zeros([2], tf.int32)])
    with pytest.raises(ValueError, match="no reduction"):
        ipu.within_replica_ops.all_reduce([one, tf.ones([2])], "SUM")


def test_a_buffered_data_set_ends_on_a_full_buffer() -> None:
    buffered = ipu.data.ops.dataset_ops.BufferDataset(tf.data.Dataset.range(5), 2)
    assert list(buffered.as_numpy_iterator()) == [0, 1, 2, 3]
