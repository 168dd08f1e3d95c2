"""A loop whose products in half precision are large enough for compiled kernels."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ipu import ipu_compiler, loops, scopes, utils

SIZE = 256


def squared(scale):
    x = tf.fill([SIZE, SIZE], scale)
    return tf.reduce_max(tf.matmul(x, x))


with scopes.ipu_scope("/device:IPU:0"):
    start = tf.constant(0.125, tf.float16)
    # 256 * 0.125 ** 2 = 4, 256 * 4 ** 2 = 4096; the next is cut off.
    four, last = [
        ipu_compiler.compile(lambda n=n: loops.repeat(n, squared, [start]))[0]
        for n in (1, 3)
    ]
utils.configure_ipu_system(utils.auto_select_ipus(utils.create_ipu_config(), 1))
with tf.Session() as sess:
    assert sess.run(four) == 4
    assert sess.run(last) == np.finfo(np.float16).max
