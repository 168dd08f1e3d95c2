"""Variables of a report that lie on one tile, with their bytes there."""

from __future__ import annotations

from dataclasses import replace

from popple.report.codec import Runs
from popple.report.parts.variables import Variable
from popple.report.read import Report

_ON_TILE = """
    SELECT unlowered_var_id, name, bytes, eq_class_id
    FROM var_bytes_by_eq_class LEFT JOIN unlowered_vars ON id = unlowered_var_id
    WHERE tile = ?"""


def variables_on_tile(report: Report, tile: int) -> tuple[Variable, ...]:
    """What of every variable lies on a tile; nothing where the file does not tell."""
    own = tuple(
        replace(each, num_bytes=num_bytes, bytes_by_tile=())
        for each in report.variables
        if (num_bytes := _value_at(each.bytes_by_tile, tile))
    )
    return own or report.load("variables", lambda report: _select_on_tile(report, tile))


def _select_on_tile(report: Report, tile: int) -> tuple[Variable, ...]:
    """Genuine files list every variable tile by tile."""
    chip = tile // report.target.tiles_per_chip
    return tuple(
        Variable(number, name or "", num_bytes, class_id, chip)
        for number, name, num_bytes, class_id in report.connection.execute(
            _ON_TILE, (tile,)
        )
    )


def _value_at(runs: Runs, tile: int) -> int:
    end = 0
    for count, value in runs:
        end += count
        if tile < end:
            return value
    return 0
