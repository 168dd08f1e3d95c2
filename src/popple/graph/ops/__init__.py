"""The op table: every kind of op, by family, one file per family.

The file of a family has the same name in `plan/rules`. A test walks the table and
fails for a family without rules.
"""

from popple.graph.ops.table import FAMILIES, OPS, find_op, get_op

__all__ = ["FAMILIES", "OPS", "find_op", "get_op"]
