"""SDK 2.1 to 3.0: Keras' optimiser that averages gradients over two replicas."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu.keras.optimizers import CrossReplicaOptimizer
from tensorflow.python.ipu.keras.optimizers import cross_replica_optimizer as module

assert module.CrossReplicaOptimizer is CrossReplicaOptimizer
config = ipu.config.IPUConfig()
config.auto_select_ipus = 2
config.configure_ipu_system()
x = np.arange(8, dtype=np.float32).reshape(8, 1) / 8
data = tf.data.Dataset.from_tensor_slices(x).batch(1, drop_remainder=True)
strategy = ipu.ipu_strategy.IPUStrategy(enable_dataset_iterators=True)
with strategy.scope():
    w = tf.Variable([[1.0]])
    optimizer = CrossReplicaOptimizer(tf.keras.optimizers.SGD(0.5))

    @tf.function(experimental_compile=True)
    def program(iterator):
        for _ in tf.range(4):
            batch = next(iterator)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.matmul(batch, w) - 2 * batch))
            gradients = tape.gradient(loss, [w])
            optimizer.apply_gradients(zip(gradients, [w], strict=True))

    strategy.run(program, args=[iter(data)])
assert optimizer.get_config()["name"] == "CrossReplicaOptimizer"
expected = 1.0
for pair in x.reshape(4, 2):  # one element for each replica
    # Under a strategy Keras adds up the gradients of replicas, averaged or not.
    expected -= 0.5 * np.sum(2 * (expected * pair - 2 * pair) * pair)
np.testing.assert_allclose(w.numpy(), [[expected]], rtol=1e-4)
print("averaged")
