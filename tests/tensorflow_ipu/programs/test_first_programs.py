"""The first programs of a newcomer: a sum, the same compiled, the same over four IPUs.

Each runs in a Python of its own, as a user starts it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources import SRC

pytest.importorskip("tensorflow")

PROGRAM = """
import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python import ipu

tf.disable_eager_execution()
config = ipu.config.IPUConfig()
config.auto_select_ipus = {num_ipus}
config.configure_ipu_system()

with tf.device("cpu"):
    first = tf.placeholder(np.float32, [2], name="first")
    second = tf.placeholder(np.float32, [2], name="second")
    third = tf.placeholder(np.float32, [2], name="third")

{graph}

values = {{first: [1.0, 1.0], second: [0.0, 1.0], third: [1.0, 5.0]}}
with tf.Session() as session:
    print(session.run(result, feed_dict=values))
"""

PLAIN = """
def graph(a, b, c):
    return (a + b) + (a + c)

with ipu.scopes.ipu_scope("/device:IPU:0"):
    result = graph(first, second, third)
"""

COMPILED = """
def graph(a, b, c):
    return (a + b) + (a + c)

with ipu.scopes.ipu_scope("/device:IPU:0"):
    result = ipu.ipu_compiler.compile(graph, [first, second, third])
"""

SHARDED = """
def graph(a, b, c):
    with ipu.scopes.ipu_shard(0):
        left = a + b
    with ipu.scopes.ipu_shard(1):
        middle = a + c
    with ipu.scopes.ipu_shard(2):
        right = b + c
    with ipu.scopes.ipu_shard(3):
        return left + middle + right

with ipu.scopes.ipu_scope("/device:IPU:0"):
    result = ipu.ipu_compiler.compile(graph, [first, second, third])
"""

ATTACHED = "tensorflow/compiler/plugin/poplar/driver/executor.cc:660] Device "


# (a + b) + (a + c) is [1, 2] + [2, 6]; the fourth IPU adds b + c, [1, 6], to that.
@pytest.mark.parametrize(
    ("graph", "num_ipus", "printed", "device"),
    [
        (PLAIN, 1, "[3. 8.]", "IPU: 0"),
        (COMPILED, 1, "[array([3., 8.], dtype=float32)]", "IPU: 0"),
        (SHARDED, 4, "[array([ 4., 14.], dtype=float32)]", "IPUs: 24"),
    ],
)
def test_a_first_program_prints_its_sum_and_its_device(
    tmp_path: Path, graph: str, num_ipus: int, printed: str, device: str
) -> None:
    start = (SRC / "popple_tensorflow.pth").read_text()
    text = start + PROGRAM.format(graph=graph, num_ipus=num_ipus)
    (tmp_path / "program.py").write_text(text)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")],
        env=dict(os.environ, TMPDIR=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == printed
    assert f"{ATTACHED}/device:IPU:0 attached to {device}\n" in done.stderr
