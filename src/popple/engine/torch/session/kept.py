"""Compiled steps as parts of a file, and captures that were read from one.

    facts.json     names, counts and the form of the output
    replay.json    the operators that a run executes, if they are plain ones
    step.json      the traced step, from which all else can be made again
    tensors.json   types and shapes of the constants; tensors/0, ... their numbers

A program that only runs needs the first two; the traced step is read when somebody
asks for names, costs or anything else.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from torch.fx import GraphModule, Node

from popple.capture.torch import LoweredStep, TracedStep
from popple.capture.torch.stored import (
    StoredStep,
    read_graph,
    read_step,
    store_graph,
    store_step,
)
from popple.capture.torch.stored_values import NotStorable, check, whole, whole_list
from popple.capture.torch.structures import pack_structure, unpack_structure
from popple.capture.torch.tensors import pack_tensors, unpack_tensors
from popple.engine.torch.replay import Replay
from popple.engine.torch.rewrites.weight_copies import WeightCopies
from popple.engine.torch.session.step import (
    CompiledStep,
    StepFacts,
    StepRequest,
    lower_traced,
    one_micro_batch,
)
from popple.engine.torch.straight_line import straight_line
from popple.errors import DamagedFileError, UsageError
from popple.session import Archive
from popple.session.archive import Buffer, render_json

_FACTS, _REPLAY, _STEP, _TENSORS = (
    "facts.json",
    "replay.json",
    "step.json",
    "tensors.json",
)
_NAMES = ("parameters", "buffers", "trainable", "gradients")
_COUNTS = ("num_inputs", "num_outputs", "num_stages", "num_chips")


def pack_step(step: CompiledStep) -> dict[str, Buffer]:
    """A step as parts of a file; NotStorable if it has something that cannot be."""
    stored = store_step(step.traced)
    rows, parts = pack_tensors(stored.constants)
    packed: dict[str, Buffer] = {
        _FACTS: render_json(_pack_facts(step)),
        _STEP: render_json(stored.data),
        _TENSORS: render_json(rows),
        **parts,
    }
    replay = _pack_replay(step)
    return packed if replay is None else {**packed, _REPLAY: render_json(replay)}


def _pack_replay(step: CompiledStep) -> dict[str, Any] | None:
    """What a run executes, where it is the same in every process."""
    if not step.has_plain_replay or step.replay.graph is None:
        return None
    try:
        graph = store_graph(step.replay.graph)
    except NotStorable:  # loops that were made into functions
        return None
    return {
        **graph,
        "shared": sorted(step.replay.shared_outputs),
        "copied": list(step.replay.copies.numbers),
    }


def _pack_facts(step: CompiledStep) -> dict[str, Any]:
    facts = step.facts
    plain = {
        item.name: getattr(facts, item.name)
        for item in fields(StepFacts)
        if item.name not in ("example", "constant_outputs")
    }
    return {
        **plain,
        "constant_outputs": sorted(facts.constant_outputs),
        "example": pack_structure(facts.example),
        "micro_batch": step.micro_batch,
    }


@dataclass(frozen=True)
class KeptCapture:
    """A capture of an earlier run; what is needed of it is read when it is needed."""

    archive: Archive
    request: StepRequest
    facts: StepFacts

    @property
    def replay(self) -> Replay | None:
        """What runs the step, if that was kept."""
        return self._replay

    @property
    def traced(self) -> TracedStep:
        """The operators of one micro-batch."""
        return self._traced

    @property
    def lowered(self) -> LoweredStep:
        """Its Graph."""
        return self._lowered

    @cached_property
    def _replay(self) -> Replay | None:
        if _REPLAY not in self.archive.parts:
            return None
        with _reading(self.archive):
            data = self.archive.json(_REPLAY)
            check(isinstance(data, dict), f"{_REPLAY} is no object")
            module = read_graph(data, self._constants)
            shared = whole_list(data["shared"])
            copied = tuple(whole_list(data["copied"]))
            self._check_replay(module, shared, copied)
            function = straight_line(module)
            copies = WeightCopies(copied)
            return Replay(function, frozenset(shared), module.graph, copies)

    def _check_replay(
        self, module: GraphModule, shared: list[int], copied: tuple[int, ...]
    ) -> None:
        facts, graph = self.facts, module.graph
        held = len(facts.parameters) + len(facts.buffers) + facts.num_inputs
        given = held + self.request.scales_loss + len(copied)
        is_weight = all(number < len(facts.parameters) for number in copied)
        check(is_weight, "the replay copies what is no weight")
        results: Any = graph.output_node().args[0]
        count = facts.num_outputs + len(facts.trainable)
        # Behind the gradients there may be the share of large ones.
        counts = (count, count + (self.request.automatic is not None))
        found = len(graph.find_nodes(op="placeholder"))
        check(found == given, "the replay takes another number of arguments")
        check(len(results) in counts, "the replay has another number of results")
        check(
            all(i < count and isinstance(results[i], Node) for i in shared),
            "the replay shares results that it does not have",
        )

    @cached_property
    def _traced(self) -> TracedStep:
        with _reading(self.archive):
            data = self.archive.json(_STEP)
            check(isinstance(data, dict), f"{_STEP} is no object")
            step = read_step(StoredStep(data, self._constants))
            held = len(step.parameters) + len(step.buffers) + step.num_inputs
            given = step.graph_module.graph.find_nodes(op="placeholder")
            check(
                len(given) == held + self.request.scales_loss,
                "the step takes another number of arguments",
            )
            check(
                step.parameters == self.facts.parameters
                and step.buffers == self.facts.buffers
                and step.trainable == self.facts.trainable
                and step.num_inputs == self.facts.num_inputs
                and step.num_outputs == self.facts.num_outputs,
                "the step and the facts about it differ",
            )
            return step

    @cached_property
    def _lowered(self) -> LoweredStep:
        return lower_traced(self.request, self.traced)

    @cached_property
    def _constants(self) -> dict[str, Any]:
        found = unpack_tensors(self.archive.json(_TENSORS), self.archive.part)
        place = self.request.backend.place
        return {name: place(tensor) for name, tensor in found.items()}


def has_step(archive: Archive) -> bool:
    """Whether a file holds a compiled step."""
    return _FACTS in archive.parts


def read_compiled(archive: Archive, request: StepRequest) -> CompiledStep:
    """The step in a file, for a request that it fits; DamagedFileError otherwise.

    What a run needs is read and checked at once.
    """
    with _reading(archive), _without_collection():
        data = archive.json(_FACTS)
        check(isinstance(data, dict), f"{_FACTS} is no object")
        facts = _read_facts(data)
        _check_fits(facts, request)
        capture = KeptCapture(archive, request, facts)
        step = CompiledStep(request, capture, whole(data["micro_batch"]))
        if capture.replay is None:
            capture.traced  # noqa: B018 - read now, so that damage is told now
        return step


def check_micro_batch(step: CompiledStep) -> None:
    """UsageError if the options cut other micro-batches than the step is made for."""
    _, size = one_micro_batch(step.request)
    if size != step.micro_batch:
        raise UsageError(
            f"The step was compiled for micro-batches of {step.micro_batch}, and the "
            f"options make them {size}.",
            remedy="Use the options that the model was compiled with.",
        )


def _read_facts(data: dict[str, Any]) -> StepFacts:
    names = {name: _names(data[name]) for name in _NAMES}
    counts = {name: whole(data[name]) for name in _COUNTS}
    fields_read: dict[str, Any] = {**names, **counts}
    check(counts["num_chips"] > 0 and counts["num_stages"] > 0, "it has no chip")
    draws = data["draws_random_numbers"]
    check(isinstance(draws, bool), "it is not said whether it draws random numbers")
    constant = frozenset(whole_list(data["constant_outputs"]))
    check(all(n < counts["num_outputs"] for n in constant), "odd constant outputs")
    return StepFacts(
        **fields_read,
        draws_random_numbers=draws,
        constant_outputs=constant,
        example=unpack_structure(data["example"]),
    )


def _names(value: Any) -> tuple[str, ...]:
    is_names = isinstance(value, list) and all(isinstance(n, str) for n in value)
    check(is_names and len(set(value)) == len(value), "names are missing or repeated")
    return tuple(value)


def _check_fits(facts: StepFacts, request: StepRequest) -> None:
    """The step is one of the module that it is read for."""
    parameters = tuple(name for name, _ in request.module.named_parameters())
    buffers = tuple(name for name, _ in request.module.named_buffers())
    check(facts.parameters == parameters, "it is of a model with other parameters")
    check(facts.buffers == buffers, "it is of a model with other buffers")
    check(facts.trainable == (request.trainable or ()), "it trains other parameters")
    check(set(facts.gradients) <= set(facts.trainable), "it has unknown gradients")
    check(facts.num_inputs == len(request.inputs), "it takes other inputs")


@contextmanager
def _reading(archive: Archive) -> Iterator[None]:
    """What is wrong with the contents of a file is damage to it."""
    try:
        yield
    except (ValueError, KeyError, TypeError, RuntimeError) as error:
        raise DamagedFileError(archive.path, str(error)) from error


@contextmanager
def _without_collection() -> Iterator[None]:
    """Many small objects are made and none of them is garbage: do not look for any."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
