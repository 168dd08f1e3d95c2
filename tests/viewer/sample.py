"""Made-up but plausible view data: a transformer trained over a few chips.

The shape is that of `popple.report.view_data`, format 2. Everything is drawn from one
seed, so equal arguments give equal data.
"""

from __future__ import annotations

import math
import random
from typing import Any

CAPACITY_BYTES = 638_976
CLOCK_HZ = 1_850_000_000

CATEGORY_SHARES = {
    "variable": 0.58,
    "vertexInstanceState": 0.09,
    "vertexCode": 0.08,
    "internalExchangeCode": 0.07,
    "controlCode": 0.05,
    "message": 0.04,
    "rearrangement": 0.03,
    "constant": 0.03,
    "stack": 0.02,
    "hostExchangeCode": 0.01,
}

# Kind, family, what usually bounds it, and how costly it is relative to the others.
KINDS = (
    ("aten.mm", "matmul", "compute", 30.0),
    ("aten.bmm", "matmul", "compute", 18.0),
    ("aten.gelu", "elementwise", "compute", 5.0),
    ("aten.add", "elementwise", "exchange", 2.0),
    ("aten._softmax", "softmax", "compute", 6.0),
    ("aten.native_layer_norm", "norm", "exchange", 5.0),
    ("aten.embedding", "gather", "exchange", 4.0),
    ("aten.transpose", "shape", "exchange", 3.0),
    ("aten.sum", "reduce", "exchange", 3.0),
    ("aten.native_dropout", "random", "compute", 2.0),
)
MODULES = ("attention.query", "attention.output", "intermediate", "output.dense")
PHASES = ("forward", "backward", "update")


def runs_of(values: list[int]) -> list[list[int]]:
    """Values as `[count, value]` runs."""
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][1] == value:
            runs[-1][0] += 1
        else:
            runs.append([1, value])
    return runs


