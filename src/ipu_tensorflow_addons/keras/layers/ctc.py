"""Connectionist temporal classification: its loss and its search for labels."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ipu.ops import nn_ops

from .ipu_layer import IPULayer


class CTCLoss(IPULayer):
    """The loss of labels, given data of shape [time, batch, classes]."""

    def __init__(
        self, blank_index: int = 0, from_logits: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.blank_index = blank_index
        self.from_logits = from_logits

    def call(
        self,
        labels: tf.Tensor,
        data: tf.Tensor,
        label_length: Any,
        data_length: Any,
        **kwargs: Any,
    ) -> tf.Tensor:
        """The loss of each example."""
        del kwargs
        loss = (
            nn_ops.ctc_loss_v2 if self.from_logits else nn_ops.ctc_loss_with_log_probs
        )
        return loss(labels, data, label_length, data_length, self.blank_index)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "blank_index": self.blank_index,
            "from_logits": self.from_logits,
        }


class CTCInferenceLayer(IPULayer):
    """The likeliest labels: their negative log probabilities, lengths and values."""

    def __init__(
        self,
        blank_index: int = 0,
        beam_width: int = 100,
        top_paths: int = 1,
        from_logits: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.blank_index = blank_index
        self.beam_width = beam_width
        self.top_paths = top_paths
        self.from_logits = from_logits

    def call(self, data: tf.Tensor, data_length: Any, **kwargs: Any) -> tf.Tensor:
        """Probabilities, lengths and labels of the `top_paths` best."""
        del kwargs
        search = nn_ops.ctc_beam_search_decoder_with_log_probs
        if self.from_logits:
            search = nn_ops.ctc_beam_search_decoder
        return search(
            data,
            data_length,
            beam_width=self.beam_width,
            top_paths=self.top_paths,
            blank_index=self.blank_index,
        )

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "blank_index": self.blank_index,
            "beam_width": self.beam_width,
            "top_paths": self.top_paths,
            "from_logits": self.from_logits,
        }


class CTCPredictionsLayer(CTCInferenceLayer):
    """The one likeliest label sequence of each example, filled up with blanks."""

    def call(self, data: tf.Tensor, data_length: Any, **kwargs: Any) -> tf.Tensor:
        """Labels of shape [batch, time]."""
        costs, lengths, labels = super().call(data, data_length, **kwargs)
        best = tf.argmin(costs, axis=1, output_type=tf.int32)
        chosen = tf.gather(labels, best, axis=1, batch_dims=1)
        length = tf.gather(lengths, best, axis=1, batch_dims=1)
        inside = tf.sequence_mask(length, tf.shape(chosen)[-1])
        return tf.where(inside, chosen, tf.cast(self.blank_index, chosen.dtype))
