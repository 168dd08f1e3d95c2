"""Marks: names by which capture, engine and facades find what another left in a graph.

The capture and the engine of a framework do not import each other. They meet in the
graph that the framework traced: one puts an operator, an attribute or a key there and
the other looks for it. Each such name is declared here, once.
"""

from __future__ import annotations

# PyTorch: operators of Popple in a traced step.
# As `operator_name` gives them; `library_name` is what they are registered as.

MARK = "popple.mark"
"""The same tensor, with a kind and a text for readers of the graph."""

PRINT_TENSOR = "popple.print_tensor"
"""The same tensor, printed on the host."""

HOST_CALL = "popple.host_call"
"""A Python function, run on the host."""

RECURRENT, RECURRENT_BACKWARD = "popple.recurrent", "popple.recurrent_backward"
"""One layer of an LSTM or a GRU in one direction, and its gradient."""

CTC, CTC_BACKWARD = "popple.ctc", "popple.ctc_backward"
"""Connectionist temporal classification, and its gradient."""

GELU_ERF = "popple.gelu_erf"
"""GELU by the error function itself, which PopART has as an op beside its own GELU."""

NOTE = "note"
"""The kind of a MARK whose text is the text form of `popple.graph.Notes`."""


def operator_name(target: object) -> str:
    """The operator that a node of a traced step calls, without its overload."""
    return ".".join(str(target).split(".")[:2])


def library_name(operator: str) -> str:
    """The name under which torch.library registers an operator."""
    return operator.replace(".", "::")


# PyTorch: keys in `Node.meta`.

TAG = "popple_tag"
"""The `Tag` of a node: phase, block, module, line."""

NOTES = "popple_notes"
"""The `Notes` on the op that a node becomes."""

HOST_FUNCTION = "host"
"""The function that a HOST_CALL runs; the node keeps it alive."""


# TensorFlow: attributes of operations.

STAGE = "_ipu_stage"
"""Number of the pipeline stage."""

LAYER = "_ipu_layer"
"""Path of the Keras layer."""

PHASE = "_ipu_phase"
"""`forward`, `backward` or `update`."""

SHARDING = "_XlaSharding"
"""The chip, in XLA's own form."""

ACCUMULATION = "_ipu_accumulation"
"""Micro-batches that an update is for."""

SCHEDULE = "_ipu_schedule"
"""The facade's number for how pipeline stages take turns."""

OFF_CHIP = "_ipu_off_chip"
"""Words for what lies off the chip."""

STAGE_OPTIONS = "_ipu_stage_options"
"""The facade's text about the ops of stages."""

CHECKPOINT = "_ipu_recomputation_checkpoint"
"""The tensor is to be kept where activations are recomputed."""

HALF = "_ipu_half"
"""The operation only imitates the machine's half precision."""

HALF_PRODUCT = "_popple_half_product"
"""On a product in single precision: the name of one in half that it stands for."""

HALF_UPDATE = "_popple_half_update"
"""On operands of an update: the operator that would take them, computed otherwise."""

MULTI_CONV = "_ipu_multi_conv"
"""Notes on convolutions that run side by side, in text form."""

PLANNED = "_ipu_planned"
"""Notes on recurrent layers: a list of two texts, for the layer and its gradient."""

REGION = "_popple_region"
"""Operations that together stand for one op: `kind:number {attributes}`."""

OUTLINED = "_popple_outlined"
"""Calls of outlined functions that the operation was made in: labels between `;`."""


# TensorFlow: kinds of regions besides the ops of the Graph.

EXCHANGE = "exchange"
"""Whatever replicas send each other."""

ACCUMULATE = "accumulate"
"""A sum over micro-batches, which the passes of `place` write."""

SAME = "same"
"""Gives its input back, but for values that show a mistake (a label out of range)."""

NOTHING = "nothing"
"""The machine has no part in it."""
