"""From a wrapped module to a compiled model: what the first call does before it runs.

arguments --compile_step--> CompiledStep --checks, device, report--> CompiledModel
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

import torch
from torch import nn

from .. import _translate as translate
from .._arguments.args import BoundArgs, check_tensors
from .._backend import chosen_backend
from .._compile import CompiledStep, CompileRequest, compile_step
from .._compiled_model import CompiledModel
from .._device import Attachment, num_ipus
from .._group_norm import STRIDED_GROUPS
from .._logging import TRACE, logger
from .._modelling import ModelledCost, report_directory
from .._numerics import machine_numerics
from .._ops.overlap import check_overlap
from .._optim.link import NoOptimizer, OptimizerLink
from .._options.session_options import check_session_options
from .._replica_groups import Groupings, check_groupings
from ..enums import ConnectionType
from ..options import Options
from .anchors import FINAL_LOSS_SCALE, Anchor, anchors_of, check_anchors
from .checks import check_buffers, check_named_buffers, check_pipeline
from .export_proto import export_proto
from .hooks import compile_hooks
from .placement_log import log_placement
from .tensor_names import UPDATED

__all__ = ["Compilation", "Link", "checked_link", "tensor_names"]

Link = OptimizerLink | NoOptimizer


def checked_link(
    optimizer: torch.optim.Optimizer | None, options: Options, training: bool
) -> Link:
    """The link to the optimiser of a model whose options can be followed."""
    translate.check_supported(options, training)
    link = NoOptimizer() if optimizer is None else OptimizerLink(optimizer, options)
    translate.output_plan(options, training)  # refuses periods that do not fit
    return link


def tensor_names(step: CompiledStep, link: Link) -> list[str]:
    """Tensors of the step, weights after their update, the optimiser's numbers."""
    return [
        *step.tensors,
        *(f"{UPDATED}{name}" for name in step.traced.trainable),
        *((FINAL_LOSS_SCALE,) if step.scales_loss else ()),
        *link.settings(),
    ]


@dataclass(frozen=True)
class Compilation:
    """All that a compiled model depends on besides its arguments.

    `device` is held afterwards if the options say so, and only if all went well.
    """

    module: nn.Module
    options: Options
    training: bool
    optimizer: torch.optim.Optimizer | None
    link: Link
    groupings: Groupings
    device: Attachment

    def run(self, bound: BoundArgs) -> tuple[CompiledModel, ModelledCost]:
        """Compile for these arguments."""
        _check_inputs(bound)
        check_groupings(self.module, self.groupings, chosen_backend())
        check_session_options(self.options.toDict())
        cost = ModelledCost(self.options, self.optimizer)
        with ExitStack() as undo, compile_hooks(), cost.progress() as progress:
            anchors = anchors_of(self.options, self.training)
            step = compile_step(self._request(bound, anchors), progress)
            self._take_device(step, undo)
            self._check_step(step)
            rule = self.link.rule_for(step)
            check_anchors(anchors, tensor_names(step, self.link))
            log_placement(step, self.options)
            export_proto(step)
            cost.set_step(step)
            if directory := report_directory(self.options, self._name):
                progress("modelling")
                cost.write_report(directory)
            compiled = CompiledModel(
                step, bound, self.options, rule, anchors, self.groupings
            )
            undo.pop_all()
        logger.log(TRACE, "Finished Poplar compilation")
        return compiled, cost

    @property
    def _name(self) -> str:
        default = "training" if self.training else "inference"
        return self.options._values.get("model_name") or default

    def _request(self, bound: BoundArgs, anchors: tuple[Anchor, ...]) -> CompileRequest:
        options = self.options
        return CompileRequest(
            name=self._name,
            module=self.module,
            arguments=bound,
            batch_plan=translate.batch_plan(options, self.training),
            strategy=options._execution_strategy,
            trainable=self.link.trainable,
            backend=chosen_backend(),
            anchors=tuple(anchor.name for anchor in anchors),
            has_scopes=options._module_namescope_enabled,
            grouped=frozenset(self.groupings),
            scales_loss=self.link.scales_loss,
            automatic=translate.automatic_scaling(options),
            has_strided_groups=bool(options._Popart.options.get(STRIDED_GROUPS)),
            numerics=machine_numerics(options),
        )

    def _check_step(self, step: CompiledStep) -> None:
        check_pipeline(step, self.options, self.training)
        check_buffers(step, self.options)
        check_named_buffers(step, self.options)
        check_overlap(step.traced, self.options)

    def _take_device(self, step: CompiledStep, undo: ExitStack) -> None:
        """Hold the IPUs, or find out which ones it will be, as the options say."""
        connection = self.options.connection_type
        if connection is ConnectionType.Never:
            return
        count = num_ipus(step.num_ipus, self.options)
        if connection is ConnectionType.OnDemand:
            self.device.choose(count)
        else:
            self.device.hold(count)
            undo.callback(self.device.release)


def _check_inputs(bound: BoundArgs) -> None:
    tensors = bound.tensors()
    check_tensors(tensors)
    if any(tensor.requires_grad for tensor in tensors):
        logger.warning(
            "An input has requires_grad set. It is detached: a compiled model gives no "
            "gradients for its inputs."
        )
