"""Footprints: memory of each layer of a model, as profiles of real models have it.

A layer's code and state are those of the steps of its ops, each vertex type once on a
tile; its variables are the most that its steps use at once on every tile, added up over
the tiles (graphcore/popliner counts them so).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import torch

import popple
from benchmarks.calibration.bert import Bert, Form, Shape, with_dtype
from benchmarks.calibration.rows import NotExpressed, Row, Rows, read_csv
from benchmarks.calibration.runs import Run, model_run
from popple.program import Category, Numbering, TileVector, Variable, accesses_of
from popple.sim.footprint import code_and_state
from popple.sim.sweep import find_peak

FILE = "popliner_memory.csv"
_CHIP = "gc200"
_CATEGORIES = {
    "vertex_state_B": Category.VERTEX_STATE,
    "vertex_code_B": Category.VERTEX_CODE,
    "exchange_code_B": Category.EXCHANGE_CODE,
    "control_code_B": Category.CONTROL_CODE,
}
_VARIABLES = "variables_B"
_ALL = "all"
_SIZES = {"Base": (12, 768, 12), "Large": (24, 1024, 16)}
_BERT = re.compile(r"BERT-(\w+) SQuAD inference SL(\d+) mbs(\d+)\b.*\bFP16")


def footprint_rows(facts: Path) -> Iterator[Rows]:
    """The layers of all models: each kind of memory, and all of it."""
    for line in read_csv(facts / FILE):
        columns = [*_CATEGORIES, _VARIABLES]
        sizes = {name: float(line[name]) for name in columns}
        sizes[_ALL] = sum(sizes.values())
        rows = tuple(
            Row(_name(line), line["model"], _CHIP, _quantity(column), published)
            for column, published in sizes.items()
            if published
        )
        if not rows:
            continue
        layer = line["layer"] if line["level"] == "layer" else ""
        yield Rows(rows, partial(_figures, line["config"], layer))


def _name(line: Mapping[str, str]) -> str:
    part = f"layer {line['layer']}" if line["level"] == "layer" else line["op"]
    return f"{line['model']} {part}"


def _quantity(column: str) -> str:
    words = column.removesuffix("_B").replace("_", " ")
    return f"layer {words} bytes"


def _figures(config: str, layer: str) -> Mapping[str, float]:
    if not layer.isdigit():
        raise NotExpressed("ops go by names of their framework")
    layers = _bert_layers(config)
    if int(layer) not in layers:
        raise NotExpressed(f"the module has no layer {layer}")
    sizes = layers[int(layer)]
    return {_quantity(column): size for column, size in sizes.items()}


@cache
def _bert_layers(config: str) -> Mapping[int, Mapping[str, float]]:
    """The memory of each layer of the BERT that a configuration describes."""
    return layer_sizes(_modelled(config))


def model_bytes(config: str, metric: str) -> float:
    """One kind of memory of the whole model that a configuration describes."""
    memory = _modelled(config).simulation.memory
    kind = metric.removeprefix("memory: ")
    if kind == "max tile":
        return memory.total.maximum
    if kind == "total":
        return memory.total.total
    categories = {
        column.removesuffix("_B").replace("_", " "): category
        for column, category in _CATEGORIES.items()
    }
    if kind not in categories:
        raise NotExpressed(f"{kind} is counted in another way")
    return _total(memory.by_category, categories[kind])


@cache
def _modelled(config: str) -> popple.Modelled:
    found = _BERT.search(config)
    if found is None or found[1] not in _SIZES:
        raise NotExpressed("sizes and batch are not all said")
    sequence, batch = int(found[2]), int(found[3])
    shape = Shape(*_SIZES[found[1]], sequence)
    ids = torch.zeros(batch, sequence, dtype=torch.int32)
    is_half = "half partials" in config
    run = Run(
        with_dtype(Bert(shape, Form()), torch.float16),
        (ids, ids, ids.float()),
        partials=torch.float16 if is_half else torch.float32,
        # PopLiner has layers compiled apart, so that each has a size of its own.
        is_outlined=False,
    )
    return model_run(run, _CHIP)


def layer_sizes(modelled: popple.Modelled) -> dict[int, dict[str, float]]:
    """Bytes by column of each layer, by the number in the name of its module."""
    names: dict[int, set[str]] = {}
    for op in modelled.graph.ops:
        if found := re.search(r"layers\.(\d+)", op.module):
            names.setdefault(int(found[1]), set()).add(op.name)
    return {layer: _sizes(modelled, ops) for layer, ops in sorted(names.items())}


def _sizes(modelled: popple.Modelled, ops: set[str]) -> dict[str, float]:
    rows = _steps_of(modelled, ops)
    sizes = _code_bytes(modelled, ops)
    sizes[_VARIABLES] = _variable_bytes(modelled, rows)
    sizes[_ALL] = sum(sizes.values())
    return sizes


def _steps_of(modelled: popple.Modelled, ops: set[str]) -> Numbering:
    steps = modelled.simulation.steps
    return tuple(row for row in steps if getattr(row.step, "op", None) in ops)


def _code_bytes(modelled: popple.Modelled, ops: set[str]) -> dict[str, float]:
    """Code and state that the ops run, their own or that of ops planned alike."""
    outlined, chip = modelled.program.outlined, modelled.target.chip
    program = replace(modelled.program, outlined={})
    rows = _steps_of(modelled, {outlined.get(op, op) for op in ops})
    found = code_and_state(program, rows, chip)
    always = code_and_state(program, (), chip)
    return {
        column: float(_total(found, category) - _total(always, category))
        for column, category in _CATEGORIES.items()
    }


def _total(sizes: Mapping[Category, TileVector], category: Category) -> int:
    return sizes[category].total if category in sizes else 0


def _variable_bytes(modelled: popple.Modelled, rows: Numbering) -> float:
    """The most that the variables of some steps take while these run."""
    liveness, program = modelled.simulation.liveness, modelled.program
    used = {n for row in rows for names in accesses_of(row.step) for n in names}
    first, last = rows[0].id, rows[-1].id
    lives = {
        name: tuple(
            (max(start, first), min(stop, last))
            for start, stop in liveness.intervals.get(name, ((first, last),))
            if start <= last and stop >= first
        )
        for name in used
    }
    variables: list[Variable] = [program.variables[name] for name in sorted(used)]
    peak = find_peak(variables, lives, program.num_tiles)
    return float(peak.bytes_by_tile.total)
