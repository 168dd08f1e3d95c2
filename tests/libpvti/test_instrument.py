"""Trace points around code that does not know of them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import libpvti
from libpvti._tracing import TRACING
from popple.trace import Kind, Trace

Finish = Callable[[], Trace]


class Counter:
    """Has methods of both kinds."""

    def __init__(self) -> None:
        self.items = [1, 2]

    def add(self, number: int) -> int:
        self.items.append(number)
        return len(self.items)

    def __getitem__(self, index: int) -> int:
        return self.items[index]


def begun(trace: Trace) -> list[str]:
    return [p.label for p in trace.batch.points if p.kind is Kind.BEGIN]


def test_methods_of_an_object(finish: Finish) -> None:
    channel = libpvti.createTraceChannel("App")
    counter, other = Counter(), Counter()
    libpvti.instrument(counter, ["add", "__getitem__"], channel)
    assert (counter.add(3), counter[2], other.add(4)) == (3, 3, 3)
    assert isinstance(counter, Counter)
    assert begun(finish()) == ["Counter.add", "Counter.__getitem__"]


def test_an_object_with_traced_methods_can_be_pickled(tracing: None) -> None:
    counter = Counter()
    libpvti.instrument(counter, ["add"], libpvti.createTraceChannel("App"))
    assert pickle.loads(pickle.dumps(counter)).add(3) == 3


def test_functions_of_a_class_and_of_a_module(finish: Finish) -> None:
    channel = libpvti.createTraceChannel("App")
    module: Any = ModuleType("m")
    module.double = lambda x: 2 * x

    class Own(Counter):
        pass

    libpvti.instrument(module, ["double"], channel)
    libpvti.instrument(Own, ["add"], channel)
    assert (module.double(2), Own().add(0)) == (4, 3)
    assert len(begun(finish())) == 2


def test_a_decorated_function_keeps_its_name(finish: Finish) -> None:
    @libpvti.instrument_fn(libpvti.createTraceChannel("App"))
    def work(x: int) -> int:
        """Says what it does."""
        return x + 1

    assert (work(1), work.__name__, work.__doc__) == (2, "work", "Says what it does.")
    assert begun(finish())[0].endswith("work")


def test_off_leaves_everything_as_it_is() -> None:
    assert not TRACING.is_on
    channel = libpvti.createTraceChannel("App")
    counter = Counter()
    libpvti.instrument(counter, ["add", "__getitem__"], channel)
    assert type(counter) is Counter
    assert vars(counter) == {"items": [1, 2]}
    assert libpvti.instrument_fn(channel)(len) is len
