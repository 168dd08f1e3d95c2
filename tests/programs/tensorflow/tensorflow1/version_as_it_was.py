"""A program makes sure of its TensorFlow; a library learns which one it really has."""

import json
import sys

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as v1
from tensorflow import __version__ as version
from tensorflow.python import ipu

assert [face.__version__[:5] for face in (tf, v1)] == ["1.15."] * 2
assert version[:5] == "1.15."
assert [face.VERSION[:5] for face in (tf, v1)] == ["1.15."] * 2
# What an installed package does when it is imported.
library = compile("seen = [m.__version__ for m in modules]", json.__file__, "exec")
names = {"modules": [tf]}
exec(library, names)
true = sys.modules["tensorflow.compat.v2"].__version__
assert names["seen"] == [true] != [version]

x = tf.placeholder(tf.float32, [2])
with ipu.scopes.ipu_scope("/device:IPU:0"):
    out = ipu.ipu_compiler.compile(lambda x: x * 2.0, [x])
utils = ipu.utils
utils.configure_ipu_system(utils.auto_select_ipus(utils.create_ipu_config(), 1))
with tf.Session() as sess:
    np.testing.assert_array_equal(sess.run(out, {x: [1, 2]}), [[2, 4]])
