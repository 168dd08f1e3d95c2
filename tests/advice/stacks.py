"""A stack of linear layers with its backward pass, as a front end captures it."""

from __future__ import annotations

from dataclasses import replace

from popple.case import Case
from popple.graph import Graph, parse_graph, render_graph
from popple.options import ModelOptions, UpdateOptions
from popple.target import Target, load_system

WIDTH = 512
ROWS = 64


def stack(num_layers: int, rows: int = ROWS) -> Graph:
    """`num_layers` products of `rows` rows with square weights."""
    x, w = f"f16[{rows},{WIDTH}]", f"f16[{WIDTH},{WIDTH}]"
    place = 'chip=0 stage=0 in "layers.{}"'
    lines = [f"input %x0 : {x}", *(f"weight %w{n} : {w}" for n in range(num_layers))]
    for n in range(num_layers):
        where = f"forward {place.format(n)}"
        lines.append(f"matmul %x{n + 1} : %x{n + 1} : {x} = (%x{n}, %w{n}) {where}")
    gradient = f"x{num_layers}"
    order = '{"order": [1, 0]}'
    for n in reversed(range(num_layers)):
        where = f"backward {place.format(n)}"
        turned = f"f16[{WIDTH},{rows}] shares %x{n}"
        lines.append(f"permute %t{n} : %t{n} : {turned} = (%x{n}) {order} {where}")
        lines.append(f"matmul %d{n} : %d{n} : {w} = (%t{n}, %{gradient}) {where}")
        if n:
            held = f"{w} shares %w{n}"
            lines.append(f"permute %u{n} : %u{n} : {held} = (%w{n}) {order} {where}")
            lines.append(f"matmul %g{n} : %g{n} : {x} = (%{gradient}, %u{n}) {where}")
            gradient = f"g{n}"
    lines.append(f"output %x{num_layers}")
    inner = "\n".join(f"  {line}" for line in lines)
    return parse_graph(f'graph "stack" {{\n{inner}\n}}\n')


def stack_case(num_layers: int, num_tiles: int = 16, rows: int = ROWS) -> Case:
    """Training by Adam on chips with few tiles: 10 MB a chip with 16 of them."""
    system = load_system("bow-pod16")
    few = replace(system, chip=replace(system.chip, num_tiles=num_tiles))
    gradients = {f"w{n}": f"d{n}" for n in range(num_layers)}
    update = UpdateOptions("adam_update", 2, gradients)
    options = ModelOptions(micro_batch=rows, update=update)
    return Case(stack(num_layers, rows), Target(few), options, "poptorch")


def tied_case(num_layers: int) -> Case:
    """The stack without its backward pass, behind it a head with the first weights."""
    case = stack_case(num_layers)
    lines = render_graph(case.graph).splitlines()
    kept = [line for line in lines if "backward" not in line and "output" not in line]
    x = f"f16[{ROWS},{WIDTH}]"
    kept[-1:] = [
        f"  matmul %head : %head : {x} = (%x{num_layers}, %w0) "
        'forward chip=0 stage=0 in "head"',
        "  output %head",
        "}",
    ]
    graph = parse_graph("\n".join(kept) + "\n")
    return replace(case, graph=graph).with_options(update=None)
