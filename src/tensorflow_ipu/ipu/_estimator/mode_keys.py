"""What a model is built for."""

from __future__ import annotations


class ModeKeys:
    """The names of training, evaluation and prediction."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"
