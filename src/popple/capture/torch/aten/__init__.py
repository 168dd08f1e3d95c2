"""Lowering of aten operators to ops of the Graph: one table, one file per family.

Entries are keyed by the operator's name without overload (`aten.add`). In-place forms
(`aten.add_`) use the entry of the plain form and share the memory they overwrite.
"""

from popple.capture.torch.aten.annotation import PLANNED
from popple.capture.torch.aten.table import TABLE, find_lowering, lower_generic

__all__ = ["PLANNED", "TABLE", "find_lowering", "lower_generic"]
