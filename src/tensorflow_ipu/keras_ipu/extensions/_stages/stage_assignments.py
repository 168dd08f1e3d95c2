"""Lists of stage assignments of a model: empty, from annotations, and saved.

In: a model as a graph of layers. Out: one assignment per call, in order of computation;
or their form in a configuration: [index of the layer, index of the call, stage], with
such a list in the place of the stage for a model inside the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .stage_plan import annotated_stage, calls_in_order, node_index_of

__all__ = ["annotated", "from_config", "to_config", "unassigned"]


def unassigned(model: Any) -> list[Any]:
    """Assignments without a stage; models inside keep those that they have."""
    return _assigned(model, lambda node: None)


def annotated(model: Any) -> list[Any]:
    """Assignments to the stages in whose scopes layers were called, or made.

    Empty where there was no scope; a call outside all of them is an error otherwise.
    """
    nodes = calls_in_order(model._get_network())
    if all(annotated_stage(node) is None for node in nodes):
        return []
    return _assigned(model, _required_stage)


def to_config(model: Any, assignments: Sequence[Any]) -> list[Any]:
    """Assignments as plain values."""
    if not assignments:
        return []
    layers = model._get_network().layers
    return [_entry(layers, each) for each in assignments]


def from_config(model: Any, entries: Sequence[Any]) -> list[Any]:
    """Assignments from plain values; calls are known by their order."""
    if not entries:
        return []
    restored = []
    assignments = _assigned(model, lambda node: None)
    for assignment, (_, _, stage) in zip(assignments, entries, strict=True):
        if assignment.is_nested_model:
            nested = assignment.nested_model
            assignment = model._NESTED_ASSIGNMENT(
                nested, assignment.node_index, from_config(nested, stage)
            )
        else:
            assignment.pipeline_stage = stage
        restored.append(assignment)
    return restored


def _assigned(model: Any, stage_of: Callable[[Any], int | None]) -> list[Any]:
    assignments = []
    for node in calls_in_order(model._get_network()):
        layer, index = node.layer, node_index_of(node)
        if hasattr(layer, "get_pipeline_stage_assignment"):
            inner = layer.get_pipeline_stage_assignment()
            assignments.append(model._NESTED_ASSIGNMENT(layer, index, inner))
        else:
            stage = stage_of(node)
            assignments.append(model._LAYER_ASSIGNMENT(layer, index, stage))
    return assignments


def _required_stage(node: Any) -> int:
    stage = annotated_stage(node)
    if stage is None:
        raise ValueError(
            "All layers of a pipelined model must have an associated pipeline stage. "
            f"However, {node.layer.name} has not been assigned to one. Make it, or "
            "call it, in the scope of a `PipelineStage`."
        )
    return stage


def _entry(layers: Sequence[Any], assignment: Any) -> list[Any]:
    if assignment.is_nested_model:
        inner = assignment.nested_model
        stage: Any = to_config(inner, assignment.pipeline_stage_assignments)
        return [_index(layers, inner), assignment.node_index, stage]
    stage = assignment.pipeline_stage
    return [_index(layers, assignment.layer), assignment.node_index, stage]


def _index(layers: Sequence[Any], layer: Any) -> int:
    return next(index for index, each in enumerate(layers) if each is layer)
