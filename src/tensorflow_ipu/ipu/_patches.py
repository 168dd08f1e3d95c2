"""Everything Popple changes inside TensorFlow, in one place.

`apply()` runs once, when `tensorflow.python.ipu` is imported; a program that never
imports it meets stock TensorFlow. Each patch is one small function that says why it
must be.
"""

from __future__ import annotations

import functools
from typing import Any

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.distribute import distribute_lib
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import polymorphic_function


class _NotCompiled:
    """What `jit_compile=True` becomes: false, and told apart from an unset one."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "jit_compile left to the IPU"


NOT_COMPILED = _NotCompiled()


def is_compiled(function: Any) -> bool:
    """Whether the program asked for `jit_compile=True` on this `tf.function`."""
    return getattr(function, "_jit_compile", None) is NOT_COMPILED


def apply() -> None:
    """Change TensorFlow; a second call finds nothing left to do."""
    if isinstance(vars(polymorphic_function.Function).get("_jit_compile"), property):
        return
    _leave_jit_compile_to_the_ipu()
    _place_softly_in_sessions()
    _iterate_data_sets_on_the_ipu()


def _leave_jit_compile_to_the_ipu() -> None:
    # XLA for the CPU can hold neither iterators nor queues, and a program compiled for
    # the IPU is full of them. The wish is kept, see `is_compiled`. A property and not
    # an argument of __init__, so that functions made before this import follow too.
    def read(function: Any) -> Any:
        asked = vars(function).get("_jit_compile")
        return NOT_COMPILED if asked else asked

    def write(function: Any, asked: Any) -> None:
        vars(function)["_jit_compile"] = asked

    polymorphic_function.Function._jit_compile = property(read, write)  # pyright: ignore


def _place_softly_in_sessions() -> None:
    # No kernel is registered for /device:IPU:0: with soft placement TensorFlow falls
    # back to the CPU, which is its default everywhere but in sessions.
    stock = session.BaseSession.__init__

    @functools.wraps(stock)
    def softly(self: Any, target: Any = "", graph: Any = None, config: Any = None):
        if config is None:
            config = context.context().config
        if isinstance(config, config_pb2.ConfigProto):
            soft = config_pb2.ConfigProto()
            soft.CopyFrom(config)
            soft.allow_soft_placement = True
            config = soft
        stock(self, target, graph, config)

    session.BaseSession.__init__ = softly


def _iterate_data_sets_on_the_ipu() -> None:
    # `iter(dataset)` in the scope of an IPUStrategy gives an infeed. TensorFlow asks
    # no strategy about iterators.
    stock = dataset_ops.DatasetV2.__iter__

    @functools.wraps(stock)
    def iterate(self: Any) -> Any:
        strategy = distribute_lib.get_strategy()
        wants = getattr(strategy, "_enable_dataset_iterators", None)
        if wants is not None and wants():
            return strategy._create_dataset_iterator(self)
        return stock(self)

    dataset_ops.DatasetV2.__iter__ = iterate
