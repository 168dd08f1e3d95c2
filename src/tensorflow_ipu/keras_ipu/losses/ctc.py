"""The CTC loss, where older releases had it."""

from .. import layers

__all__ = ["CTCLoss"]

CTCLoss = layers.CTCLoss
