"""What an executor makes of the options and the module it is given."""

from __future__ import annotations

import torch
from torch import nn

from .. import optim
from .._errors import Error, check
from ..enums import OutputMode
from ..options import Options

__all__ = ["named_module", "own_optimizer", "own_options"]


def own_options(options: Options | None, training: bool) -> Options:
    """The executor's own options: a frozen copy with an output mode of the kind.

    The program's are frozen too, since changes to them would have no effect.
    """
    if options is None:
        options = Options()
    if not isinstance(options, Options):
        raise Error(f"options must be poptorch.Options, not {type(options).__name__}.")
    options._freeze()
    own = options.clone()
    if own.output_mode is OutputMode.Default:
        own.outputMode(OutputMode.Final if training else OutputMode.All)
    own._freeze()
    return own


def own_optimizer(
    optimizer: torch.optim.Optimizer | None, module: nn.Module, training: bool
) -> torch.optim.Optimizer | None:
    """The optimiser of a model: SGD for training without one, none for inference."""
    if training and optimizer is None:
        return optim.SGD(module.parameters(), lr=0.01)
    check(training or optimizer is None, "Optimizer should be None for inference.")
    return optimizer


def named_module(model: nn.Module, user_model: nn.Module) -> nn.Module:
    """The module by whose names a compiled step knows weights and buffers.

    That is the one that runs, `model`, which may wrap the user's and so have longer
    names. Where it is a copy with the same names it is the user's: tensors that are
    assigned to that later are found.
    """
    return user_model if _names(model) == _names(user_model) else model


def _names(module: nn.Module) -> list[str]:
    named = (*module.named_parameters(), *module.named_buffers())
    return [name for name, _ in named]
