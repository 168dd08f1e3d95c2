"""The add-ons: their layers and optimisers against those of Keras."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python.ipu.ops import f8_ops  # noqa: E402

from ipu_tensorflow_addons.keras import layers, optimizers  # noqa: E402
from ipu_tensorflow_addons.v1 import layers as v1_layers  # noqa: E402

keras = tf.keras
RANDOM = np.random.default_rng(7)
SEQUENCES = RANDOM.normal(size=[2, 5, 3]).astype(np.float32)


def test_an_embedding_is_a_table_of_rows() -> None:
    layer = layers.Embedding(6, 4, serialization_factor=2)
    rows = layer(tf.constant([[1, 5], [0, 1]]))
    np.testing.assert_array_equal(rows[0, 1], layer.embeddings[5])
    assert layers.Embedding.from_config(layer.get_config()).serialization_factor == 2
    with pytest.raises(NotImplementedError, match="does not support mask_zero"):
        layers.Embedding(6, 4, mask_zero=True)
    with pytest.raises(ValueError, match="batch, input_length"):
        layers.Embedding(6, 4)(tf.constant([1]))


@pytest.mark.parametrize(("ours", "stock"), [("LSTM", {}), ("GRU", {"reset_after": 0})])
def test_recurrent_layers_are_those_of_keras(ours: str, stock: Any) -> None:
    layer = getattr(layers, ours)(4, seed=1, partials_dtype=tf.float32)
    output = layer(SEQUENCES)
    twin = getattr(keras.layers, ours)(4, **stock)
    twin.build(SEQUENCES.shape)
    twin.set_weights(layer.get_weights())
    np.testing.assert_allclose(output, twin(SEQUENCES), rtol=1e-5)
    with pytest.raises(NotImplementedError, match="recurrent_dropout"):
        getattr(layers, ours)(4, recurrent_dropout=0.5)


@pytest.mark.parametrize("returns", ["return_sequences", "return_state"])
def test_layers_that_reset_first_train_as_those_of_keras(returns: str) -> None:
    ours = layers.GRU(4, **{returns: True})
    twin = keras.layers.GRU(4, reset_after=False, **{returns: True})
    for layer in (ours, twin):
        layer.build(SEQUENCES.shape)
    twin.set_weights(ours.get_weights())

    @tf.function
    def gradients(layer: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = sum(tf.reduce_sum(t**2) for t in tf.nest.flatten(layer(SEQUENCES)))
        return tape.gradient(loss, layer.trainable_variables)

    for found, expected in zip(gradients(ours), gradients(twin), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_dropout_scales_what_it_keeps() -> None:
    layer = layers.Dropout(0.25, seed=[1, 2])
    ones = tf.ones([1000])
    np.testing.assert_array_equal(layer(ones, training=False), ones)
    kept = layer(ones, training=True).numpy()
    np.testing.assert_allclose(np.unique(kept), [0.0, 1 / 0.75], rtol=1e-6)
    assert 0.65 < np.mean(kept > 0) < 0.85  # 3/4, four deviations of 1000 draws


def attention(**options: Any) -> Any:
    """Two heads of size three that answer with four numbers."""
    sizes = {"num_attention_heads": 2, "attention_head_size": 3}
    return layers.EffectiveTransformer(4, 8, **sizes, **options)


def attended(layer: Any, *more: Any) -> Any:
    lengths = tf.constant([[2], [3]]), tf.constant([[1], [4]])
    sources, targets = SEQUENCES[:, :3, 0], SEQUENCES[:, :4, 1]
    return layer([sources, lengths[0], targets, lengths[1], *more], training=False)


def test_attention_does_not_see_padding() -> None:
    layer = attention(use_scale=True, layer_norm_output=False)
    output, context = attended(layer)
    assert output.shape == (2, 4)
    assert context.shape == (2, 3, 2, 3)
    # The only key of sequence 0 is followed by three of padding, which score zero.
    kernels = [layer.weights[2 * n + 1] for n in range(3)]
    source, target = SEQUENCES[0, 1, 0], SEQUENCES[0, 0, 1]
    query, key, value = (
        tf.reshape(number * kernel, [2, 3])
        for number, kernel in zip((source, target, target), kernels, strict=True)
    )
    score = tf.exp(tf.reduce_sum(query * key, axis=-1, keepdims=True))
    expected = value * score / (score + 3.0)
    np.testing.assert_allclose(context[0, 1], expected, rtol=1e-5)


def test_attention_masks_heads() -> None:
    _, context = attended(attention(), tf.constant([[True, False], [True, True]]))
    assert not context[0, :, 1].numpy().any()
    assert context[1, :, 1].numpy().any()
    with pytest.raises(ValueError, match="q_mask must have shape"):
        attended(attention(), tf.ones([2, 3]))


def test_attention_comes_back_from_its_configuration() -> None:
    layer = attention(qkv_activation="relu", output_dropout_prob=0.5)
    twin = layers.EffectiveTransformer.from_config(layer.get_config())
    assert twin.get_config() == layer.get_config()
    with pytest.raises(ValueError, match="greater than sequences_per_iter"):
        layers.EffectiveTransformer(4, 1, sequences_per_iter=2)


def test_layer_normalisation_over_any_dimensions() -> None:
    found = layers.LayerNormalization(axis=[1, 2])(SEQUENCES)
    expected = keras.layers.LayerNormalization(axis=[1, 2])(SEQUENCES)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_group_normalisation_by_strided_and_neighbouring_channels() -> None:
    inputs = RANDOM.normal(size=[2, 6, 4]).astype(np.float32)
    strided = layers.GroupNormalization(groups=2)(inputs).numpy()
    # Channels 0 and 2 are a group.
    group = inputs[:, :, ::2]
    mean, deviation = group.mean((1, 2)), np.sqrt(group.var((1, 2)) + 1e-3)
    expected = (group - mean[:, None, None]) / deviation[:, None, None]
    np.testing.assert_allclose(strided[:, :, ::2], expected, atol=1e-4)
    with pytest.raises(ValueError, match="not commensurate"):
        layers.GroupNormalization(groups=3)(inputs)


def test_instance_normalisation_is_of_each_channel() -> None:
    found = layers.InstanceNormalization()(SEQUENCES).numpy()
    np.testing.assert_allclose(found.mean(1), 0.0, atol=1e-5)


@pytest.mark.parametrize(
    "dimension", ["input_columns", "input_rows_kernel_columns", "kernel_rows"]
)
def test_a_serial_dense_layer_is_a_dense_layer(dimension: str) -> None:
    inputs = RANDOM.normal(size=[2, 3, 4]).astype(np.float32)
    layer = layers.SerialDense(6, 2, dimension, activation="relu")
    output = layer(inputs)
    expected = np.maximum(inputs @ layer.kernel.numpy(), 0.0)
    np.testing.assert_allclose(output, expected, atol=1e-5)


def test_marks_change_nothing() -> None:
    values = [tf.constant(1.0), tf.constant(2.0)]
    assert layers.RecomputationCheckpoint()(values) == values
    assert layers.AssumeEqualAcrossReplicas()(values[0]) == 1.0


def test_predictions_are_filled_up_with_blanks() -> None:
    # Three steps, one example, classes blank, 1 and 2: the best path says 1, 1, blank.
    scores = np.log([[[0.1, 0.8, 0.1]], [[0.1, 0.8, 0.1]], [[0.8, 0.1, 0.1]]])
    layer = layers.CTCPredictionsLayer(blank_index=0, beam_width=4)
    found = layer(tf.constant(scores, tf.float32), tf.constant([3]))
    np.testing.assert_array_equal(found, [[1, 0, 0]])


def trained(optimizer: Any, dtype: Any = tf.float32) -> Any:
    """A variable after three steps down the slope of its square."""
    variable = tf.Variable([1.0, -2.0], dtype=dtype)
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(variable**2)
        gradients = tape.gradient(loss, [variable])
        optimizer.apply_gradients(zip(gradients, [variable], strict=True))
    return variable.numpy()


def test_adam_is_that_of_keras() -> None:
    ours, stock = optimizers.AdamIpuOptimizer(0.1), keras.optimizers.legacy.Adam(0.1)
    np.testing.assert_allclose(trained(ours), trained(stock), rtol=1e-4)


def test_the_largest_corrected_moment_counts_in_amsgrad() -> None:
    optimizer = optimizers.AdamIpuOptimizer(1.0, 0.0, 0.5, 0.0, amsgrad=True)
    variable = tf.Variable(0.0)
    for gradient in (2.0, 0.0, 1.0):
        optimizer.apply_gradients([(tf.constant(gradient), variable)])
    # Second moments 4/2, 1, 1 corrected by 1/2, 3/4, 7/8: 4, 4/3, 8/7. The largest
    # stays 4, so the steps are 2/2, 0 and 1/2.
    np.testing.assert_allclose(variable, -1.5, rtol=1e-5)


@pytest.mark.parametrize("nesterov", [False, True])
def test_gradient_descent_is_that_of_keras(nesterov: bool) -> None:
    ours = optimizers.SGDIpuOptimizer(0.1, 0.9, nesterov, outline_apply_gradients=True)
    stock = keras.optimizers.legacy.SGD(0.1, 0.9, nesterov)
    np.testing.assert_allclose(trained(ours), trained(stock), rtol=1e-5)


def test_state_may_have_another_type() -> None:
    optimizer = optimizers.AdamIpuOptimizer(0.1, m_dtype=tf.float16, v_dtype=tf.float32)
    trained(optimizer, tf.float16)
    kinds = [variable.dtype for variable in optimizer.variables()[1:]]
    assert kinds == [tf.float16, tf.float32]
    assert optimizer.get_config()["m_dtype"] == "float16"


def test_lamb_scales_its_step_by_the_norms() -> None:
    optimizer = optimizers.LAMBIpuOptimizer(0.1, epsilon=0.0)
    variable = tf.Variable([3.0, -4.0])
    optimizer.apply_gradients([(tf.constant([1.0, -1.0]), variable)])
    # Corrected moments of a first gradient: +-1; norms 5 and sqrt(2).
    step = 0.1 * 5 / np.sqrt(2)
    np.testing.assert_allclose(variable, [3 - step, -4 + step], rtol=1e-5)


def test_lamb_leaves_names_out() -> None:
    optimizer = optimizers.LAMBIpuOptimizer(
        0.1, epsilon=0.0, exclude_from_layer_adaptation=["bias"]
    )
    bias = tf.Variable([3.0], name="bias")
    optimizer.apply_gradients([(tf.constant([2.0]), bias)])
    np.testing.assert_allclose(bias, [2.9], rtol=1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_layers_of_graphs_end_each_sequence_at_its_length(kind: str) -> None:
    inputs = SEQUENCES.transpose([1, 0, 2])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        layer = getattr(v1_layers, f"PopnnDynamic{kind}")(4)
        outputs, state = layer(inputs, tf.constant([5, 3]))
        state = getattr(state, "h", state)
        session.run(tf.compat.v1.global_variables_initializer())
        found, last = session.run([outputs, state])
    np.testing.assert_array_equal(last[0], found[4, 0])
    np.testing.assert_array_equal(last[1], found[2, 1])


MODULES = {
    "keras.layers": {
        "assume_equal_across_replicas": "AssumeEqualAcrossReplicas",
        "ctc": "CTCInferenceLayer CTCLoss CTCPredictionsLayer",
        "dense": "Dense SerialDense",
        "dropout": "Dropout",
        "effective_transformer": "EffectiveTransformer",
        "embedding_lookup": "Embedding",
        "f8_convert": "ConvertFromF8 ConvertToF8",
        "ipu_layer": "IPULayer",
        "normalization": "GroupNorm GroupNormalization InstanceNorm"
        " InstanceNormalization LayerNorm LayerNormalization",
        "recomputation": "RecomputationCheckpoint",
        "rnn": "GRU LSTM PopnnGRU PopnnLSTM",
    },
    "keras.optimizers": {
        "adam_optimizer": "AdamIpuOptimizer",
        "ipu_optimizer_base": "IpuOptimizerBase",
        "lamb_optimizer": "LAMBIpuOptimizer",
        "sgd_optimizer": "SGDIpuOptimizer",
    },
    "v1.layers": {
        "rnn_ops": "PopnnAUGRU PopnnDynamicGRU PopnnDynamicLSTM PopnnGRU PopnnLSTM",
    },
}


@pytest.mark.parametrize("package", MODULES)
def test_every_module_has_its_names(package: str) -> None:
    home = importlib.import_module(f"ipu_tensorflow_addons.{package}")
    for module, names in MODULES[package].items():
        found = importlib.import_module(f"{home.__name__}.{module}")
        for name in names.split():
            assert getattr(found, name) is getattr(home, name)


def test_eight_bits_and_back() -> None:
    metadata = f8_ops.create_metadata(f8_ops.Format.F143)
    data, byte = layers.ConvertToF8()(tf.constant([0.5, -3.0]), metadata)
    assert (data.dtype, byte) == (tf.uint8, metadata)
    numbers = layers.ConvertFromF8(dtype=tf.float32)([data, byte])
    np.testing.assert_array_equal(numbers, [0.5, -3.0])


def test_a_dense_layer_of_eight_bits() -> None:
    metadata = f8_ops.create_metadata(f8_ops.Format.F143)
    inputs = layers.ConvertToF8()(tf.constant([[1.0, 2.0]]), metadata)
    kernel = f8_ops.convert_to_f8(tf.constant([[3.0], [0.5]]), metadata).data
    layer = layers.Dense(
        1,
        kernel_scale=1,
        kernel_data_initializer=lambda shape, dtype: kernel,
        bias_initializer="ones",
    )
    output = layer(inputs)
    assert output.dtype == tf.float16
    np.testing.assert_array_equal(output, [[2 * (1 * 3.0 + 2 * 0.5) + 1]])
    with pytest.raises(ValueError, match="but it is 32"):
        layers.Dense(1, kernel_scale=32)


def test_a_dense_layer_of_wider_numbers_is_that_of_keras() -> None:
    layer = layers.Dense(2, kernel_initializer="ones")
    np.testing.assert_array_equal(layer(tf.constant([[1.0, 2.0]])), [[3.0, 3.0]])
    drawn = layers.Dense(40)
    drawn(layers.ConvertToF8()(tf.ones([1, 40]), 0))
    assert 0x80 not in drawn.get_weights()[0]  # which is no number


def test_weights_have_the_dimensions_that_are_normalised() -> None:
    layer = layers.LayerNormalization(axis=[1, -1])
    layer(SEQUENCES)
    assert layer.gamma.shape == layer.beta.shape == SEQUENCES.shape[1:]
    with pytest.raises(ValueError, match="unknown dimensions"):
        layers.LayerNormalization()(keras.Input([4]))


def test_settings_of_the_device_change_no_value() -> None:
    table = layers.Embedding(6, 4)
    indices = tf.constant([[1, 5]])
    sorted_rows = table(indices, inputs_are_sorted=True)
    np.testing.assert_array_equal(sorted_rows, table(indices))
    ones = tf.ones([2])
    kept = layers.Dropout(0.5, ref=False)(ones, training=False)
    np.testing.assert_array_equal(kept, ones)


@pytest.mark.parametrize("option", ["options", "options_bwd"])
@pytest.mark.parametrize("layer", [layers.LSTM, v1_layers.PopnnGRU])
def test_a_share_of_memory_below_nothing_is_refused(layer: Any, option: str) -> None:
    layer(4, **{option: {"availableMemoryProportion": 0.1}})
    with pytest.raises(tf.errors.InternalError, match="invalid_option"):
        layer(4, **{option: {"availableMemoryProportion": -1.0}})


def test_a_recurrent_layer_shows_its_weights() -> None:
    layer = layers.LSTM(4)
    layer(SEQUENCES)
    shapes = (layer.kernel.shape, layer.recurrent_kernel.shape, layer.biases.shape)
    assert shapes == ((3, 16), (4, 16), (16,))


def test_recurrent_layers_are_where_older_releases_had_them() -> None:
    from tensorflow.python import ipu
    from tensorflow.python.ipu import rnn_ops
    from tensorflow.python.ipu.ops import rnn_ops as rnn_ops_of_ops

    assert ipu.rnn_ops is rnn_ops is rnn_ops_of_ops
    assert rnn_ops.PopnnLSTM is v1_layers.PopnnLSTM