def tile_totals(
    rng: random.Random, num_chips: int, tiles: int, fill: float
) -> list[int]:
    """Bytes on every tile: a level per chip, blocks of tiles, and some noise."""
    totals: list[int] = []
    for chip in range(num_chips):
        level = fill * CAPACITY_BYTES * (0.82 + 0.06 * (chip % 3))
        for tile in range(tiles):
            block = 1 + 0.06 * math.sin(tile // 46) - 0.12 * (tile > 0.9 * tiles)
            value = level * block * rng.uniform(0.985, 1.015)
            totals.append(8 * int(value // 8))
    return totals


def make_memory(
    rng: random.Random, num_chips: int, tiles: int, fill: float
) -> dict[str, Any]:
    totals = tile_totals(rng, num_chips, tiles, fill)
    always = [8 * int(value * 0.55 // 8) for value in totals]
    gaps = [min(value + 8 * rng.randrange(900), 2 * CAPACITY_BYTES) for value in totals]
    series = {
        "total": runs_of(totals),
        "total_including_gaps": runs_of(gaps),
        "always_live": runs_of(always),
        "transient_peak": runs_of([t - a for t, a in zip(totals, always, strict=True)]),
    }
    categories = {
        name: runs_of([int(value * share) for value in totals])
        for name, share in CATEGORY_SHARES.items()
    }
    return {
        "series": series,
        "categories": categories | {"dwarf": [[len(totals), 0]]},
        "capacity_bytes": CAPACITY_BYTES,
    }


def make_variables(rng: random.Random, count: int, stem: str) -> list[dict[str, Any]]:
    sizes = sorted((int(3e7 * rng.random() ** 3) for _ in range(count)), reverse=True)
    return [
        {"name": f"bert/encoder/layer.{i % 24}/{stem}_{i}", "bytes": size}
        for i, size in enumerate(sizes)
    ]


def make_chip_liveness(
    rng: random.Random, chip: int, num_steps: int, chip_bytes: int
) -> dict[str, Any]:
    """Activations pile up in the forward half and go away in the backward half."""
    rise = [1 - abs(2 * step / num_steps - 1) for step in range(num_steps)]
    bytes_at = [int(chip_bytes * 0.4 * (r**0.8 + 0.15 * rng.random())) for r in rise]
    return {
        "chip": chip,
        "always_live_bytes": int(chip_bytes * (0.36 + 0.03 * chip)),
        "transient_bytes": bytes_at,
    }


def make_liveness(
    rng: random.Random, num_chips: int, tiles: int, num_steps: int
) -> dict[str, Any]:
    chip_bytes = tiles * CAPACITY_BYTES
    chips = [
        make_chip_liveness(rng, c, num_steps, chip_bytes) for c in range(num_chips)
    ]
    peaks = [
        {
            "chip": chip["chip"],
            "step_index": max(
                range(num_steps), key=chip["transient_bytes"].__getitem__
            ),
            "bytes": max(chip["transient_bytes"]),
            "variables": make_variables(rng, 40, "activation"),
        }
        for chip in chips
    ]
    always = [
        variable | {"chip": chip}
        for chip in range(num_chips)
        for variable in make_variables(rng, 60, "weight")
    ]
    return {
        "steps": [f"layer.{i * 24 // num_steps}/Step_{i}" for i in range(num_steps)],
        "chips": chips,
        "peaks": peaks,
        "always_live_variables": always,
    }


def make_operation(rng: random.Random, index: int, num_chips: int) -> dict[str, Any]:
    kind, family, bound_by, weight = KINDS[index % len(KINDS)]
    layer = rng.randrange(24)
    cycles = int(weight * 2000 * min(rng.paretovariate(1.1), 60))
    exchange = int(cycles * rng.uniform(0.1, 0.4))
    sync = int(cycles * rng.uniform(0.01, 0.05))
    module = f"bert.encoder.layer.{layer}.{MODULES[index % len(MODULES)]}"
    return {
        "name": f"{module.removeprefix('bert.')}/{kind.removeprefix('aten.')}:{index}",
        "kind": kind,
        "family": family,
        "phase": PHASES[index % 7 // 3],
        "chip": layer * num_chips // 24,
        "stage": layer * num_chips // 24,
        "module": module,
        "line": f"models/bert.py:{120 + index % 300}",
        "cycles": cycles,
        "share": 0.0,
        "compute_cycles": cycles - exchange - sync,
        "exchange_cycles": exchange,
        "link_cycles": 0,
        "host_cycles": 0,
        "sync_cycles": sync,
        "flops": int(cycles * weight * 3000),
        "bound_by": bound_by,
        "limited_by": "memory" if index % 5 == 0 else "",
        "remark": "",
        "executions": 16,
        "rule": family,
        "bytes": rng.randrange(40_000_000),
        "temporary_bytes": 0,
        "plan": {
            "how": f"A pass of {family} on all tiles.",
            "choice": [["method", "amp-1x1"], ["estimated_cycles", str(cycles)]],
            "runners_up": [["slic: field 7", 2 * cycles]],
        },
    }


def make_operations(
    rng: random.Random, count: int, num_chips: int
) -> list[dict[str, Any]]:
    operations = [make_operation(rng, index, num_chips) for index in range(count)]
    whole = sum(operation["cycles"] for operation in operations)
    for operation in operations:
        operation["share"] = operation["cycles"] / whole
    return operations


def make_timeline(num_chips: int, num_micro_batches: int) -> list[dict[str, Any]]:
    """A pipeline: each chip is a stage; backward takes twice as long as forward."""
    slices: list[dict[str, Any]] = []
    forward, backward, update = 40_000, 80_000, 30_000
    turn = num_micro_batches * forward + num_chips * forward
    for chip in range(num_chips):
        for batch in range(num_micro_batches):
            begin = (chip + batch) * forward
            back = turn + (num_chips - 1 - chip + batch) * backward
            for phase, start, length in (
                ("forward", begin, forward - 3000),
                ("backward", back, backward - 5000),
            ):
                slices.append(
                    {
                        "chip": chip,
                        "start": start,
                        "end": start + length,
                        "label": f"{phase} {batch}",
                        "phase": phase,
                        "stage": chip,
                        "micro_batch": batch,
                    }
                )
        end = turn + (num_chips - 1 + num_micro_batches) * backward
        slices.append(
            {
                "chip": chip,
                "start": end,
                "end": end + update,
                "label": "weight update",
                "phase": "update",
                "stage": None,
                "micro_batch": None,
            }
        )
    return slices


def make_chip_times(num_chips: int) -> list[dict[str, int]]:
    """Cycles of every chip by class; later chips wait longer."""
    work = {"compute": 600, "exchange": 150, "links": 40, "host": 10, "sync": 60}
    return [{**work, "bubbles": 100 + 20 * chip} for chip in range(num_chips)]


def make_summary(num_chips: int) -> list[dict[str, Any]]:
    groups = {
        "Machine": {
            "target": "bow-pod4 (ipu2)",
            "IPUs": str(num_chips),
            "clock": "1.85 GHz",
            "memory of a tile": "624.0 KiB",
        },
        "Memory": {
            "fits": "yes, 52.8 KiB to spare on every tile",
            "fullest tile": "571.2 KiB, 91.5 % of tile 211 (566.0 KiB without gaps)",
            "all tiles": f"{num_chips * 702.1:,.1f} MiB",
            "always live": "1.5 GiB",
        },
        "Time": {
            "one run": "3,412,880 cycles, 1.84 ms",
            "throughput": "8,680 samples/s",
            "compute": "61.4 % of tile time",
            "exchange": "24.0 % of tile time",
        },
        "Program": {"compute sets": "1,204", "vertices": "8,112,640"},
        "Settings": {"execution": "pipelined", "gradient accumulation": "16"},
    }
    return [
        {"group": name, "rows": [list(row) for row in rows.items()]}
        for name, rows in groups.items()
    ]


def make_view_data(
    *,
    num_chips: int = 4,
    tiles_per_chip: int = 1472,
    num_operations: int = 800,
    num_steps: int = 2000,
    fill: float = 0.9,
    seed: int = 0,
) -> dict[str, Any]:
    """Data for every view; `fill` above 1 makes a program that does not fit."""
    rng = random.Random(seed)
    return {
        "format": 2,
        "title": "BERT-Large training, sequence length 128",
        "generator": "popple 0.1.0",
        "modelled": True,
        "summary": make_summary(num_chips),
        "target": {
            "name": "bow-pod4",
            "num_chips": num_chips,
            "tiles_per_chip": tiles_per_chip,
            "num_tiles": num_chips * tiles_per_chip,
            "bytes_per_tile": CAPACITY_BYTES,
            "clock_hz": CLOCK_HZ,
        },
        "memory": make_memory(rng, num_chips, tiles_per_chip, fill),
        "liveness": make_liveness(rng, num_chips, tiles_per_chip, num_steps),
        "energy": None,
        "operations": make_operations(rng, num_operations, num_chips),
        "chip_times": make_chip_times(num_chips),
        "timeline": make_timeline(num_chips, 16),
        "notes": [
            "2 operators have no rule of their own; their cost comes from the generic "
            "rule: aten.erfinv (3 times), aten.cumsum (1 time).",
            "Host streams are modelled at the rate of the host link, without jitter.",
        ],
    }


def make_empty_view_data() -> dict[str, Any]:
    """A report in which no view has anything to show."""
    data = make_view_data(num_chips=1, tiles_per_chip=4, num_operations=0, num_steps=1)
    nothing: dict[str, Any] = {"steps": [], "chips": [], "peaks": []}
    series: dict[str, Any] = {name: [] for name in data["memory"]["series"]}
    return data | {
        "summary": [],
        "memory": {"series": series, "categories": {}, "capacity_bytes": 0},
        "liveness": nothing | {"always_live_variables": []},
        "chip_times": [],
        "timeline": [],
        "notes": [],
    }
