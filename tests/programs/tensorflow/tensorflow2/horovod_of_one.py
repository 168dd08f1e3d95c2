"""ipu.horovod in one process: everything is as without it."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu import horovod as hvd
from tensorflow.python.ipu.horovod import ipu_multi_replica_strategy

hvd.init()
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
assert (hvd.size(), hvd.rank()) == (1, 0)
value = tf.constant([1.0, 2.0])
np.testing.assert_array_equal(hvd.allreduce(tensor=value, op=hvd.Sum), value)
np.testing.assert_array_equal(hvd.broadcast(tensor=value, root_rank=0), value)
strategy = ipu_multi_replica_strategy.IPUMultiReplicaStrategy()
with strategy.scope():
    w = tf.Variable(3.0)
doubled = strategy.run(tf.function(lambda x: w * x), [value])
np.testing.assert_array_equal(doubled, [3.0, 6.0])
