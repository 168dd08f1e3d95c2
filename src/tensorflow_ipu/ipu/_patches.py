"""Everything Popple changes inside TensorFlow, in one place.

`apply()` runs once, when `tensorflow.python.ipu` is imported; a program that never
imports it meets stock TensorFlow. Each patch is one small function that says why it
must be.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.core.protobuf import config_pb2, rewriter_config_pb2
from tensorflow.python.client import session
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.distribute import distribute_lib
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import ops
from tensorflow.python.ops import (
    candidate_sampling_ops,
    gen_candidate_sampling_ops,
    gen_nn_ops,
    resource_variable_ops,
)
from tensorflow.python.ops import cond as tf_cond
from tensorflow.python.util import lazy_loader

from popple.engine.tensorflow import processes


class _NotCompiled:
    """What `jit_compile=True` becomes: false, and told apart from an unset one."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "jit_compile left to the IPU"


NOT_COMPILED = _NotCompiled()

VARIABLE_DEVICE = "_popple_device"
"""The attribute of eager variables that names the IPU they were made for."""


_IS_SOFT = "_popple_is_soft"  # of sessions: the program asked for soft placement


def is_compiled(function: Any) -> bool:
    """Whether the program asked for `jit_compile=True` on this `tf.function`."""
    return getattr(function, "_jit_compile", None) is NOT_COMPILED


def apply() -> None:
    """Change TensorFlow; a second call finds nothing left to do."""
    if isinstance(vars(polymorphic_function.Function).get("_jit_compile"), property):
        return
    _join_the_other_processes()
    _leave_jit_compile_to_the_ipu()
    _place_softly()
    _accept_channels_first_in_functions()
    _complete_kernels()
    _place_softly_in_sessions()
    _attend_to_the_ipu_in_sessions()
    _iterate_data_sets_on_the_ipu()
    _shard_gradient_tapes()
    _give_variables_their_first_value()
    _leave_variables_on_their_ipu()
    _bring_estimators_back()
    _update_half_precision_step_by_step()


def _join_the_other_processes() -> None:
    # TensorFlow's collectives must be set up before its first tensor is made: later,
    # variables that exist already would be on a device that is gone.
    from .distributed import _instances

    _instances.join()


def _leave_jit_compile_to_the_ipu() -> None:
    # XLA for the CPU can hold neither iterators nor queues, and a program compiled for
    # the IPU is full of them. The wish is kept, see `is_compiled`. A property and not
    # an argument of __init__, so that functions made before this import follow too.
    from ._arithmetic.compiled import FOR_THE_HOST

    def read(function: Any) -> Any:
        asked = vars(function).get("_jit_compile")
        return NOT_COMPILED if asked and asked is not FOR_THE_HOST else asked

    def write(function: Any, asked: Any) -> None:
        vars(function)["_jit_compile"] = asked

    polymorphic_function.Function._jit_compile = property(read, write)  # pyright: ignore


def _place_softly() -> None:
    # /device:IPU:0 has no kernels of its own: it exists by falling back to the CPU, so
    # a program may not forbid that.
    stock: Any = context.Context.soft_device_placement

    def keep(self, enable: Any) -> None:
        del enable
        stock.fset(self, True)

    context.Context.soft_device_placement = property(stock.fget, keep)
    in_force: Any = context.context()
    in_force.soft_device_placement = True


def _accept_channels_first(config: Any) -> None:
    """Let the CPU run NCHW convolutions and pools, by transposing around them."""
    rewriting = config.graph_options.rewrite_options
    rewriting.cpu_layout_conversion = rewriter_config_pb2.RewriterConfig.NCHW_TO_NHWC
    rewriting.min_graph_nodes = -1  # in the smallest graphs too


def _accept_channels_first_in_functions() -> None:
    # The device runs either layout; the CPU's kernels have NHWC only.
    stock = context.Context.config

    def read(self) -> Any:
        config = stock.fget(self)
        _accept_channels_first(config)
        return config

    context.Context.config = property(read)


def _complete_kernels() -> None:
    # The device has them in every layout and precision, and draws by seed alone.
    from ._arithmetic import batch_norms, cpu_kernels, labels, samplers

    cpu_kernels.complete(gen_nn_ops)
    batch_norms.complete(gen_nn_ops)
    labels.complete(gen_nn_ops)
    samplers.complete(gen_candidate_sampling_ops, candidate_sampling_ops)


