"""Variables: pieces of tile memory, and the categories reports sort memory by."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from popple.errors import ProgramError
from popple.program.tiles import TileVector
from popple.quick import quick


class Category(enum.Enum):
    """What memory is used for; the names are those of the report format."""

    VARIABLE = "variable"
    CONSTANT = "constant"
    MESSAGE = "message"
    HOST_MESSAGE = "hostMessage"
    GLOBAL_MESSAGE = "globalMessage"
    REARRANGEMENT = "rearrangement"
    OUTPUT_EDGE = "outputEdge"
    CONTROL_ID = "controlId"
    HOST_HEADER = "hostExchangePacketHeader"
    GLOBAL_HEADER = "globalExchangePacketHeader"
    STACK = "stack"
    VERTEX_STATE = "vertexInstanceState"
    COPY_DESCRIPTOR = "copyDescriptor"
    VECTOR_LIST = "vectorListDescriptor"
    VERTEX_FIELD = "vertexFieldData"
    CONTROL_CODE = "controlCode"
    VERTEX_CODE = "vertexCode"
    EXCHANGE_CODE = "internalExchangeCode"
    HOST_CODE = "hostExchangeCode"
    GLOBAL_CODE = "globalExchangeCode"

    # Members are equal only to themselves. An Enum's own hash, that of its name, is a
    # call of Python for each of a million look-ups.
    __hash__ = object.__hash__


@quick
@dataclass(frozen=True, slots=True)
class Variable:
    """Bytes on tiles. Always-live variables keep their memory for the whole run.

    `bytes_by_tile` spans all tiles of all chips of a replica. `is_interleaved`: the
    variable lies in the memory region that can be read two words a cycle.
    `operand`: it is read while interleaved variables are written, so that it shares
    no memory element with them, nor with other operands; parts of one operand have the
    same number, 0 is none. `is_gathered`: copies on its tile, which read and write in
    one cycle, bring it together, so that it shares no element with what they read.
    """

    name: str
    bytes_by_tile: TileVector
    category: Category = Category.VARIABLE
    is_always_live: bool = False
    is_interleaved: bool = False
    operand: int = 0
    is_gathered: bool = False

    def __post_init__(self) -> None:
        if any(value < 0 for _, value in self.bytes_by_tile.runs):
            raise ProgramError(f"variable {self.name} has negative bytes on a tile.")
