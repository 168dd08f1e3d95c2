"""The calls of a model's layers, in order, each with its pipeline stage.

In: a model as a graph of Keras nodes and one assignment per call. Out: a
:class:`StagePlan`: the calls of the model and of the models inside it, flat, over
numbered values, checked against the rules of a pipeline. Nothing is called here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow.compat.v2 as tf

__all__ = [
    "LayerCall",
    "StagePlan",
    "annotated_stage",
    "calls_in_order",
    "check_no_stage_empty",
    "node_index_of",
    "plan_stages",
]


@dataclass(frozen=True)
class LayerCall:
    """One call of a layer: the values it takes and makes, by number."""

    node: Any
    stage: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def run(self, values: dict[int, Any]) -> None:
        """Call the layer with what `values` holds and put its outputs there."""
        taken: dict[str, list[Any]] = {}
        for key, number in zip(self.node.flat_input_ids, self.inputs, strict=True):
            taken.setdefault(key, []).append(values[number])
        args, kwargs = self.node.map_arguments(taken)
        made = tf.nest.flatten(self.node.layer(*args, **kwargs))
        values.update(zip(self.outputs, made, strict=True))


@dataclass
class StagePlan:
    """The calls of a model, the values it starts from and those it returns."""

    inputs: list[int]
    calls: list[LayerCall] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    num_values: int = 0

    @property
    def num_stages(self) -> int:
        """Stages of the pipeline, those without a layer included."""
        return 1 + max(call.stage for call in self.calls)

    def of_stage(self, stage: int) -> list[LayerCall]:
        """The calls of one stage, in order."""
        return [call for call in self.calls if call.stage == stage]

    def passed_on(self, stage: int) -> list[int]:
        """The values that stages after `stage` need from it or those before it."""
        made = set(self.inputs)
        needed = set(self.outputs)
        for call in self.calls:
            if call.stage <= stage:
                made.update(call.outputs)
            else:
                needed.update(call.inputs)
        return sorted(made & needed)

    def new_values(self, count: int) -> list[int]:
        """Numbers for values that do not exist yet."""
        self.num_values += count
        return list(range(self.num_values - count, self.num_values))


def calls_in_order(network: Any) -> list[Any]:
    """The nodes of a graph of layers in the order they run, inputs left out."""
    known = {str(id(tensor)) for tensor in network.inputs}
    nodes = []
    for depth in sorted(network._nodes_by_depth, reverse=True):
        for node in network._nodes_by_depth[depth]:
            if not node.is_input and known.issuperset(node.flat_input_ids):
                known.update(node.flat_output_ids)
                nodes.append(node)
    return nodes


def node_index_of(node: Any) -> int:
    """Which call of its layer a node is."""
    return node.layer._inbound_nodes.index(node)


def annotated_stage(node: Any) -> int | None:
    """The stage in whose scope a layer was called, or else made."""
    of_layer = getattr(node.layer, "_pipeline_stage", None)
    return getattr(node, "_pipeline_stage", of_layer)


def plan_stages(model: tf.keras.Model, assignments: Any) -> StagePlan:
    """The calls of `model` with the stages that `assignments` give them."""
    network = model._get_network()
    plan = StagePlan(inputs=[])
    plan.inputs = plan.new_values(len(network.inputs))
    plan.outputs = _add_calls(plan, model, assignments, plan.inputs)
    _check_order_of_stages(plan)
    return plan


def check_no_stage_empty(plan: StagePlan) -> None:
    """Every stage up to the last must have a layer."""
    used = {call.stage for call in plan.calls}
    empty = [stage for stage in range(plan.num_stages) if stage not in used]
    if empty:
        raise RuntimeError(
            "All stages in a pipeline must have at lease one layer assigned to them. "
            f"The highest stage with an assignment is stage {plan.num_stages - 1}, "
            f"however the preceeding stages {empty} had no assignments."
        )


def _add_calls(
    plan: StagePlan, model: tf.keras.Model, assignments: Any, inputs: Sequence[int]
) -> list[int]:
    """Append the calls of `model` started from `inputs`; the values it returns."""
    network = model._get_network()
    nodes = calls_in_order(network)
    _check_length(assignments, len(nodes))
    known = dict(zip(_keys(network.inputs), inputs, strict=True))
    for assignment, node in zip(assignments, nodes, strict=True):
        if _is_model(node.layer):
            _check_nested(model, assignment, node)
            arguments = node.layer._get_network()._flatten_to_reference_inputs(
                node.call_args[0] if node.call_args else list(node.call_kwargs.values())
            )
            made = _add_calls(
                plan,
                node.layer,
                assignment.pipeline_stage_assignments,
                [known[key] for key in _keys(arguments)],
            )
        else:
            _check_layer(model, assignment, node)
            made = plan.new_values(len(node.flat_output_ids))
            taken = tuple(known[key] for key in node.flat_input_ids)
            stage = assignment.pipeline_stage
            plan.calls.append(LayerCall(node, stage, taken, tuple(made)))
        known.update(zip(node.flat_output_ids, made, strict=True))
    return [known[key] for key in _keys(network.outputs)]


def _keys(tensors: Sequence[tf.Tensor]) -> list[str]:
    return [str(id(tensor)) for tensor in tf.nest.flatten(tensors)]


def _is_model(layer: tf.keras.layers.Layer) -> bool:
    return hasattr(layer, "get_pipeline_stage_assignment")


_WRONG_ORDER = (
    "The order of `pipeline_stage_assignment` does not match the post-order generated "
    "from the graph"
)
_RIGHT_ORDER = (
    "Change the list that `get_pipeline_stage_assignment()` returns: it has the order."
)


def _check_length(assignments: Any, num_calls: int) -> None:
    if not isinstance(assignments, list):
        raise ValueError("`pipeline_stage_assignment` must be a list of assignments.")
    if len(assignments) != num_calls:
        raise ValueError(
            f"The length of the provided `pipeline_stage_assignment` "
            f"({len(assignments)}) does not match the number of layers in the graph "
            f"({num_calls}). Give one assignment per call of a layer, input layers "
            "left out."
        )


def _check_nested(model: tf.keras.Model, assignment: Any, node: Any) -> None:
    wanted = model._NESTED_ASSIGNMENT
    if not isinstance(assignment, wanted):
        raise ValueError(
            f"The pipeline stage assignment for nested model {node.layer.name} in "
            f"{model.name} must be an instance of `{wanted.__name__}`. It is a "
            f"{type(assignment).__name__}."
        )
    _check_same(assignment.nested_model, node.layer)


def _check_layer(model: tf.keras.Model, assignment: Any, node: Any) -> None:
    wanted, layer = model._LAYER_ASSIGNMENT, node.layer
    if not isinstance(assignment, wanted):
        raise ValueError(
            f"The pipeline stage assignment for layer {layer.name} in {model.name} "
            f"must be an instance of `{wanted.__name__}`. It is a "
            f"{type(assignment).__name__}."
        )
    _check_same(assignment.layer, layer)
    index = getattr(assignment, "node_index", None)
    if index not in (None, node_index_of(node)):
        raise ValueError(
            f"{_WRONG_ORDER}: call {node_index_of(node)} of layer {layer.name} stands "
            f"where its call {index} is assigned. {_RIGHT_ORDER}"
        )
    if assignment.pipeline_stage is None:
        which = "" if index is None else f" with node_index {index}"
        raise ValueError(
            f"Layer {layer.name}{which} has not been assigned a pipeline stage in "
            "`pipeline_stage_assignment`."
        )


def _check_same(assigned: Any, called: Any) -> None:
    if assigned is not called:
        raise ValueError(
            f"{_WRONG_ORDER}: layer {called.name} is called where {assigned.name} is "
            f"assigned. {_RIGHT_ORDER}"
        )


def _check_order_of_stages(plan: StagePlan) -> None:
    """A call may take what its own stage or one before it made."""
    made_in = dict.fromkeys(plan.inputs, 0)
    for call in plan.calls:
        made_in.update(dict.fromkeys(call.outputs, call.stage))
    for call in sorted(plan.calls, key=lambda call: call.stage):
        if any(made_in[number] > call.stage for number in call.inputs):
            raise ValueError(
                f"Layer {call.node.layer.name} in pipeline stage {call.stage} has a "
                "dependency from a pipeline stage which has not yet been executed. "
                "Layers can use what their own stage or an earlier one computes."
            )