def _place_softly_in_sessions() -> None:
    # No kernel is registered for /device:IPU:0: with soft placement TensorFlow falls
    # back to the CPU, which is its default everywhere but in sessions.
    stock = session.BaseSession.__init__

    @functools.wraps(stock)
    def softly(
        self: Any, target: Any = "", graph: tf.Graph | None = None, config: Any = None
    ) -> None:
        setattr(self, _IS_SOFT, getattr(config, "allow_soft_placement", False))
        if config is None:
            config = getattr(context.context(), "config", None)
        if isinstance(config, config_pb2.ConfigProto):
            soft = config_pb2.ConfigProto()
            soft.CopyFrom(config)
            soft.allow_soft_placement = True
            _accept_channels_first(soft)
            config = soft
        if processes.is_joined() and not target:
            target = processes.session_target()
            config = processes.session_config(config)
        stock(self, target, graph, config)
        from ._programs import graphs

        # The graph may have been built before the device was configured.
        graphs.follow_device(self.graph)

    session.BaseSession.__init__ = softly


def _attend_to_the_ipu_in_sessions() -> None:
    # A session does not know of devices to attach to, nor of runs that must be undone.
    from ._programs import sessions

    stock = session.BaseSession.run

    @functools.wraps(stock)
    def run(self, fetches: object, *args: Any, **kwargs: Any) -> Any:
        bound = functools.partial(stock, self)
        given = {**kwargs, "is_soft": getattr(self, _IS_SOFT, False)}
        return sessions.run(bound, self.graph, fetches, *args, **given)

    session.BaseSession.run = run


def _shard_gradient_tapes() -> None:
    # A gradient belongs on the IPU of its forward operation. TensorFlow's tapes keep
    # attributes of operations, but not those of the scope they are made in.
    from . import sharding

    sharding.enable_sharded_gradient_tape()


def _iterate_data_sets_on_the_ipu() -> None:
    # `iter(dataset)` in the scope of an IPUStrategy gives an infeed. TensorFlow asks
    # no strategy about iterators.
    stock = dataset_ops.DatasetV2.__iter__

    @functools.wraps(stock)
    def iterate(self) -> Any:
        strategy: Any = distribute_lib.get_strategy()
        wants = getattr(strategy, "_enable_dataset_iterators", None)
        if wants is not None and wants():
            return strategy._create_dataset_iterator(self)
        return stock(self)

    dataset_ops.DatasetV2.__iter__ = iterate


def _give_variables_their_first_value() -> None:
    # Programs of TensorFlow 1 start one variable from another with it; TensorFlow has
    # dropped it from resource variables, which are all there are in IPU programs.
    def initialized_value(self) -> Any:
        """The variable's value, or its first one while it has none."""
        with ops.init_scope():
            return tf_cond.cond(
                self.is_initialized(), self.read_value, lambda: self.initial_value
            )

    resource_variable_ops.BaseResourceVariable.initialized_value = initialized_value


def _leave_variables_on_their_ipu() -> None:
    # A variable on an IPU lives where soft placement put it, and says so in eager mode;
    # programs ask it for the device it was made for.
    stock = resource_variable_ops.BaseResourceVariable.device

    def device(self) -> Any:
        return getattr(self, VARIABLE_DEVICE, None) or stock.fget(self)

    resource_variable_ops.BaseResourceVariable.device = property(device)


def _bring_estimators_back() -> None:
    # TensorFlow has dropped `tf.estimator`, of which programs for IPUEstimator use the
    # modes, specifications and hooks. Loaded when they are asked for.
    home = "tensorflow.python.ipu._estimator.estimator_lib"
    for face in ("tensorflow", "tensorflow.compat.v1", "tensorflow.compat.v2"):
        names: dict[str, Any] = vars(importlib.import_module(face))
        names.setdefault("estimator", lazy_loader.LazyLoader("estimator", names, home))


def _update_half_precision_step_by_step() -> None:
    # Operators that update variables in one go make infinities of what the device
    # takes for the largest number. In programs for it, they are arithmetic.
    from ._arithmetic import float16_updates

    float16_updates.patch()
