"""What changes inside TensorFlow when a program imports the IPU."""

from __future__ import annotations

import pytest
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu import _patches


class Doubler:
    """A class with a compiled method."""

    @tf.function(jit_compile=True)
    def double(self, x: tf.Tensor) -> tf.Tensor:
        return x * 2


def test_the_wish_to_compile_is_kept_and_not_carried_out() -> None:
    # Queues are what XLA for the CPU refuses.
    queue = tf.queue.FIFOQueue(2, [tf.float32], [[]])

    @tf.function(jit_compile=True)
    def enqueue(x: tf.Tensor) -> tf.Tensor:
        queue.enqueue(x)
        return x + 1

    assert float(enqueue(tf.constant(1.0))) == 2.0
    assert float(queue.dequeue()) == 1.0
    assert _patches.is_compiled(enqueue)


def test_methods_keep_the_wish() -> None:
    doubler = Doubler()
    assert float(doubler.double(tf.constant(2.0))) == 4.0
    assert _patches.is_compiled(doubler.double)


def test_other_functions_have_none() -> None:
    assert not _patches.is_compiled(tf.function(lambda: 1))
    assert not _patches.is_compiled(tf.function(lambda: 1, jit_compile=False))


@pytest.mark.parametrize("config", [None, tf.compat.v1.ConfigProto()])
def test_sessions_place_the_ipu_softly(config: object) -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
        with tf.device("/device:IPU:0"):
            total = tf.constant([1.0, 2.0]) + tf.constant([2.0, 6.0])
        assert session.run(total).tolist() == [3.0, 8.0]


def test_the_configuration_of_a_session_is_not_written_to() -> None:
    config = tf.compat.v1.ConfigProto(allow_soft_placement=False)
    tf.compat.v1.Session(graph=tf.Graph(), config=config).close()
    assert not config.allow_soft_placement


def test_patching_twice_changes_nothing() -> None:
    before = tf.compat.v1.Session.__mro__[1].__init__
    _patches.apply()
    assert tf.compat.v1.Session.__mro__[1].__init__ is before


def test_an_unknown_name_is_missed() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'confg'"):
        _ = ipu.confg
