"""Notices programs that use the IPU without importing anything of it.

`tf.device("/device:IPU:0")` is enough to make a program one for the IPU. In: modules of
TensorFlow, as they are loaded. Out: the same modules, where the places that such a
program comes through (it names a device, it opens a session) look for the IPU first,
and load `tensorflow.python.ipu` when they find it.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

IPU = "tensorflow.python.ipu"
IPU_NAME = re.compile(r"\bIPU:\d")

# Module -> class and method to watch. A session has to know before anything is placed:
# it cannot change its mind about placement. So it looks at the text of the program.
BY_NAME = {
    "tensorflow.python.eager.context": ("_EagerDeviceContext", "__init__"),
    "tensorflow.python.framework.ops": ("Graph", "device"),
}
BY_TEXT = {
    "tensorflow.python.client.session": ("BaseSession", "__init__"),
    "tensorflow.python.framework.test_util": ("TensorFlowTestCase", "session"),
}
WATCHED = {**BY_NAME, **BY_TEXT}


def names_the_ipu(*args: Any) -> bool:
    """Whether one of the arguments is the name of an IPU."""
    return any(isinstance(arg, str) and IPU_NAME.search(arg) for arg in args)


def watch(module: ModuleType, is_for_ipu: Callable[[], bool]) -> None:
    """Let one method of a loaded module look for the IPU before it goes on."""
    kind, method = WATCHED[module.__name__]
    owner = getattr(module, kind)
    stock = getattr(owner, method)
    by_name = module.__name__ in BY_NAME

    @functools.wraps(stock)
    def look_first(self, *args: Any, **kwargs: Any) -> Any:
        if IPU in sys.modules or not shows_ipu(*args):
            return stock(self, *args, **kwargs)
        # Loading it patches the method that is running; so it is looked up once more.
        importlib.import_module(IPU)
        return getattr(owner, method)(self, *args, **kwargs)  # as the IPU has it

    def shows_ipu(*args: Any) -> bool:
        return names_the_ipu(*args) if by_name else is_for_ipu()

    setattr(owner, method, look_first)
