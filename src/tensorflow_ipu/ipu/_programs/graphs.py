"""IPU programs in the graphs of TensorFlow 1.

A program with one replica is built into the user's graph itself. One with several is a
function in that graph, called for each replica. Programs of TensorFlow 1 often build
the graph first and configure the device later, so what was built for a number of
replicas, or for another arithmetic, is built again when the device gets another one:
the tensors that the user holds are tied to the new program.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.distribute import device_util
from tensorflow.python.eager.polymorphic_function import atomic_function
from tensorflow.python.framework import func_graph, ops
from tensorflow.python.ops import variable_scope
from tensorflow.python.ops.control_flow_ops import ControlFlowContext

from popple.engine.tensorflow import Processes, ReplicatedProgram
from tensorflow_ipu._translate import Arithmetic
from tensorflow_ipu._types import Returned

from .. import _device
from .._arithmetic import as_on_device
from . import assertions, compilation

_PROGRAMS = "_popple_programs"


def build(function: Callable[..., Any], inputs: Sequence[Any]) -> Returned:
    """Build `function(*inputs)` into the current graph as an IPU program."""
    tensors = tf.nest.map_structure(tf.convert_to_tensor, list(inputs))
    device = device_util.current()
    # A program on no IPU is refused when it is built; here it has one replica.
    ordinal = _device.ordinal_of(device) if "IPU" in device else 0
    scope = variable_scope.get_variable_scope()
    building = _Building(
        function, tensors, ordinal, device, scope, _MadeVariables(), _Collected()
    )
    graph = ops.get_default_graph()
    num_before = len(graph.get_operations())
    with building.collected.noted(graph):
        outputs, count = building.build(compilation.replicas_for(1, ordinal))
    if isinstance(graph, func_graph.FuncGraph):
        return outputs  # traced by a tf.function, which is run after configuration
    added = graph.get_operations()[num_before:]
    _guard_if_asserting(graph)
    held = _held_by_user(outputs)
    # Kept on the graph, to go with it.
    found = compilation.shards_of(compilation.with_called(added))
    num_shards = max(found, compilation.declared_shards())
    built = _Built(
        building,
        held,
        count,
        added,
        num_shards,
        as_on_device.configured(),
        compilation.processes_of(ordinal),
    )
    setattr(graph, _PROGRAMS, [*getattr(graph, _PROGRAMS, ()), built])
    return held


class _MadeVariables:
    """The variables made in the first of several builds, handed out in the others.

    A function makes its variables when it is called. Called again to build the same
    program anew it must find those it made, in the order in which it made them; else
    the graph would have them twice, under other names and without their values.
    """

    def __init__(self) -> None:
        self._made: list[Any] = []
        self._left: list[Any] = []
        self._counts: dict[str, int] | None = None

    @contextlib.contextmanager
    def scope(self, scope: object) -> Iterator[None]:
        """Build inside; `scope` is the variable scope the program was built in."""
        self._left = list(self._made)
        with (
            self._scopes_counted(),
            variable_scope.variable_scope(
                scope, auxiliary_name_scope=False, custom_getter=self._get
            ),
            tf.variable_creator_scope(self._create),
        ):
            yield
            self._built = dict(_scope_store().variable_scopes_count)

    @contextlib.contextmanager
    def _scopes_counted(self) -> Iterator[None]:
        """Variable scopes of a program differ from those of programs before it.

        TensorFlow forgets how many there were when the scope is left; and a program
        that is built anew has to begin where it began the first time.
        """
        store = _scope_store()
        outside = dict(store.variable_scopes_count)
        is_first, self._built = self._counts is None, {}
        self._counts = outside if self._counts is None else self._counts
        store.variable_scopes_count = dict(self._counts)
        try:
            yield
        finally:
            counted = {**outside, **self._built} if is_first else outside
            store.variable_scopes_count = counted

    def _get(
        self, getter: Callable[..., Any], name: str, *args: Any, **kw: Any
    ) -> tf.Variable:
        for variable in self._left:
            # Slots of optimisers are asked for with a slash at the end.
            if variable.op.name == name.rstrip("/"):
                return self._take(variable)
        return getter(name, *args, **kw)

    def _create(self, create: Callable[..., Any], **kwargs: Any) -> tf.Variable:
        wanted = kwargs.get("dtype")
        if self._left and (wanted is None or self._left[0].dtype == wanted):
            return self._take(self._left[0])
        variable = create(**kwargs)
        self._made.append(variable)
        return variable

    def _take(self, variable: tf.Variable) -> tf.Variable:
        self._left = [other for other in self._left if other is not variable]
        return variable


class _Collected:
    """What building a program put into the collections of its graph.

    Losses, updates and summaries of a program that is built anew are those of the new
    one. Variables stay, as they are made once, and so do the contexts of loops, whose
    operations stay in the graph.
    """

    def __init__(self) -> None:
        self._items: list[tuple[Any, Any]] = []

    @contextlib.contextmanager
    def noted(self, graph: Any) -> Iterator[None]:
        """Build inside; what an earlier building collected is withdrawn."""
        for name, gone in self._items:
            kept = [item for item in graph.get_collection_ref(name) if item is not gone]
            graph.get_collection_ref(name)[:] = kept
        names = graph.get_all_collection_keys
        before = {name: len(graph.get_collection_ref(name)) for name in names()}
        yield
        self._items = [
            (name, item)
            for name in names()
            for item in graph.get_collection_ref(name)[before.get(name, 0) :]
            if not isinstance(item, tf.Variable | ControlFlowContext)
        ]


def _scope_store() -> Any:
    return variable_scope.get_variable_scope_store()


@dataclass(frozen=True)
class _Building:
    """What it takes to build a program: its function, and where it was called."""

    function: Callable[..., Any]
    inputs: Sequence[Any]
    ordinal: int
    device: str
    scope: Any
    variables: _MadeVariables
    collected: _Collected

    def build(self, count: int) -> tuple[Any, int]:
        """Outputs, and the replicas it was built for: sharding may leave fewer."""
        if compilation.runs_alone(count, self.ordinal):
            with self.variables.scope(self.scope):
                return self.function(*self.inputs), 1
        return self._build_replicated(count)

    def _traced(self, given: Sequence[Any]) -> Returned:
        try:
            return self.function(*given)
        except compilation.AnotherCountError:
            compilation.discard(ops.get_default_graph())
            raise

    def _build_replicated(self, count: int) -> tuple[Any, int]:
        # Functions have one name space for all graphs.
        name = f"ipu_program_{ops.uid()}"
        returned: list[Any] = []

        def traced(*given: Any) -> Returned:
            # Functions do not inherit the device they are traced under.
            with tf.device(self.device):
                outputs = self._traced(given)
            returned.append(outputs)
            if not isinstance(outputs, tf.Operation):
                return outputs
            with tf.control_dependencies([outputs]):
                return tf.constant(0)

        # The default graph as a context of its own, or TensorFlow would lift what the
        # function creates past a graph nobody entered.
        here = ops.get_default_graph()
        try:
            # Variables made under `tf.init_scope` are made out here.
            with (
                compilation.assuming(count, self.ordinal) as trace,
                here.as_default(),
                self.variables.scope(self.scope),
            ):
                graph = func_graph.func_graph_from_py_func(
                    name, traced, args=tuple(self.inputs), kwargs={}
                )
        except compilation.AnotherCountError:
            declared = compilation.declared_shards()
            return self.build(compilation.replicas_for(declared, self.ordinal))
        operations = compilation.operations_of(graph)
        compilation.declare_shards(compilation.shards_of(operations))
        needed = compilation.replicas_of(graph, self.ordinal)
        if needed != count and trace.depends_on_count:
            compilation.discard(graph)
            return self.build(needed)
        function = atomic_function.from_func_graph(name, graph, {})
        program = ReplicatedProgram(function, graph.external_captures, needed)
        outputs = program.call(tf.nest.flatten(list(self.inputs)))
        if isinstance(returned[-1], tf.Operation):
            return outputs[0].op, needed
        return tf.nest.pack_sequence_as(graph.structured_outputs, outputs), needed


@dataclass
class _Built:
    """A program in a graph, the outputs the user has, and what it was built for."""

    building: _Building
    held: Any
    count: int
    added: Sequence[Any]
    num_shards: int
    arithmetic: Arithmetic
    processes: Processes

    def follow_device(self) -> None:
        """Build again if the device has other replicas or another arithmetic."""
        ordinal = self.building.ordinal
        wanted = compilation.replicas_for(self.num_shards, ordinal)
        conditions = as_on_device.configured(), compilation.processes_of(ordinal)
        if wanted == self.count and conditions == (self.arithmetic, self.processes):
            return
        self.arithmetic, self.processes = conditions
        graph = ops.get_default_graph()
        num_before = len(graph.get_operations())
        # The old operations stay in the graph, where TensorFlow has no way to remove
        # any; marked, they do not count as readers of feeds any more.
        for op in compilation.with_called(self.added):
            compilation.discard(op)
        with (
            tf.device(self.building.device),
            compilation.program_scope(),
            self.building.collected.noted(graph),
        ):
            outputs, self.count = self.building.build(wanted)
        self.added = graph.get_operations()[num_before:]
        _guard_if_asserting(graph)
        _tie(self.held, outputs)


def _guard_if_asserting(graph: tf.Graph) -> None:
    """Let sessions put variables back if a program in the graph may fail to end."""
    if assertions.has_assertions(compilation.operations_of(graph)):
        assertions.guard_graph(graph)


def _held_by_user(outputs: Returned) -> Returned:
    """Outputs that can be tied to another program later."""
    if isinstance(outputs, tf.Operation):
        return tf.group(outputs)
    return tf.nest.map_structure(tf.identity, outputs)


def _tie(held: Any, outputs: Returned) -> None:
    if isinstance(held, tf.Operation):
        # The user's own operation stays, so that what was built on it goes on to work.
        held._remove_all_control_inputs()
        held._add_control_input(outputs)
        return
    for old, new in zip(tf.nest.flatten(held), tf.nest.flatten(outputs), strict=True):
        old.op._update_input(0, new)


def follow_device(graph: tf.Graph) -> None:
    """Bring the programs in a graph to the number of replicas of their devices."""
    with graph.as_default():
        for program in getattr(graph, _PROGRAMS, ()):
            program.follow_device()


def _follow_in_default_graph() -> None:
    if not tf.executing_eagerly():
        follow_device(ops.get_default_graph())


_device.on_configured(_follow_in_default_graph)
