"""Weights that differ between replicas: `executor.W.replicaGrouping(...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.utils._pytree as pytree
from torch import nn

from popple.engine.torch.session import (
    Backend,
    Groupings,
    GroupKind,
    ReplicaGrouping,
)
from popple.errors import UsageError

from .._errors import Error
from ..enums import CommGroupType, VariableRetrievalMode

__all__ = ["GroupedParameter", "check_groupings", "make_grouping"]

_KINDS = {
    CommGroupType.Consecutive: GroupKind.CONSECUTIVE,
    CommGroupType.Orthogonal: GroupKind.ORTHOGONAL,
    CommGroupType.NoGrouping: GroupKind.ALONE,
}


def make_grouping(
    kind: CommGroupType, size: int, mode: VariableRetrievalMode, replicas: int
) -> ReplicaGrouping:
    """Groups of `size` replicas that share a weight, and what the host has of it."""
    has_all = mode is VariableRetrievalMode.AllReplicas
    try:
        return ReplicaGrouping(_KINDS[kind], size, has_all, replicas)
    except UsageError as error:
        raise Error(str(error)) from error


class GroupedParameter:
    """A parameter of a wrapped model: `replicaGrouping`, and all a parameter has.

    `group` is told how many replicas of what kind of groups share it.
    """

    def __init__(
        self,
        parameter: nn.Parameter,
        group: Callable[[CommGroupType, int, VariableRetrievalMode], None],
    ) -> None:
        self._parameter = parameter
        self._group = group

    def replicaGrouping(
        self,
        comm_group_type: CommGroupType,
        shards: int,
        variable_retrieval_mode: VariableRetrievalMode,
    ) -> None:
        """Let groups of `shards` replicas have values of their own."""
        self._group(comm_group_type, shards, variable_retrieval_mode)

    def __getattr__(self, name: str) -> Any:
        """What the parameter has."""
        if name == "_parameter":
            raise AttributeError(name)
        return getattr(self._parameter, name)

    def __repr__(self) -> str:
        return repr(self._parameter)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Functions of torch get the parameter itself."""
        plain = pytree.tree_map_only(cls, _parameter_of, [args, kwargs or {}])
        return func(*plain[0], **plain[1])


def _parameter_of(grouped: GroupedParameter) -> nn.Parameter:
    return grouped._parameter


def check_groupings(module: nn.Module, groupings: Groupings, backend: Backend) -> None:
    """Error unless the host's parameters have an entry for every group."""
    if groupings and not backend.is_default:
        raise Error(
            f"replicaGrouping() is not available with the backend {backend.name} on "
            f"{backend.device}: run the program without --backend and --device."
        )
    parameters = dict(module.named_parameters())
    for name, grouping in groupings.items():
        shape = parameters[name].shape
        if not shape:
            raise Error(
                f"Parameter {name} is a scalar and cannot differ between replicas: "
                "give it a first dimension with one entry per group."
            )
        if shape[0] != len(grouping.rows):
            raise Error(
                f"Parameter {name} has {shape[0]} entries in its first dimension, but "
                f"replicaGrouping needs {len(grouping.rows)}: one for each of "
                f"{grouping.num_groups} groups of {grouping.replicas} replicas."
            )
