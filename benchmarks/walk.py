"""How far one call walks through the code: files, functions, facade to core and back.

    python benchmarks/walk.py [poptorch | keras]

Runs one Linear (a Dense layer's `fit` for Keras) under a profiler and prints, for the
first call and for a later one, how many files and functions of Popple it visits and how
often control crosses between a facade and the core. A reader who follows a call has to
open that many files and change rooms that often.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

# This folder has a script with the facade's name: look beside it instead.
sys.path[0] = str(Path(__file__).parents[1])

SRC = str(Path(__file__).parents[1] / "src")


@dataclass
class Walk:
    """What a call visits; a profile function while it runs."""

    functions: set[CodeType] = field(default_factory=set[CodeType])
    num_crossings: int = 0

    @property
    def files(self) -> set[str]:
        """Files whose functions were called."""
        return {code.co_filename for code in self.functions}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Note the start of a function."""
        if event != "call" or not _is_ours(frame) or _is_import(frame):
            return
        self.functions.add(frame.f_code)
        caller = _caller_of(frame)
        if caller is not None and _is_core(caller) is not _is_core(frame):
            self.num_crossings += 1


def _is_ours(frame: FrameType) -> bool:
    """Whether a frame is a call of a function of Popple."""
    code = frame.f_code
    return code.co_filename.startswith(SRC) and code.co_name != "<module>"


def _is_import(frame: FrameType) -> bool:
    """Whether the frame runs because a module is imported for the first time."""
    caller = frame.f_back
    while caller is not None:
        if caller.f_code.co_filename.startswith("<frozen importlib"):
            return True
        caller = caller.f_back
    return False


def _is_core(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(f"{SRC}/popple/")


def _caller_of(frame: FrameType) -> FrameType | None:
    """The nearest caller in Popple, past frames of the framework and of Python."""
    caller = frame.f_back
    while caller is not None and not _is_ours(caller):
        caller = caller.f_back
    return caller


def walk(call: Callable[[], object]) -> Walk:
    """Follow one call."""
    found = Walk()
    sys.setprofile(found)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def poptorch_call() -> Callable[[], object]:
    """A call of a wrapped Linear."""
    import torch

    import poptorch

    torch.manual_seed(0)
    options = poptorch.Options().showCompilationProgressBar(False)
    model = poptorch.inferenceModel(torch.nn.Linear(8, 4), options)
    batch = torch.randn(2, 8)
    return lambda: model(batch)


def keras_call() -> Callable[[], object]:
    """One `fit` of a Dense layer under IPUStrategy."""
    import keras
    import numpy as np
    from tensorflow.python import ipu

    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.configure_ipu_system()
    with ipu.ipu_strategy.IPUStrategy().scope():
        layers = [keras.layers.InputLayer(input_shape=(8,)), keras.layers.Dense(4)]
        model = keras.Sequential(layers)
        model.compile("sgd", "mse")
    x = np.zeros((2, 8), np.float32)
    y = np.zeros((2, 4), np.float32)
    return lambda: model.fit(x, y, batch_size=2, verbose=0)


CALLS = {"poptorch": poptorch_call, "keras": keras_call}


def main() -> None:
    """Print the walk of a first and of a later call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("facade", nargs="?", choices=sorted(CALLS), default="poptorch")
    parser.add_argument("--files", action="store_true", help="list the files, too")
    arguments = parser.parse_args()
    call = CALLS[arguments.facade]()
    for name in ("first", "later"):
        found = walk(call)
        print(
            f"{arguments.facade}, {name} call: {len(found.files)} files, "
            f"{len(found.functions)} functions, {found.num_crossings} crossings "
            "between facade and core"
        )
        if arguments.files:
            print(*sorted(path.removeprefix(SRC) for path in found.files), sep="\n")


if __name__ == "__main__":
    main()
