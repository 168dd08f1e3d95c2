"""Attention between batches of padded sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.compat.v2 import keras

from .dropout import Dropout
from .ipu_layer import IPULayer
from .normalization import LayerNormalization

Tensor = Any


class EffectiveTransformer(IPULayer):
    """Attention with several heads, of sequences of numbers to other sequences.

    In: `[from, lengths of from, to, lengths of to]` and perhaps a mask
    `[sequences, heads]` of the heads to use. Out: the output layer's result for each
    sequence, and the context `[sequences, positions of from, heads, head size]`.

    Queries, keys and values of padding are zero. On the device sequences are processed
    in chunks from which the padding is taken out: `max_batch_size` sequences with as
    many elements as `sequences_per_iter` sequences without padding have. That changes
    no value.
    """

    def __init__(
        self,
        output_layer_size: int,
        max_batch_size: int,
        use_scale: bool = False,
        num_attention_heads: int = 1,
        attention_head_size: int = 1,
        sequences_per_iter: int = 1,
        qkv_activation: Any = None,
        attention_dropout_prob: float | None = None,
        output_activation: Any = None,
        output_dropout_prob: float | None = None,
        layer_norm_output: bool = True,
        embedding_initializer: Any = "glorot_uniform",
        embedding_bias_initializer: Any = "zeros",
        output_initializer: Any = "glorot_uniform",
        output_bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if sequences_per_iter > max_batch_size:
            raise ValueError(
                f"max_batch_size ({max_batch_size}) must be greater than "
                f"sequences_per_iter ({sequences_per_iter})."
            )
        self.output_layer_size = output_layer_size
        self.max_batch_size = max_batch_size
        self.use_scale = use_scale
        self.num_attention_heads = num_attention_heads
        self.attention_head_size = attention_head_size
        self.sequences_per_iter = sequences_per_iter
        self.qkv_activation = keras.activations.get(qkv_activation)
        self.attention_dropout_prob = attention_dropout_prob
        self.output_activation = keras.activations.get(output_activation)
        self.output_dropout_prob = output_dropout_prob
        self.layer_norm_output = layer_norm_output
        initializer = keras.initializers.get
        self.embedding_initializer = initializer(embedding_initializer)
        self.embedding_bias_initializer = initializer(embedding_bias_initializer)
        self.output_initializer = initializer(output_initializer)
        self.output_bias_initializer = initializer(output_bias_initializer)

    def build(self, input_shapes: Sequence[Any]) -> None:
        _check_count(input_shapes)
        self._query = self._embedding("query_layer")
        self._key = self._embedding("key_layer")
        self._value = self._embedding("value_layer")
        if self.use_scale:
            self._scale = self.add_weight(name="scale", shape=[1], initializer="ones")
        self._output = keras.layers.Dense(
            self.output_layer_size,
            activation=self.output_activation,
            kernel_initializer=self.output_initializer,
            bias_initializer=self.output_bias_initializer,
            name="output_layer",
        )
        self._attention_dropout = _dropout(self.attention_dropout_prob)
        self._output_dropout = _dropout(self.output_dropout_prob)
        self._norm = LayerNormalization() if self.layer_norm_output else None
        super().build(input_shapes)

    def _embedding(self, name: str) -> Any:
        return keras.layers.Dense(
            self.num_attention_heads * self.attention_head_size,
            activation=self.qkv_activation,
            kernel_initializer=_another(self.embedding_initializer),
            bias_initializer=_another(self.embedding_bias_initializer),
            name=name,
        )

    def call(
        self, inputs: Sequence[Tensor], training: bool | tf.Tensor = True
    ) -> tuple[tf.Tensor, ...]:
        """The output for each sequence, and the context."""
        _check_count(inputs)
        tensors = [tf.convert_to_tensor(tensor) for tensor in inputs]
        _check(*tensors[:4])
        self._check_mask(*tensors[4:], num_sequences=tensors[0].shape.as_list()[0])
        context = self._context(*tensors[:4])
        if len(tensors) > 4:
            context *= tf.cast(tensors[4], context.dtype)[:, :, tf.newaxis, tf.newaxis]
        if self._attention_dropout is not None:
            context = self._attention_dropout(context, training=training)
        context = tf.transpose(context, [0, 2, 1, 3])
        num_numbers = tensors[0].shape.as_list()[1] * self._query.units
        output = self._output(tf.reshape(context, [-1, num_numbers]))
        if self._output_dropout is not None:
            output = self._output_dropout(output, training=training)
        if self._norm is not None:
            output = self._norm(output, training=training)
        return output, context

    def _context(
        self, sources: Tensor, source_lengths: Tensor, targets: Tensor, lengths: Tensor
    ) -> Tensor:
        """The values as the queries see them: [sequences, heads, positions, size]."""
        query = self._heads(self._query, sources, source_lengths)
        key = self._heads(self._key, targets, lengths)
        value = self._heads(self._value, targets, lengths)
        scores = tf.matmul(query, key, transpose_b=True)
        if self.use_scale:
            scores *= self._scale
        return tf.matmul(tf.nn.softmax(scores), value)

    def _heads(self, embedding: Any, sequences: Tensor, lengths: Tensor) -> Tensor:
        """[sequences, heads, positions, size], with zeros instead of padding."""
        positions = sequences.shape.as_list()[1]
        numbers = tf.cast(sequences, self.compute_dtype)
        embedded = embedding(tf.reshape(numbers, [-1, positions, 1]))
        used = tf.sequence_mask(tf.reshape(lengths, [-1]), positions, embedded.dtype)
        shape = [-1, positions, self.num_attention_heads, self.attention_head_size]
        split = tf.reshape(embedded * used[:, :, tf.newaxis], shape)
        return tf.transpose(split, [0, 2, 1, 3])

    def _check_mask(self, *masks: Tensor, num_sequences: int | None) -> None:
        """Refuse a mask that is not one of the heads."""
        expected = [num_sequences, self.num_attention_heads]
        for mask in masks:
            if not mask.shape.is_compatible_with(expected):
                raise ValueError(
                    "q_mask must have shape [num_sequences, num_attention_heads], "
                    f"which is {expected}, but it has shape {mask.shape}."
                )

    def get_config(self) -> dict[str, Any]:
        activation = keras.activations.serialize
        initializer = keras.initializers.serialize
        return {
            **super().get_config(),
            "output_layer_size": self.output_layer_size,
            "max_batch_size": self.max_batch_size,
            "use_scale": self.use_scale,
            "num_attention_heads": self.num_attention_heads,
            "attention_head_size": self.attention_head_size,
            "sequences_per_iter": self.sequences_per_iter,
            "qkv_activation": activation(self.qkv_activation),
            "attention_dropout_prob": self.attention_dropout_prob,
            "output_activation": activation(self.output_activation),
            "output_dropout_prob": self.output_dropout_prob,
            "layer_norm_output": self.layer_norm_output,
            "embedding_initializer": initializer(self.embedding_initializer),
            "embedding_bias_initializer": initializer(self.embedding_bias_initializer),
            "output_initializer": initializer(self.output_initializer),
            "output_bias_initializer": initializer(self.output_bias_initializer),
        }


def _another(initializer: Any) -> Any:
    """One like it: an initializer without seed gives the same values every time."""
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    return type(initializer).from_config(initializer.get_config())


def _dropout(rate: float | None) -> Dropout | None:
    return None if rate is None else Dropout(rate)


def _check_count(inputs: Sequence[Any]) -> None:
    if len(inputs) not in (4, 5):
        raise ValueError(
            "EffectiveTransformer must take either four or five inputs, but got "
            f"{len(inputs)}: from, its lengths, to, its lengths, and a mask of heads."
        )


def _check(
    sources: Tensor, source_lengths: Tensor, targets: Tensor, lengths: Tensor
) -> None:
    """Refuse sequences that do not go together."""
    both = "from_sequences and to_sequences"
    if sources.shape.rank != targets.shape.rank:
        raise ValueError(
            f"{both} must be equal rank, but are {sources.shape} and {targets.shape}."
        )
    if sources.shape[0] != targets.shape[0]:
        raise ValueError(
            f"{both} must contain an equal number of sequences, but have "
            f"{sources.shape[0]} and {targets.shape[0]}."
        )
    shapes = (source_lengths.shape, lengths.shape)
    if shapes[0] != shapes[1] or shapes[0][0] != sources.shape[0]:
        raise ValueError(
            "from_sequence_lengths and to_sequence_lengths must have lengths equal to "
            f"the number of sequences provided, but have the shapes {shapes[0]} and "
            f"{shapes[1]} for {sources.shape[0]} sequences."
        )
    if sources.dtype != targets.dtype:
        raise ValueError(
            f"{both} must be equal types, but are {sources.dtype} and {targets.dtype}."
        )
