"""What a module found on a path of its own imports."""

import tensorflow.compat.v1 as tf
import tensorflow.contrib as contrib


def weights(shape):
    init = contrib.layers.xavier_initializer(seed=1)
    return tf.get_variable("w", shape, initializer=init)
