"""Keras layers for the IPU; on the host they compute what the stock layers do."""

from .ctc import CTCInferenceLayer, CTCLoss, CTCPredictionsLayer
from .dense import SerialDense
from .dropout import Dropout
from .effective_transformer import EffectiveTransformer
from .embedding import Embedding
from .ipu_layer import IPULayer
from .marks import AssumeEqualAcrossReplicas, RecomputationCheckpoint
from .normalization import (
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
)
from .recurrent import GRU, LSTM

GroupNorm = GroupNormalization
InstanceNorm = InstanceNormalization
LayerNorm = LayerNormalization
PopnnGRU = GRU
PopnnLSTM = LSTM

__all__ = [
    "GRU",
    "LSTM",
    "AssumeEqualAcrossReplicas",
    "CTCInferenceLayer",
    "CTCLoss",
    "CTCPredictionsLayer",
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
