"""Small programs whose values and modelled costs depend on options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu import _modelling

v1 = tf.compat.v1
Change = Callable[[ipu.config.IPUConfig], None]


@dataclass(frozen=True)
class Outcome:
    """What a program computed, its modelled cycles, memory and first op."""

    values: tuple[Any, ...] = ()
    cycles: int = 0
    tile_bytes: int = 0
    all_bytes: int = 0
    first_op: str = ""


class Owner:
    """Something that programs are recorded for."""


def setting(name: str, value: Any, **others: Any) -> Change:
    """A change of a configuration: one option by its full name, and `a__b` for a.b."""

    def change(config: ipu.config.IPUConfig) -> None:
        for each, given in {**others, name: value}.items():
            *path, last = each.replace("__", ".").split(".")
            owner: Any = config
            for part in path:
                owner = getattr(owner, part)
            setattr(owner, last, given)

    return change


def configure(change: Change | None, num_ipus: int = 1) -> None:
    """Bring a configuration with a change, or none, into force."""
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = num_ipus
    if change is not None:
        change(config)
    config.configure_ipu_system()


def on_device(
    function: Callable[..., Any],
    inputs: Sequence[Any] = (),
    change: Change | None = None,
    num_ipus: int = 1,
) -> Outcome:
    """Run a function of arrays as a program."""
    configure(change, num_ipus)
    owner = Owner()
    tensors = [tf.constant(each) for each in inputs]
    program = tf.function(function)  # its graph is modelled as long as it is there
    try:
        with _modelling.owned_by(owner):
            strategy = ipu.ipu_strategy.IPUStrategy()
            result = strategy.run(program, tensors)
    except tf.errors.InternalError as error:
        return Outcome((error.message,))
    return outcome(owner, *tf.nest.flatten(result))


def outcome(owner: Any, *values: Any) -> Outcome:
    """What is known of the program that an object owns after it has run."""
    modelled = _modelling.modelled(owner)
    # As text, in which NaN equals itself.
    listed = tuple(str(np.ravel(value).tolist()) for value in values)
    simulation = modelled.simulation
    # The fullest tile alone may have a gap that takes what an option changes.
    held = simulation.peak_tile_bytes, simulation.memory.total.total
    first_op = modelled.graph.ops[0].name if modelled.graph.ops else ""
    return Outcome(listed, simulation.cost.cycles, *held, first_op)


def _product(number: int) -> Callable[[Any], Any]:
    def stage(x: Any) -> Any:
        same = v1.constant_initializer(0.01)
        weight = v1.get_variable(f"w{number}", [64, 64], tf.float32, same)
        return tf.nn.relu(x @ weight)

    return stage


def _loss(x: Any) -> Any:
    return tf.reduce_sum(x)


def stages(count: int) -> list[Callable[[Any], Any]]:
    """Products one after the other, and a sum in the last stage."""
    first = [_product(number) for number in range(count)]
    return [*first[:-1], lambda x: _loss(first[-1](x))]


class Casting(v1.train.MomentumOptimizer):
    """Momentum that takes sums of gradients of any type."""

    def __init__(self) -> None:
        super().__init__(1e-6, 0.9)

    def apply_gradients(self, pairs: Any, *args: Any, **kwargs: Any) -> Any:
        cast = [(tf.cast(g, v.dtype.base_dtype), v) for g, v in pairs]
        return super().apply_gradients(cast, *args, **kwargs)


def momentum(loss: Any, *_: Any) -> Any:
    """The optimiser function of a pipeline."""
    return ipu.pipelining_ops.OptimizerFunctionOutput(
        ipu.optimizers.CrossReplicaOptimizer(Casting()), loss
    )


def infeed(**options: Any) -> Any:
    """Batches of 4 rows, all numbers of a batch alike: 0, 1, 2, .."""
    data = tf.data.Dataset.range(64)
    data = data.map(lambda i: tf.fill([4, 64], tf.cast(i, tf.float32)))
    return ipu.ipu_infeed_queue.IPUInfeedQueue(data, **options)


def piped(
    change: Change | None = None,
    num_ipus: int = 2,
    make_infeed: Callable[[], Any] = infeed,
    **arguments: Any,
) -> Outcome:
    """Batches through a pipeline that trains two products; what it feeds out first."""
    with tf.Graph().as_default(), v1.Session() as session:
        configure(change, num_ipus)
        given = {
            "computational_stages": stages(2),
            "gradient_accumulation_count": 8,
            "infeed_queue": make_infeed(),
            "outfeed_queue": ipu.ipu_outfeed_queue.IPUOutfeedQueue(),
            "optimizer_function": momentum,
            **arguments,
        }
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            program = ipu.ipu_compiler.compile(
                lambda: ipu.pipelining_ops.pipeline(**given)
            )
        dequeued = given["outfeed_queue"].dequeue()
        session.run(given["infeed_queue"].initializer)
        session.run(v1.global_variables_initializer())
        owner = Owner()
        with _modelling.owned_by(owner):
            session.run(program)
        weights = session.run(v1.trainable_variables())
        return outcome(owner, *tf.nest.flatten(session.run(dequeued)), *weights)
