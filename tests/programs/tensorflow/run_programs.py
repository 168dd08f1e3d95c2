"""Runs programs one after another in one Python, as scripts; `ok NAME` for each.

TensorFlow takes seconds to load, and what a program was written for is settled with the
first one: so programs of one folder, written for the same TensorFlow, share a process.
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback


def run(path: str) -> None:
    sys.argv = [path]
    try:
        runpy.run_path(path, run_name="__main__")
    except (Exception, SystemExit):  # noqa: BLE001  whatever a program raises
        print(f"failed {path}\n{traceback.format_exc()}\nend of {path}", flush=True)
    else:
        print(f"ok {path}", flush=True)
    start_over()


def start_over() -> None:
    """What the next program must not see of this one."""
    import tensorflow.compat.v1 as tf
    from tensorflow.python.ipu import _device

    _device.reset()
    tf.keras.backend.clear_session()
    if not tf.executing_eagerly():
        tf.reset_default_graph()


if __name__ == "__main__":
    exec(os.environ["POPPLE_START"])
    sys.path[0] = os.getcwd()  # what stands beside a program, as for any script
    for program in sys.argv[1:]:
        run(program)
