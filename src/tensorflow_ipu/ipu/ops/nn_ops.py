"""Activations, sampled losses, and connectionist temporal classification (CTC)."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ops import nn_impl

from ._multi_conv import multi_conv as multi_conv
from ._tensors import Dtype, Tensor, sizes


def gelu(x: Tensor, approximate: bool = True, name: str | None = None) -> Tensor:
    """Gaussian error linear unit; by tanh if `approximate`, else by erf."""
    x = tf.convert_to_tensor(x)
    # The cube of a half precision number soon overflows in half precision.
    wide = tf.cast(x, tf.float32) if x.dtype == tf.float16 else x
    return tf.cast(tf.nn.gelu(wide, approximate=approximate, name=name), x.dtype)


def hard_sigmoid(x: Tensor, name: str | None = None) -> Tensor:
    """`0.2 x + 0.5`, cut to [0, 1]."""
    x = tf.convert_to_tensor(x)
    with tf.name_scope(name or "HardSigmoid"):
        line = tf.cast(0.2, x.dtype) * x + tf.cast(0.5, x.dtype)
        return tf.clip_by_value(line, tf.cast(0, x.dtype), tf.cast(1, x.dtype))


def swish(x: Tensor, name: str | None = None) -> Tensor:
    """`x * sigmoid(x)`."""
    with tf.name_scope(name or "Swish"):
        return tf.nn.silu(x)


def softmax(x: Tensor, stable: bool = False, name: str | None = None) -> Tensor:
    """Softmax over the last dimension, which is always the stable kind here."""
    return tf.nn.softmax(x, name=name)


_compute_sampled_logits = functools.partial(
    nn_impl._compute_sampled_logits, remove_accidental_hits=False
)
"""Logits and labels of the true and the sampled classes."""


def sampled_softmax_loss(
    weights: Tensor,
    biases: Tensor,
    labels: Tensor,
    inputs: Tensor,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: tuple[Tensor, Tensor, Tensor] | None = None,
    name: str = "sampled_softmax_loss",
    seed: int | None = None,
) -> Tensor:
    """Softmax loss over the true and `num_sampled` drawn classes, for each example."""
    logits, targets = _compute_sampled_logits(
        weights=weights,
        biases=biases,
        labels=labels,
        inputs=inputs,
        num_sampled=num_sampled,
        num_classes=num_classes,
        num_true=num_true,
        sampled_values=sampled_values,
        name=name,
        seed=seed,
    )
    return tf.nn.softmax_cross_entropy_with_logits(
        labels=tf.stop_gradient(targets), logits=logits
    )


def nce_loss(
    weights: Tensor,
    biases: Tensor,
    labels: Tensor,
    inputs: Tensor,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: tuple[Tensor, Tensor, Tensor] | None = None,
    name: str = "nce_loss",
) -> Tensor:
    """Noise-contrastive estimation loss for each example."""
    logits, targets = _compute_sampled_logits(
        weights=weights,
        biases=biases,
        labels=labels,
        inputs=inputs,
        num_sampled=num_sampled,
        num_classes=num_classes,
        num_true=num_true,
        sampled_values=sampled_values,
        name=name,
    )
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits)
    return tf.reduce_sum(losses, axis=1)


def ctc_loss_v2(
    labels: Tensor,
    logits: Tensor,
    label_length: Tensor,
    logit_length: Tensor,
    blank_index: int,
    out_dtype: Dtype | None = None,
    name: str | None = None,
) -> Tensor:
    """CTC loss of each sequence, from logits of shape [time, batch, classes]."""
    dtype = _loss_dtype("logits", logits, out_dtype)
    loss = _ctc_loss(labels, logits, label_length, logit_length, blank_index, name)
    return tf.cast(loss, dtype)


def ctc_loss_with_log_probs(
    labels: Tensor,
    data: Tensor,
    label_length: Tensor,
    data_length: Tensor,
    blank_index: int,
    out_dtype: Dtype | None = None,
    name: str | None = None,
) -> Tensor:
    """CTC loss of each sequence, from log probabilities [time, batch, classes]."""
    dtype = _loss_dtype("data", data, out_dtype)
    loss = _ctc_loss(labels, data, label_length, data_length, blank_index, name)
    # What the logits' normalisation took away, which is zero for true probabilities.
    # The gradient is the one with respect to logits, as the device computes it.
    steps = tf.sequence_mask(data_length, sizes(data)[0], tf.float32)
    total = tf.reduce_logsumexp(tf.cast(data, tf.float32), axis=2)
    excess = tf.reduce_sum(tf.transpose(total) * steps, axis=1)
    return tf.cast(loss - tf.stop_gradient(excess), dtype)


def _ctc_loss(
    labels: Tensor,
    logits: Tensor,
    label_length: Tensor,
    logit_length: Tensor,
    blank_index: int,
    name: str | None,
) -> Tensor:
    return tf.nn.ctc_loss(
        labels=labels,
        logits=tf.cast(logits, tf.float32),
        label_length=label_length,
        logit_length=logit_length,
        blank_index=blank_index,
        name=name,
    )


def _loss_dtype(what: str, data: Tensor, out_dtype: Dtype | None) -> Dtype:
    dtype = data.dtype if out_dtype is None else tf.as_dtype(out_dtype)
    if data.dtype == tf.float32 and dtype == tf.float16:
        raise ValueError(
            f"out_dtype cannot be float16 when dtype of {what} is float32."
        )
    return dtype


def ctc_beam_search_decoder(
    logits: Tensor,
    logits_lengths: Tensor,
    beam_width: int = 100,
    top_paths: int = 1,
    blank_index: int = -1,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The most likely labellings of each sequence, from logits [time, batch, classes].

    Returns their log probabilities and lengths, of shape [batch, top_paths], and the
    labels, of shape [batch, top_paths, time] and filled up with the blank.
    """
    num_steps, _, num_classes = logits.shape
    blank = blank_index % num_classes
    # TensorFlow's decoder wants the blank last.
    order = [c for c in range(num_classes) if c != blank] + [blank]
    with tf.name_scope(name or "ctc_beam_search"):
        paths, log_probs = tf.nn.ctc_beam_search_decoder(
            tf.gather(tf.cast(logits, tf.float32), order, axis=2),
            logits_lengths,
            beam_width=beam_width,
            top_paths=top_paths,
        )
        found = [_dense_path(path, num_steps, num_classes - 1) for path in paths]
        labels = tf.stack(found, axis=1)
        is_label = tf.not_equal(labels, num_classes - 1)
        lengths = tf.reduce_sum(tf.cast(is_label, tf.int32), axis=2)
        decoded = tf.gather(tf.constant(order, tf.int32), labels)
        return tf.cast(log_probs, logits.dtype), lengths, decoded


def ctc_beam_search_decoder_with_log_probs(
    log_probs: Tensor,
    input_lengths: Tensor,
    beam_width: int = 100,
    top_paths: int = 1,
    blank_index: int = -1,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Like :func:`ctc_beam_search_decoder`, from log probabilities."""
    return ctc_beam_search_decoder(
        log_probs, input_lengths, beam_width, top_paths, blank_index, name
    )


def _dense_path(path: Any, num_steps: int, blank: int) -> Tensor:
    dense = tf.cast(tf.sparse.to_dense(path, default_value=blank), tf.int32)
    missing = num_steps - tf.shape(dense)[1]
    filled = tf.pad(dense, [[0, 0], [0, missing]], constant_values=blank)
    return tf.ensure_shape(filled, [None, num_steps])
