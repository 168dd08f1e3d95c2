"""All calls of SDK 1.4 that configure the system, one after another."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

utils = ipu.utils
opts = utils.create_ipu_config(
    profiling=True,
    profile_execution=True,
    use_poplar_cbor_report=True,
    max_report_size=100,
    scheduler_selection="Clustering",
    merge_infeed_io_copies=True,
    selection_order=utils.SelectionOrder.AUTO,
)
opts = utils.set_optimization_options(opts, combine_matmuls=True)
opts = utils.set_convolution_options(opts, {"partialsType": "half"})
opts = utils.set_matmul_options(opts, {"availableMemoryProportion": "0.3"})
opts = utils.set_pooling_options(opts, {"poolUseIntrospectiveMapping": "false"})
opts = utils.set_compilation_options(opts, {"debug.instrument": "true"})
opts = utils.set_norm_options(opts, use_stable_statistics=True)
opts = utils.set_recomputation_options(opts, allow_stateful_recompute=True)
opts = utils.set_floating_point_behaviour_options(opts, inv=False, esr=False)
opts = utils.set_gcl_options(opts, num_io_tiles=32, gcl_options={"useSync": "true"})
opts = utils.set_report_options(opts, report_options={"showVarStorage": "true"})
opts = utils.set_serialization_options(opts, "")
opts = utils.set_ipu_model_options(opts, compile_ipu_code=False)
opts = utils.auto_select_ipus(opts, [1])
utils.configure_ipu_system(opts)
x = tf.placeholder(tf.float32, [2])
with ipu.scopes.ipu_scope("/device:IPU:0"):
    (out,) = ipu.ipu_compiler.compile(lambda x: x / (x - 1.0), [x])
with tf.Session() as sess:
    np.testing.assert_allclose(sess.run(out, {x: [2.0, 3.0]}), [2.0, 1.5])
    stopped = ""
    try:
        sess.run(out, {x: [1.0, 3.0]})  # div0 is on: a bare call turns it on
    except tf.errors.OpError as error:
        stopped = str(error)
assert "zero" in stopped.lower() or "div" in stopped.lower(), stopped
