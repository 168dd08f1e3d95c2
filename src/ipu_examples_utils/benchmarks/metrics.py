"""Numbers of a benchmark: read off what its command wrote, or derived from others."""

from __future__ import annotations

import ast
import logging
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from popple.errors import UsageError

Results = dict[str, dict[str, Any]]
"""By metric: how the number was reduced, and the number; None if there is none."""

_LOG = logging.getLogger(__name__)
_REDUCTIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: sum(values) / len(values),
    "final": lambda values: values[-1],
    "min": min,
    "value": lambda values: values[0],
}
_OPERATORS: Mapping[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
# Lines of our own log (`popple.logs`), with INFO.
_COMPILING = re.compile(r"(\S+)Z PO:ENGINE\s+\S+ I: (Compiling|Compiled) ")


def extract(data: Mapping[str, Any], text: str, num_processes: int = 1) -> Results:
    """The numbers that the regular expressions of `data` find in a text.

    Every process of an mpirun tells its own throughput, so these are multiplied.
    """
    results: Results = {}
    for name, how in data.items():
        kind = str(how.get("reduction_type", "mean"))
        found = [float(each) for each in re.findall(how["regexp"], text)]
        value = _reduce(name, kind, found, int(how.get("skip", 0)))
        if value is not None and name == "throughput":
            value *= num_processes
        results[name] = {kind: value}
        _LOG.info("%s = %s", name, "VALUE_NOT_FOUND" if value is None else value)
    return results


def _reduce(
    name: str, kind: str, values: list[float], num_skipped: int
) -> float | None:
    if kind not in _REDUCTIONS:
        raise UsageError(f"There is no reduction_type {kind!r}.", where=name)
    if len(values) <= num_skipped:
        _LOG.error("%s has fewer results than are skipped (%d)", name, num_skipped)
        return None
    if any(map(math.isnan, values)):
        _LOG.error("%s is NaN", name)
        return None
    if kind == "mean":
        # The worst are left out, not the first: it is warming up that is skipped.
        values = sorted(values, reverse=name == "latency")[num_skipped:]
    return _REDUCTIONS[kind](values)


def derive(
    derived: Mapping[str, Any], parameters: Mapping[str, str], results: Results
) -> Results:
    """The results with numbers that are computed from them by expressions."""
    found = dict(results)
    for name, how in derived.items():
        known = {key: next(iter(table.values())) for key, table in found.items()}
        expression = str(how["expr"]).format(**known, **parameters)
        kind = str(how.get("reduction_type", "mean"))
        found[name] = {kind: compute(expression)}
    return found


def compute(expression: str) -> float | None:
    """The value of an arithmetic expression, or None; nothing else is evaluated."""
    try:
        return _value_of(ast.parse(expression, mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, TypeError) as error:
        _LOG.error("%r cannot be computed: %s", expression, error)
        return None


def _value_of(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _value_of(node.left), _value_of(node.right)
        return _OPERATORS[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value_of(node.operand))
    raise ValueError("only numbers and arithmetic are allowed")


def compile_seconds(text: str) -> float | None:
    """Seconds from the first program's compilation to the last one's, from the log."""
    times = {
        word: [
            datetime.fromisoformat(time)
            for time, found in _COMPILING.findall(text)
            if found == word
        ]
        for word in ("Compiling", "Compiled")
    }
    if not all(times.values()):
        return None
    return (max(times["Compiled"]) - min(times["Compiling"])).total_seconds()


def count_processes(command: str) -> int:
    """Processes of an mpirun, 1 without one."""
    found = re.search(r"mpirun.+?--?np[= ](\d+)", command)
    return int(found.group(1)) if found else 1
