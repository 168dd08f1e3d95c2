"""A program of several instances: all ways to train with PopDist, and what they give.

Started by poprun with a directory, in which every instance writes its results as JSON
to a file named after its number. Whatever the number of instances, replica r of all
replicas sees the same batches, so the results must be the same numbers.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.python import ipu
from tensorflow.python.ipu import distributed
from tensorflow.python.ipu.distributed import popdist_strategy

import popdist
import popdist.tensorflow
import popple
import popple_horovod

STEPS, BATCH, FEATURES = 4, 3, 5


def make_data() -> tuple[Any, Any]:
    """The batches of this instance's replicas, in the order its infeed deals them."""
    total = popdist.getNumTotalReplicas()
    first, count = popdist.getReplicaIndexOffset(), popdist.getNumLocalReplicas()
    random = np.random.default_rng(7)
    x = random.normal(size=(STEPS, total, BATCH, FEATURES)).astype(np.float32)
    y = random.normal(size=(STEPS, total, BATCH, 1)).astype(np.float32)
    mine = slice(first, first + count)
    return x[:, mine].reshape(-1, FEATURES), y[:, mine].reshape(-1, 1)


def make_dataset() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(make_data()).batch(
        BATCH, drop_remainder=True
    )


def configure() -> None:
    ipu.config.reset_ipu_configuration()
    config = ipu.config.IPUConfig()
    config.norms.experimental.distributed_batch_norm_replica_group_size = (
        popdist.getNumTotalReplicas()
    )
    popdist.tensorflow.set_ipu_config(config, ipus_per_replica=1)
    config.configure_ipu_system()


def fit() -> list[Any]:
    """Keras: accumulation, a norm over all replicas, metrics over all replicas."""
    with popdist_strategy.PopDistStrategy().scope():
        # Only the first instance's seed counts: its values are everyone's.
        seed = 1 + popdist.getInstanceIndex()
        first = keras.initializers.RandomUniform(seed=seed)
        model = keras.Sequential(
            [
                keras.layers.Dense(4, kernel_initializer=first),
                keras.layers.Reshape([2, 1, 2]),
                keras.layers.BatchNormalization(),
                keras.layers.Flatten(),
                keras.layers.Dense(1, kernel_initializer=first),
            ]
        )
        model.build((BATCH, FEATURES))
        model.set_gradient_accumulation_options(
            gradient_accumulation_steps_per_replica=2
        )
        model.set_replication_options(replicated_metric_reduction_method="mean")
        model.compile("sgd", "mse", steps_per_execution=STEPS)
        history = model.fit(make_dataset(), epochs=2, verbose=0)
        return [*model.get_weights(), history.history["loss"]]


def custom_loop() -> list[Any]:
    """`strategy.run` of a training step, and a reduction on the hosts."""
    strategy = popdist_strategy.PopDistStrategy()
    with strategy.scope():
        weights = tf.Variable(tf.ones([FEATURES, 1]) * 0.1)
        optimizer = keras.optimizers.legacy.SGD(0.05, momentum=0.9)
        infeed = iter(make_dataset())

        @tf.function
        def train(steps: Any, data: Any) -> Any:
            loss = 0.0
            for _ in tf.range(steps):
                x, y = next(data)
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((x @ weights - y) ** 2)
                gradients = tape.gradient(loss, [weights])
                optimizer.apply_gradients(zip(gradients, [weights], strict=True))
            return ipu.cross_replica_ops.cross_replica_mean(loss)

        loss = strategy.run(train, args=[tf.constant(STEPS), infeed])
        mean = strategy.reduce(tf.distribute.ReduceOp.MEAN, loss, axis=None)
        # Of all replicas: the model does not know of processes.
        cycles = popple.modelled(strategy).simulation.cost.cycles
        return [weights.numpy(), mean.numpy(), cycles]


def session() -> list[Any]:
    """TensorFlow 1: a loop with feeds and a cross-replica optimiser in a session."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as running:
        infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(make_dataset())
        outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

        def body(x: Any, y: Any) -> Any:
            weights = tf.compat.v1.get_variable(
                "weights", [FEATURES, 1], initializer=tf.constant_initializer(0.1)
            )
            loss = tf.reduce_mean((x @ weights - y) ** 2)
            optimizer = ipu.optimizers.CrossReplicaOptimizer(
                tf.compat.v1.train.MomentumOptimizer(0.05, 0.9)
            )
            index = ipu.replication_ops.replication_index()
            return optimizer.minimize(loss), outfeed.enqueue(index)

        with ipu.scopes.ipu_scope("/device:IPU:0"):
            program = ipu.ipu_compiler.compile(
                lambda: ipu.loops.repeat(STEPS, body, [], infeed)
            )
        taken = outfeed.dequeue()
        running.run(tf.compat.v1.global_variables_initializer())
        running.run(infeed.initializer)
        running.run(program)
        first = tf.reshape(taken, [-1])[:1]
        (weights,) = tf.compat.v1.trainable_variables()
        gathered = distributed.allgather(tf.ensure_shape(first, [1]), "first")
        return [running.run(weights), running.run(gathered)]


def collectives() -> list[Any]:
    """Host collectives, in another order in every instance."""
    index = popdist.getInstanceIndex()
    x = tf.constant(float(index + 1))
    y = tf.constant([True, index == 0])

    @tf.function
    def exchanged(x: Any, y: Any) -> Any:
        if index % 2:
            everyones = distributed.allgather(y)
            return distributed.allreduce(x, tf.distribute.ReduceOp.SUM), everyones
        total = distributed.allreduce(x, tf.distribute.ReduceOp.SUM)
        return total, distributed.allgather(y)

    total, everyones = exchanged(x, y)
    from_last = distributed.broadcast(x, root_rank=popdist.getNumInstances() - 1)
    return [total.numpy(), everyones.numpy(), from_last.numpy()]


def horovod() -> list[Any]:
    """The same under Horovod's names, whose gathering joins first dimensions."""
    popple_horovod.install()
    hvd = importlib.import_module("horovod.tensorflow")
    hvd.init()
    variable = tf.Variable([float(hvd.rank())])
    hvd.broadcast_variables([variable], root_rank=hvd.size() - 1)
    return [
        [hvd.size(), hvd.local_size(), hvd.local_rank() - hvd.rank()],
        hvd.allreduce(tf.constant(2.0 * hvd.rank())).numpy(),
        hvd.allreduce(tf.constant(hvd.rank()), op=hvd.Sum).numpy(),
        hvd.allgather(tf.constant([[1, hvd.rank()]])).numpy(),
        variable.numpy(),
    ]


def left_alone() -> list[Any]:
    """An exchange of the first instance after all others have ended."""
    if popdist.getInstanceIndex() > 0 or popdist.getNumInstances() == 1:
        return []
    try:
        distributed.broadcast(tf.zeros([7]))
    except tf.errors.OpError as error:
        return [type(error).__name__]
    return ["nothing happened"]


def main() -> None:
    popdist.init()
    results: dict[str, Any] = {}
    for program in (fit, custom_loop, session, collectives, horovod, left_alone):
        configure()
        results[program.__name__] = [np.asarray(each).tolist() for each in program()]
    path = Path(sys.argv[1]) / f"{popdist.getInstanceIndex()}.json"
    path.write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
