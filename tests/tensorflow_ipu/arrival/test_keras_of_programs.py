"""Whole programs, each in a Python of its own: what they get for `keras`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.sources import SRC

START = (SRC / "popple_tensorflow.pth").read_text()


def run_program(directory: Path, *files: tuple[str, str]) -> str:
    """What the first of some files prints, run with the others beside it."""
    for name, text in files:
        (directory / name).write_text(text)
    environment = {k: v for k, v in os.environ.items() if k != "TF_USE_LEGACY_KERAS"}
    environment["TF_CPP_MIN_LOG_LEVEL"] = "3"
    command = [sys.executable, str(directory / files[0][0])]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# The tests run also where Popple is not installed, so the programs start it themselves.
STOCK = (
    START
    + """
import keras
print(keras.__version__[0])
import tensorflow as tf
print(tf.keras.optimizers.Adam.__module__)
try:
    import keras.optimizer_v2
except ModuleNotFoundError as error:
    print(type(error).__name__)
"""
)


def test_a_program_without_the_ipu_keeps_keras_3(tmp_path: Path) -> None:
    printed = run_program(tmp_path, ("stock.py", STOCK)).split()
    assert printed == ["3", "tf_keras.src.optimizers.adam", "ModuleNotFoundError"]


ANY_ORDER = (
    START
    + """
import model
from tensorflow.keras.optimizers import Adam
from tensorflow.python import ipu
print(Adam.__module__)
"""
)


def test_imports_may_come_in_any_order(tmp_path: Path) -> None:
    model = "import keras\nprint(keras.__version__[0])\n"
    printed = run_program(tmp_path, ("main.py", ANY_ORDER), ("model.py", model))
    assert printed.split() == ["2", "tf_keras.src.optimizers.legacy.adam"]


# The names are put together, so that no import statement announces the IPU.
TOO_LATE = (
    START
    + """
import importlib
import keras
name = "ip" + "u"
importlib.import_module("tensorflow.python." + name)
for wanted in (f"keras.{name}", "keras.engine"):
    try:
        importlib.import_module(wanted)
    except ImportError as error:
        print(error)
try:
    keras.optimizer_v2
except AttributeError as error:
    print(error)
print(importlib.import_module("tensorflow.keras." + name).__name__)
"""
)


def test_keras_3_before_the_ipu_is_explained(tmp_path: Path) -> None:
    *told, last = run_program(tmp_path, ("late.py", TOO_LATE)).splitlines()
    assert [line.split()[0] for line in told] == [
        "keras.ipu",
        "keras.engine",
        "keras.optimizer_v2",
    ]
    assert all("set POPPLE_TENSORFLOW=on" in line for line in told)
    assert last == "keras.ipu"  # by way of tf.keras it is there


WITH_VARIABLE = (
    START
    + """
import os
import tensorflow.compat.v1 as tf
with tf.Graph().as_default(), tf.Session() as session:
    with tf.variable_scope("", use_resource=True), tf.device("/device:IPU:0"):
        weight = tf.get_variable("weight", [2])
    session.run(weight.initializer)
print(os.environ.get("TF_CPP_MIN_LOG_LEVEL"))
"""
)


def test_tensorflow_does_not_warn_of_ipus(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(WITH_VARIABLE)
    environment = {k: v for k, v in os.environ.items() if "LOG_LEVEL" not in k}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "main.py")],
        env={**environment, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "colocation" not in done.stderr.lower()
    assert "attached to IPU" in done.stderr
    assert done.stdout.split() == ["None"]


# Its text turns the program to the IPU in the middle of TensorFlow's own imports, which
# have looked into the Keras inside TensorFlow by then.
LATE_MODULE = """
from tensorflow.python.layers import layers
DEVICE = "/device:IPU:0"
"""

LATE_PROGRAM = (
    START
    + """
import tensorflow as tf
import late_module
from tensorflow.python import keras
import tf_keras
print(late_module.layers.Dense.__module__)
print(keras.layers.Dense is tf_keras.layers.Dense)
"""
)


def test_a_module_may_name_the_ipu_when_tensorflow_is_loaded(tmp_path: Path) -> None:
    files = (("program.py", LATE_PROGRAM), ("late_module.py", LATE_MODULE))
    printed = run_program(tmp_path, *files).split()
    assert printed == ["tf_keras.src.legacy_tf_layers.core", "True"]
