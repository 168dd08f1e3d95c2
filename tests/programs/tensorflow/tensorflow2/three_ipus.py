"""IPUConfig of SDK 2.1 on: any number of IPUs up to all, each of them a replica."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

config = ipu.config.IPUConfig()
config.auto_select_ipus = 3
config.configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategy()


@tf.function(jit_compile=True)
def summed(x):
    return ipu.cross_replica_ops.cross_replica_sum(x * x)


with strategy.scope():
    found = strategy.run(summed, [tf.constant([1.0, 2.0])])
np.testing.assert_allclose(found, [3.0, 12.0])
config.auto_select_ipus = 17
ipu.config.reset_ipu_configuration()
text = ""
try:
    config.configure_ipu_system()
except tf.errors.FailedPreconditionError as error:
    text = error.message
assert "no device has 17" in text
