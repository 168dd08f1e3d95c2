"""Outbox: outputs of a GPU step that go to the host while the step still runs.

On a GPU a step of training is one launch: forward, backward, update. The program waits
for the outputs of the first of these alone; while the GPU does the rest, it prepares
the next launch. What it asks for then, weights for example, comes after what was
launched before, as with everything on a GPU.
"""

from __future__ import annotations

import copy
import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from popple.engine.torch.rewrites.views import Storage, overwrites, storage_of

SMALL = 1 << 20
"""Bytes from which on a copy to pinned memory costs more than it saves."""

_NAMES = frozenset({torch.ops.aten.detach.default, torch.ops.aten.alias.default})
_KEYS = itertools.count()
# Operators of a graph take numbers and tensors, so an outbox is named by a number;
# weakly, so that it goes with its step.
_OUTBOXES: WeakValueDictionary[int, Outbox] = WeakValueDictionary()


class Outbox:
    """Memory of the host for the outputs of one step, with word of their arrival."""

    def __init__(self, device: str) -> None:
        self.key = next(_KEYS)
        self._is_on_gpu = device == "cuda"
        self._host: list[Tensor] = []
        self._arrival: Any = None
        _OUTBOXES[self.key] = self

    def send(self, outputs: Sequence[Tensor]) -> None:
        """Copy outputs to the host; part of a graph that is being captured."""
        if not self._host:
            self._host = [self._memory_like(output) for output in outputs]
            if self._is_on_gpu:
                # An event that is recorded inside a graph but waited for outside.
                self._arrival = torch.cuda.Event(external=True)
        for host, output in zip(self._host, outputs, strict=True):
            host.copy_(output, non_blocking=True)
        if self._is_on_gpu:
            self._arrival.record()

    def _memory_like(self, tensor: Tensor) -> Tensor:
        return torch.empty_like(tensor, device="cpu", pin_memory=self._is_on_gpu)

    def receive(self) -> list[Any]:
        """The outputs of the newest launch, which may still be at work."""
        if self._is_on_gpu:
            self._arrival.synchronize()
        # The next launch writes to the same pinned memory.
        return [host.clone() for host in self._host]


@torch.library.custom_op("popple::send", mutates_args=())
def _send(outputs: list[Tensor], key: int, losses: list[int]) -> list[Tensor]:
    """Copies of the outputs, then ones: gradients of losses begin with them."""
    _OUTBOXES[key].send(outputs)
    # A custom operator must not return its arguments.
    copies = [output.clone() for output in outputs]
    return copies + [torch.ones_like(outputs[number]) for number in losses]


@_send.register_fake
def _send_fake(outputs: list[Tensor], key: int, losses: list[int]) -> list[Tensor]:
    copies = [torch.empty_like(output) for output in outputs]
    return copies + [torch.empty_like(outputs[number]) for number in losses]


def with_outbox(
    module: GraphModule, num_outputs: int, device: str
) -> tuple[GraphModule, Outbox | None]:
    """The graph with its outputs sent to an outbox, if all of them are small.

    Otherwise the graph as it is and no outbox. The backward pass takes the gradient it
    begins with from what sends: compilers would send last, since nobody waits for it.
    """
    graph = copy.deepcopy(module.graph)
    results: list[Any] = list(graph.output_node().args[0])  # pyright: ignore
    outputs = [_source_of(result) for result in results[:num_outputs]]
    places = {node: place for place, node in enumerate(graph.nodes)}
    written = _last_writes(places)
    if not outputs or not all(_can_be_sent(o, places, written) for o in outputs):
        return module, None
    outbox = Outbox(device)
    last = max(outputs, key=places.__getitem__)
    seeds = _find_seeds(outputs, places)
    with graph.inserting_after(last):
        call = (outputs, outbox.key, list(seeds))
        sent = graph.call_function(torch.ops.popple.send.default, call)
    taken = [_take(graph, sent, node, number) for number, node in enumerate(outputs)]
    for number, seed in enumerate(seeds.values(), start=num_outputs):
        seed.replace_all_uses_with(_take(graph, sent, seed, number))
    graph.output_node().args = ([*taken, *results[num_outputs:]],)
    return GraphModule(module, graph), outbox


def _find_seeds(outputs: list[Node], places: Mapping[Node, int]) -> dict[int, Node]:
    """The ones that gradients of outputs begin with, where all outputs are there."""
    last = max(places[output] for output in outputs)
    return {
        number: user
        for number, output in enumerate(outputs)
        for user in output.users
        if user.target is torch.ops.aten.ones_like.default
        and all(places[reader] > last for reader in user.users)
    }


def _take(graph: Graph, sent: Node, like: Node, number: int) -> Node:
    """One result of what sends."""
    with graph.inserting_after(sent):
        taken = graph.call_function(operator.getitem, (sent, number))
    taken.meta["val"] = like.meta["val"].clone()
    return taken


def _source_of(output: Any) -> Any:
    """What an output is another name of: names are given at the end of the graph."""
    while isinstance(output, Node) and output.target in _NAMES:
        output = output.args[0]
    return output


def _last_writes(places: Mapping[Node, int]) -> dict[Storage, int]:
    """Where memory is last written to by operators that overwrite."""
    return {
        storage_of(source): place
        for node, place in places.items()
        if overwrites(node)
        for source in node.all_input_nodes
    }


def _can_be_sent(
    output: Any, places: Mapping[Node, int], written: Mapping[Storage, int]
) -> bool:
    """Whether it is a small tensor that the graph computes and then leaves alone."""
    if not isinstance(output, Node) or output.op != "call_function":
        return False
    value = output.meta.get("val")
    if not isinstance(value, Tensor) or value.nbytes > SMALL:
        return False
    return written.get(storage_of(output), -1) <= places[output]
