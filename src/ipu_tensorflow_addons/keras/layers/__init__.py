"""Keras layers for the IPU; on the host they compute what the stock layers do."""

from .assume_equal_across_replicas import AssumeEqualAcrossReplicas
from .ctc import CTCInferenceLayer, CTCLoss, CTCPredictionsLayer
from .dense import Dense, SerialDense
from .dropout import Dropout
from .effective_transformer import EffectiveTransformer
from .embedding_lookup import Embedding
from .f8_convert import ConvertFromF8, ConvertToF8
from .ipu_layer import IPULayer
from .normalization import (
    GroupNorm,
    GroupNormalization,
    InstanceNorm,
    InstanceNormalization,
    LayerNorm,
    LayerNormalization,
)
from .recomputation import RecomputationCheckpoint
from .rnn import GRU, LSTM, PopnnGRU, PopnnLSTM

__all__ = [
    "GRU",
    "LSTM",
    "AssumeEqualAcrossReplicas",
    "CTCInferenceLayer",
    "CTCLoss",
    "CTCPredictionsLayer",
    "ConvertFromF8",
    "ConvertToF8",
    "Dense",
    "Dropout",
    "EffectiveTransformer",
    "Embedding",
    "GroupNorm",
    "GroupNormalization",
    "IPULayer",
    "InstanceNorm",
    "InstanceNormalization",
    "LayerNorm",
    "LayerNormalization",
    "PopnnGRU",
    "PopnnLSTM",
    "RecomputationCheckpoint",
    "SerialDense",
]
