"""Rates: worker cycles per group of elements, by element type, and codelet naming."""

from __future__ import annotations

from dataclasses import dataclass

from popple.graph import DType
from popple.program import Codelet, Thread
from popple.units import ceil_div

DATA_PATH_BYTES = 8
"""Bytes a worker loads or stores in one instruction."""

_NAMES = {
    DType.F32: "float",
    DType.F16: "half",
    DType.BF16: "bfloat",
    DType.F8: "quarter",
    DType.I32: "int",
    DType.U32: "unsigned int",
    DType.I16: "short",
    DType.I8: "char",
    DType.U8: "unsigned char",
    DType.BOOL: "bool",
}


@dataclass(frozen=True)
class Rate:
    """`cycles` worker cycles for every `group` elements."""

    cycles: int
    group: int

    def worker_cycles(self, num_elements: int, num_workers: int) -> int:
        """Cycles of the worker with the most of `num_elements` elements."""
        share = ceil_div(num_elements, num_workers)
        return self.cycles * ceil_div(share, self.group)


@dataclass(frozen=True)
class Rates:
    """One operation on floats, halves and everything else."""

    f32: Rate
    f16: Rate
    integer: Rate = Rate(7, 1)

    def of(self, dtype: DType) -> Rate:
        """The rate for one element type; small floats count as halves."""
        if not dtype.is_float:
            return self.integer
        return self.f32 if dtype is DType.F32 else self.f16


def rates(
    f32: tuple[int, int], f16: tuple[int, int], integer: tuple[int, int] = (7, 1)
) -> Rates:
    """Rates from (cycles, group) pairs, the form of the tables."""
    return Rates(Rate(*f32), Rate(*f16), Rate(*integer))


def num_lanes(dtype: DType) -> int:
    """Elements in one 64-bit word."""
    return DATA_PATH_BYTES // dtype.num_bytes


def type_name(dtype: DType) -> str:
    """The element type as codelet names spell it."""
    return _NAMES[dtype]


def multi_codelet(
    name: str, dtype: DType, code_bytes: int, state_bytes: int = 16
) -> Codelet:
    """A codelet run by all workers of a tile: `popops::UnaryOp1D<exp,half>`.

    Code sizes are estimates: whole models hold 6 to 17 KB of vertex code per tile in
    a few dozen codelets, so one takes 200 to 900 bytes. State is a few pointers and
    counts of 4 bytes.
    """
    return Codelet(_full_name(name, dtype), Thread.MULTI, code_bytes, state_bytes)


def worker_codelet(
    name: str, dtype: DType, code_bytes: int, state_bytes: int = 16
) -> Codelet:
    """A codelet that one worker runs alone; a tile has several vertices of it."""
    return Codelet(_full_name(name, dtype), Thread.WORKER, code_bytes, state_bytes)


def _full_name(name: str, dtype: DType) -> str:
    base, _, argument = name.partition("<")
    arguments = ",".join(part for part in (argument, type_name(dtype)) if part)
    return f"{base}<{arguments}>"
