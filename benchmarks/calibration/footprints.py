"""Footprints: memory of each layer of a model, as profiles of real models have it.

A layer's code and state are those of the steps of its ops, each vertex type once on a
tile, exchange code where it first stands; its variables are the most that its steps use
at once on every tile, added up over the tiles (graphcore/popliner counts them so).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import popple
from benchmarks.calibration.popliner import CHIP, Profiled, profiled
from benchmarks.calibration.rows import NotExpressed, Row, Rows, read_csv
from popple.program import Category, Numbering, TileVector, Variable, accesses_of
from popple.sim.footprint import added_exchange_code, code_and_state
from popple.sim.sweep import find_peak

FILE = "popliner_memory.csv"
_CATEGORIES = {
    "vertex_state_B": Category.VERTEX_STATE,
    "vertex_code_B": Category.VERTEX_CODE,
    "exchange_code_B": Category.EXCHANGE_CODE,
    "control_code_B": Category.CONTROL_CODE,
}
_EXCHANGE = "exchange_code_B"
_VARIABLES = "variables_B"
_ALL = "all"
_COLUMNS = {
    "vertex state": "vertex_state_B",
    "vertex code": "vertex_code_B",
    "exchange code": _EXCHANGE,
    "control code": "control_code_B",
    "variables": _VARIABLES,
    "total": _ALL,
}
_STAGES = (
    (r"BERT-Large inference second half", "bert_large_squad_inf", range(12, 24)),
    (r"BERT-Large SQuAD inference SL128 mbs1", "bert_large_squad_inf", None),
    (r"BERT demo_tiny_128 SQuAD training", "bert_demo_tiny_train", None),
)
"""What the figures of several layers together are about: all ops, or some layers"""


def footprint_rows(facts: Path) -> Iterator[Rows]:
    """The layers of all models: each kind of memory, and all of it."""
    for line in read_csv(facts / FILE):
        columns = [*_CATEGORIES, _VARIABLES]
        sizes = {name: float(line[name]) for name in columns}
        sizes[_ALL] = sum(sizes.values())
        rows = tuple(
            Row(_name(line), line["model"], CHIP, _quantity(column), published)
            for column, published in sizes.items()
            if published
        )
        if not rows:
            continue
        layer = line["layer"] if line["level"] == "layer" else ""
        yield Rows(rows, partial(_figures, line["model"], layer))


def _name(line: Mapping[str, str]) -> str:
    part = f"layer {line['layer']}" if line["level"] == "layer" else line["op"]
    return f"{line['model']} {part}"


def _quantity(column: str) -> str:
    words = column.removesuffix("_B").replace("_", " ")
    return f"layer {words} bytes"


def _figures(model: str, layer: str) -> Mapping[str, float]:
    if not layer.isdigit():
        raise NotExpressed("ops go by names of their framework")
    layers = _layers(model)
    if int(layer) not in layers:
        raise NotExpressed(f"the module has no layer {layer}")
    sizes = layers[int(layer)]
    return {_quantity(column): size for column, size in sizes.items()}


@cache
def _layers(model: str) -> Mapping[int, Mapping[str, float]]:
    """The memory of each layer of a model."""
    return layer_sizes(profiled(model))


def model_bytes(workload: str, metric: str) -> float:
    """One kind of memory of a whole model, or of many of its layers together."""
    for pattern, model, layers in _STAGES:
        if re.match(pattern, workload):
            return _stage_bytes(profiled(model), layers, metric)
    raise NotExpressed("sizes and batch are not all said")


def _stage_bytes(model: Profiled, layers: range | None, metric: str) -> float:
    kind = metric.removeprefix("memory: ")
    if kind == "max tile" and layers is None:
        return model.modelled.simulation.memory.total.maximum
    if kind not in _COLUMNS:
        raise NotExpressed(f"{kind} is counted in another way")
    if layers is None:
        ops = frozenset(op.name for op in model.modelled.graph.ops)
    else:
        ops = frozenset[str]().union(*(model.ops_by_layer[each] for each in layers))
    return _sizes(model.modelled, ops, _exchange_bytes(model.modelled))[_COLUMNS[kind]]


def layer_sizes(model: Profiled) -> dict[int, dict[str, float]]:
    """Bytes by column of each layer."""
    exchange = _exchange_bytes(model.modelled)
    return {
        layer: _sizes(model.modelled, ops, exchange)
        for layer, ops in model.ops_by_layer.items()
    }


def _sizes(
    modelled: popple.Modelled, ops: Collection[str], exchange: Mapping[int, int]
) -> dict[str, float]:
    outlined = modelled.program.outlined
    standing = _steps_of(modelled, {outlined.get(op, op) for op in ops})
    sizes = _code_bytes(modelled, standing)
    sizes[_EXCHANGE] = float(sum(exchange.get(row.id, 0) for row in standing))
    sizes[_VARIABLES] = _variable_bytes(modelled, _steps_of(modelled, ops))
    sizes[_ALL] = sum(sizes.values())
    return sizes


def _steps_of(modelled: popple.Modelled, ops: Collection[str]) -> Numbering:
    steps = modelled.simulation.steps
    return tuple(row for row in steps if getattr(row.step, "op", None) in ops)


def _exchange_bytes(modelled: popple.Modelled) -> dict[int, int]:
    """Bytes of exchange code that each step adds, by its number."""
    size = modelled.target.chip.instruction_bytes
    simulation = modelled.simulation
    lives = simulation.liveness.intervals
    added = added_exchange_code(modelled.program, simulation.steps, lives)
    return {number: size * code.total for number, code in added.items()}


def _code_bytes(modelled: popple.Modelled, rows: Numbering) -> dict[str, float]:
    """Code and state of steps, those of ops planned alike included."""
    chip, program = modelled.target.chip, replace(modelled.program, outlined={})
    lives = modelled.simulation.liveness.intervals
    found = code_and_state(program, rows, lives, chip)
    always = code_and_state(program, (), lives, chip)
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
