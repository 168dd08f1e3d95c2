"""Which operations a program from a file may contain.

A GraphDef is data, but TensorFlow has operations that read and write files, call Python
or talk to other processes. A file must not be able to do any of that: a program in one
computes, with variables and queues of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v2 as tf
from google.protobuf.message import DecodeError
from tensorflow.python.framework import op_def_registry

__all__ = ["parse_program"]

# Operations without state compute, but for those whose names have one of these words:
# they reach files, Python, the network, or code that is compiled from an attribute.
_REFUSED = re.compile(
    "File|Py|Dataset|Reader|Record|Iterator|Proto|Tpu|TPU|Xla|Custom|Debug|CopyHost"
    "|Remote|Send|Recv|LookupTable|InitializeTable|Mlir|Collective|Save|Restore"
)
# With a state: variables, queues, lists and stacks of the program, random numbers,
# loops, branches and calls.
_WITH_STATE = re.compile(
    "Assert|CheckNumerics(V2)?|Assign(Add|Sub)?VariableOp|ReadVariableOp|VarHandleOp|VarIsInitializedOp"
    "|Resource(Apply|SparseApply|Scatter|Gather|StridedSliceAssign|CountUpTo).*"
    "|Queue(Enqueue|Dequeue|Size|Close|IsClosed).*V2|FIFOQueueV2"
    "|TensorArray.*|Stack(Push|Pop|Close)?V2|TensorList.*"
    "|(Parameterized)?TruncatedNormal|Random(?!.*(Dataset|Queue)).*|Multinomial"
    "|Stateful(Random|Uniform|StandardNormal|TruncatedNormal).*|Rng(ReadAnd)?Skip"
    "|StatelessRandomGetAlg|NonDeterministicInts|(All|Log|LogUniform|Uniform)"
    "CandidateSampler|StatefulPartitionedCall|If|While|Case|Placeholder|NoOp"
    "|VariableShape|Empty|DeviceIndex|GuaranteeConst|DisableCopyOnRead"
)


def parse_program(data: bytes) -> Any:
    """The GraphDef in `data`; ValueError if it is none, or does more than compute."""
    try:
        program = tf.compat.v1.GraphDef.FromString(data)
    except DecodeError as error:
        raise ValueError("its program is no GraphDef") from error
    own = {function.signature.name for function in program.library.function}
    refused = {node.op for node in _nodes(program) if not _may_run(node.op, own)}
    if refused:
        raise ValueError(
            f"its program has operations that no executable may have: {sorted(refused)}"
        )
    return program


def _nodes(program: Any) -> Iterator[Any]:
    yield from program.node
    for function in program.library.function:
        yield from function.node_def


def _may_run(kind: str, own_functions: set[str]) -> bool:
    if kind in own_functions:
        return True
    definition = op_def_registry.get(kind)
    if definition is None or kind.startswith("_"):
        return False
    if definition.is_stateful:
        return _WITH_STATE.fullmatch(kind) is not None
    return _REFUSED.search(kind) is None
