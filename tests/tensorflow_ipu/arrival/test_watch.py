"""Programs that use the IPU without importing anything of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorflow_ipu._detection import IPU_DEVICE
from tensorflow_ipu._watch import names_the_ipu
from tests.tensorflow_ipu.arrival.test_keras_of_programs import START, run_program


@pytest.mark.parametrize(
    "line",
    [
        'with tf.device("/device:IPU:0"):',
        "with tf.device('/IPU:1'):",
        'with tf.device("IPU:0"):',
        'place = f"/device:IPU:{i}"',
        'place = "/device:IPU:%d" % i',
        'place = "/device:IPU:" + str(i)',
    ],
)
def test_names_of_devices_are_seen(line: str) -> None:
    assert IPU_DEVICE.search(line)


@pytest.mark.parametrize(
    "line",
    ['print("On the IPU: 3")', '"/device:GPU:0"', "IPU:0", '# tf.device("/IPU:0")'],
)
def test_other_texts_are_not(line: str) -> None:
    assert not IPU_DEVICE.search(line)


def test_devices_show_the_ipu_in_their_name() -> None:
    assert names_the_ipu("/job:worker/task:1/device:IPU:0")
    assert not names_the_ipu("/device:CPU:0")
    assert not names_the_ipu(lambda operation: "/device:IPU:0")
    assert not names_the_ipu(None)


# The session is open before a device is named: the text of the program announces it.
SESSION_FIRST = (
    START
    + """
import sys
import tensorflow.compat.v1 as tf
with tf.Graph().as_default(), tf.Session() as session:
    with tf.device("/device:IPU:0"):
        total = tf.constant(1) + tf.constant(2)
    print(session.run(total))
print("tensorflow.python.ipu" in sys.modules)
"""
)


def test_a_device_is_enough(tmp_path: Path) -> None:
    printed = run_program(tmp_path, ("main.py", SESSION_FIRST))
    assert printed.split() == ["3", "True"]


# No file says IPU: only the graph sees it.
HIDDEN_NAME = SESSION_FIRST.replace('"/device:IPU:0"', '"/device:" + "I" "PU:0"')


def test_a_name_put_together_is_enough_before_the_session(tmp_path: Path) -> None:
    late = HIDDEN_NAME.replace(", tf.Session() as session:", ":").replace(
        "    print(session.run(total))", "    print(tf.Session().run(total))"
    )
    printed = run_program(tmp_path, ("main.py", late))
    assert printed.split() == ["3", "True"]


def test_other_devices_leave_tensorflow_alone(tmp_path: Path) -> None:
    other = SESSION_FIRST.replace("IPU", "CPU")
    printed = run_program(tmp_path, ("main.py", other))
    assert printed.split() == ["3", "False"]


EAGER = (
    START
    + """
import sys
import tensorflow as tf
with tf.device("/device:IPU:0"):
    total = tf.constant(1) + tf.constant(2)
print(total.numpy(), "tensorflow.python.ipu" in sys.modules)
"""
)


def test_eager_programs_need_no_import_either(tmp_path: Path) -> None:
    assert run_program(tmp_path, ("main.py", EAGER)).split() == ["3", "True"]
