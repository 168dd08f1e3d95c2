"""`tensorflow.contrib`, as far as published programs for the IPU use it.

TensorFlow 2 has dropped it. What stands here is made of what replaced it; every other
name is refused, with what to use if that is known.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from popple import errors as _errors

__all__ = [
    "SERVED",
    "ContribImportError",
    "ContribNameError",
    "absent",
    "absent_module",
]

SERVED = ("compiler", "data", "framework", "ipu", "layers", "opt", "rnn", "util")

# What programs of the time used most, and what it is today.
_SUCCESSORS: Mapping[str, str] = {
    "cudnn_rnn": "ipu_tensorflow_addons.v1.layers.PopnnLSTM",
    "distribute": "tf.distribute",
    "eager": "tf.enable_eager_execution and tf.GradientTape",
    "estimator": "tf.estimator",
    "learn": "tf.estimator",
    "lookup": "tf.lookup",
    "metrics": "tf.metrics",
    "predictor": "tf.saved_model.load",
    "saved_model": "tf.saved_model",
    "seq2seq": "the package tensorflow_addons (tfa.seq2seq)",
    "slim": "the package tf_slim",
    "summary": "tf.summary",
    "tpu": "tensorflow.python.ipu.ipu_estimator",
    "training": "tf.train and tf.data",
    "layers.avg_pool2d": "tf.layers.average_pooling2d",
    "layers.batch_norm": "tf.layers.batch_normalization",
    "layers.conv2d": "tf.layers.conv2d",
    "layers.dropout": "tf.layers.dropout",
    "layers.embed_sequence": "tf.nn.embedding_lookup",
    "layers.flatten": "tf.layers.flatten",
    "layers.fully_connected": "tf.layers.dense",
    "layers.max_pool2d": "tf.layers.max_pooling2d",
    "opt.AdamWOptimizer": "ipu_tensorflow_addons.keras.optimizers",
    "rnn.LayerNormBasicLSTMCell": "tf.nn.rnn_cell.LSTMCell",
}


class ContribNameError(_errors.UsageError, AttributeError):
    """A name of `tf.contrib` that Popple does not serve."""


class ContribImportError(_errors.UsageError, ImportError):
    """A module of `tf.contrib` that Popple does not serve."""


def absent(name: str) -> ContribNameError:
    """The error for a name below `tf.contrib`, `layers.conv2d` for example."""
    return ContribNameError(_what(name), remedy=_remedy(name))


def absent_module(name: str) -> ContribImportError:
    """The error for a module below `tf.contrib`, `slim` for example."""
    return ContribImportError(_what(name), remedy=_remedy(name))


def _what(name: str) -> str:
    return f"tf.contrib.{name} went with TensorFlow 1, and Popple does not have it."


def _remedy(name: str) -> str:
    successor = _SUCCESSORS.get(name) or _SUCCESSORS.get(name.partition(".")[0])
    return f"Use {successor}." if successor else "Use a name of tf.compat.v1."


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in SERVED:
        raise absent(name)
    return importlib.import_module(f".{name}", __name__)


def __dir__() -> list[str]:
    return sorted(SERVED)
