"""Pretraining of BERT by replicas, each a pipeline of chips.

A row says how large the model is and on how many chips it runs; what it leaves out is
as the vendor's public configurations have it (graphcore/examples,
nlp/bert/pytorch/configs_pretraining.yml), which the rows of its performance pages are
of: how layers lie on chips, sizes of micro-batches, memory bounds of plans, optimiser
state off the chip and shared out over replicas, no dropout of attention.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import Tensor

from benchmarks.calibration.bert import Form, Pretraining, Shape
from benchmarks.calibration.published import Published
from benchmarks.calibration.rows import NotExpressed
from benchmarks.calibration.runs import Run, model_run

_SIZES = {"Base": (12, 768, 12), "Large": (24, 1024, 16)}
_SYSTEMS = {"bow": "bow-", "gc200": ""}
_DROPOUT = 0.1
_MASKED = {128: 20, 384: 56, 512: 76}


@dataclass(frozen=True)
class Usual:
    """A public configuration; the last proportions are those of 64 chips or more."""

    micro_batch: int
    layers_by_chip: tuple[int, ...]
    proportions: tuple[float, ...]
    wide_proportions: tuple[float, ...]


_USUAL: Mapping[tuple[str, int], Usual] = {
    ("Base", 128): Usual(32, (0, 4, 4, 4), (0.25,) * 4, (0.25,) * 4),
    ("Base", 512): Usual(8, (0, 4, 4, 4), (0.25,) * 4, (0.25,) * 4),
    ("Large", 128): Usual(
        8, (3, 7, 7, 7), (0.15, 0.25, 0.25, 0.25), (0.14, 0.19, 0.19, 0.19)
    ),
    ("Large", 512): Usual(
        2, (3, 7, 7, 7), (0.10, 0.15, 0.15, 0.15), (0.13, 0.19, 0.19, 0.19)
    ),
}
# Rows that refer to the configurations of the same round for PopART.
_SAME_AS_POPART = {
    16: "8 IPUs/replica x 2 replicas, mbs 3, avg 2, grad accum 256, AMP .3",
    64: "8 IPUs/replica x 8 replicas, mbs 3, avg 2, grad accum 96, AMP 1.0",
}
_PACKED = {128: 1.17, 384: 1.7, 512: 2.0}


@dataclass(frozen=True)
class BertPipeline:
    """BERT that is trained by replicas, each a pipeline of chips."""

    shape: Shape
    form: Form
    layers_by_chip: tuple[int, ...]
    micro_batch: int
    accumulation: int
    num_replicas: int
    memory_proportions: tuple[float, ...]
    has_states_off_chip: bool
    has_shared_updates: bool


def bert_training(row: Published) -> float:
    """Sequences a second of all replicas, each a pipeline of chips."""
    if row.config == "as PopART config" and row.num_chips in _SAME_AS_POPART:
        config = _SAME_AS_POPART[row.num_chips]
        row = replace(row, workload="BERT-Large SL512 packed", config=config)
    rate = pipeline_rate(pipeline_of(row), system_of(row))
    return _sequences_by_pack(row) * rate


def pipeline_of(row: Published) -> BertPipeline:
    """The pipeline of a row, completed by the usual configuration."""
    found = row.find(r"BERT-(\w+) .*SL(\d+)", row.workload)
    size, length = found[1], int(found[2])
    shape = shape_of(size, length)
    is_mlperf = row.name.startswith("mlperf")
    usual = None if is_mlperf else _USUAL.get((size, length))
    layers = _layers_by_chip(row, shape.num_layers, usual)
    micro_batch = _micro_batch(row, usual)
    num_replicas = row.num_chips // len(layers)
    return BertPipeline(
        shape,
        Form(dropout=_DROPOUT, has_attention_dropout=is_mlperf),
        layers,
        micro_batch,
        _accumulation(row, micro_batch * num_replicas),
        num_replicas,
        _memory_proportions(row, len(layers), usual),
        has_states_off_chip=not is_mlperf or "state off-chip" in row.config,
        has_shared_updates=not is_mlperf or "RTS" in row.config,
    )


@cache
def pipeline_rate(pipeline: BertPipeline, system: str) -> float:
    """Samples a second of all replicas."""
    shape, layers = pipeline.shape, pipeline.layers_by_chip
    run = Run(
        Pretraining(shape, pipeline.form, layers).half(),
        _pretraining_inputs(shape, pipeline.micro_batch),
        accumulation=pipeline.accumulation,
        num_replicas=pipeline.num_replicas,
        chips_by_replica=len(layers),
        optimizer="LAMB",
        memory_proportions=pipeline.memory_proportions,
        has_states_off_chip=pipeline.has_states_off_chip,
        has_shared_updates=pipeline.has_shared_updates,
    )
    return model_run(run, system).samples_per_second


def shape_of(size: str, sequence: int) -> Shape:
    """The sizes of a BERT or of an encoder like it."""
    if size not in _SIZES:
        raise NotExpressed(f"the sizes of {size} are not known")
    return Shape(*_SIZES[size], sequence)


def system_of(row: Published) -> str:
    """The pod with the chips of a row."""
    if row.chip not in _SYSTEMS:
        raise NotExpressed(f"no system of {row.num_chips} {row.chip} chips")
    return f"{_SYSTEMS[row.chip]}pod{row.num_chips}"


def _said(row: Published, pattern: str) -> re.Match[str] | None:
    return re.search(pattern, row.config)


def _micro_batch(row: Published, usual: Usual | None) -> int:
    if usual is not None and not _said(row, r"mbs (\d+)"):
        return usual.micro_batch
    return int(row.find(r"mbs (\d+)")[1])


def _layers_by_chip(
    row: Published, num_layers: int, usual: Usual | None
) -> tuple[int, ...]:
    """As listed, else as usual, else as many for each chip of a replica."""
    if listed := _said(row, r"(?:layers(?:/IPU)?|IPUs/replica) \[([\d,]+)\]"):
        return tuple(int(count) for count in listed[1].split(","))
    if usual is not None:
        return usual.layers_by_chip
    num_chips = int(row.find(r"(\d+) IPUs/replica")[1])
    whole, rest = divmod(num_layers, num_chips)
    late = num_chips - rest
    return tuple(whole + (chip >= late) for chip in range(num_chips))


def _accumulation(row: Published, micro_batches: int) -> int:
    """Micro-batches of each update, as said or as the global batch has it."""
    if said := _said(row, r"grad accum (\d+)"):
        return int(said[1])
    return round(int(row.find(r"GBS (\d+)")[1]) / micro_batches)


def _sequences_by_pack(row: Published) -> float:
    if "packed" not in row.workload:
        return 1.0
    if said := _said(row, r"(?:avg|packing factor) ([\d.]+)"):
        return float(said[1])
    return _PACKED[int(row.find(r"SL(\d+)", row.workload)[1])]


def _memory_proportions(
    row: Published, num_chips: int, usual: Usual | None
) -> tuple[float, ...]:
    """As said, as usual, or the planner's own."""
    said = _said(row, r"AMP \[?((?:[\d.]+,?)+)\]?(?!\d|-)")
    if said is None and usual is not None:
        is_wide = row.num_chips >= 64
        return usual.wide_proportions if is_wide else usual.proportions
    if said is None:
        return ()
    listed = said[1].strip(",").split(",")
    found = [float(each) for each in listed if each.strip(".")]
    return tuple(found * num_chips if len(found) == 1 else found)


def _pretraining_inputs(shape: Shape, micro_batch: int) -> tuple[Tensor, ...]:
    masked = _MASKED[shape.sequence]
    ids = torch.zeros(micro_batch, shape.sequence, dtype=torch.int32)
    places = torch.zeros(micro_batch, masked, dtype=torch.int64)
    goals = torch.zeros(micro_batch, masked + 1, dtype=torch.int64)
    return ids, ids.clone(), torch.ones(ids.shape), places, goals
