"""Reductions under the names that Horovod has for them."""

from __future__ import annotations

import tensorflow.compat.v2 as tf

__all__ = ["Adasum", "Average", "Sum"]

Average = tf.distribute.ReduceOp.MEAN
Sum = tf.distribute.ReduceOp.SUM
# Of one value it is the value, as the other two.
Adasum = tf.distribute.ReduceOp.SUM
