"""The state of an optimiser as named tensors of the device, `ipu_state`.

Accl1___<weight>   velocity, first moment, or average of squared gradients
Accl2___<weight>   second moment, or average of gradients
Accl3___<weight>   velocity of RMSprop
Step___<weight>    number of updates
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from popple.engine.torch.session import TorchSession

from .._errors import Error
from .._logging import logger

__all__ = ["read_state", "write_state"]

_ADAM = {"moment1": "Accl1", "moment2": "Accl2", "step": "Step"}
_PREFIXES = {
    "SGD1": {"velocity": "Accl"},
    "SGD2": {"velocity": "Accl1"},
    "ADAM": _ADAM,
    "ADAMW": _ADAM,
    "LAMB": _ADAM,
    "RMSPROP": {
        "square_average": "Accl1",
        "gradient_average": "Accl2",
        "velocity": "Accl3",
    },
}
"""Slots of the engine -> beginnings of names, for each kind of optimiser."""


def _tensors(kind: str, model: TorchSession) -> Iterator[tuple[str, torch.Tensor]]:
    """The device's own tensors by name."""
    memory = model.memory
    assert memory is not None, "the model is not on a device"
    for slot, held in memory.state.items():
        for weight, tensor in held.items():
            yield f"{_PREFIXES[kind][slot]}___{weight}", tensor
    if memory.loss_scale is not None and memory.loss_scale.automatic is not None:
        yield "lossScaleUpdateFactor", memory.loss_scale.factor


def read_state(kind: str, model: TorchSession) -> dict[str, torch.Tensor]:
    """Copies of the device's state."""
    return {
        name: _for_each_group(name, tensor, model).cpu().clone()
        for name, tensor in _tensors(kind, model)
    }


def _for_each_group(
    name: str, tensor: torch.Tensor, model: TorchSession
) -> torch.Tensor:
    """Groups of replicas count their updates together, but each shows a number."""
    grouping = model.options.groupings.get(name.partition("___")[2])
    if grouping is None or tensor.dim():
        return tensor
    return tensor.expand(grouping.num_groups)


def write_state(
    kind: str, model: TorchSession, tensors: Mapping[str, torch.Tensor]
) -> None:
    """Overwrite the device's state; what is missing stays as it is, with a warning."""
    for name, held in _tensors(kind, model):
        if name not in tensors:
            logger.warning("The optimizer state lacks %s: it stays as it is.", name)
            continue
        given, needed = tensors[name], _for_each_group(name, held, model)
        if given.shape != needed.shape:
            raise Error(
                f"The optimizer state {name} has the shape {list(given.shape)}, but "
                f"the model needs {list(needed.shape)}: it comes from another model."
            )
        held.copy_(given if given.shape == held.shape else given[0])
