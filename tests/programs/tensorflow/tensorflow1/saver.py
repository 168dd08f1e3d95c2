"""Saver, checkpoint readers, and the profiling idiom of SDK 1.2."""

import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow import pywrap_tensorflow
from tensorflow.compiler.plugin.poplar.ops import gen_ipu_ops
from tensorflow.python import ipu

with tf.device("cpu"):
    events = gen_ipu_ops.ipu_event_trace()


def net():
    w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
    with tf.control_dependencies([tf.assign_add(w, [1.0, 2.0])]):
        return tf.to_float(w.read_value())


with ipu.scopes.ipu_scope("/device:IPU:0"):
    (out,) = ipu.ipu_compiler.compile(net)
opts = ipu.utils.create_ipu_config(profiling=True, profile_execution=True)
opts = ipu.utils.select_ipus(opts, [0])
ipu.utils.configure_ipu_system(opts)
saver = tf.train.Saver()
path = os.path.join(tempfile.mkdtemp(), "model.ckpt")
with tf.Session(config=tf.ConfigProto()) as sess:
    sess.run(tf.global_variables_initializer())
    np.testing.assert_array_equal(sess.run(out), [2.0, 3.0])
    saver.save(sess, path)
    sess.run(out)
    saver.restore(sess, path)
    np.testing.assert_array_equal(sess.run(out), [3.0, 5.0])
    text = ipu.utils.extract_all_strings_from_event_trace(sess.run(events))
assert isinstance(text, str)
reader = pywrap_tensorflow.NewCheckpointReader(path)
np.testing.assert_array_equal(reader.get_tensor("w"), [2.0, 3.0])
