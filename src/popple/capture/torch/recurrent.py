"""LSTM and GRU layers as one traced operator each, however long the sequence is.

torch makes an operator of every step, or one that only some processors have. Here
every layer is one: its values come from torch's own kernels, and the machine's model
sees a loop. Weights are torch's: of the input, of the state, and their biases if any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from popple.capture.torch.recurrent_tape import Tape, infer, record_tape
from popple.marks import RECURRENT, RECURRENT_BACKWARD, library_name

Layer = Callable[[Tensor, list[Tensor], list[Tensor]], list[Tensor]]
"""Input [T,B,I], states [B,H] and weights to outputs [T,B,H] and last states."""


def lstm(data: Tensor, hx: Any, *settings: Any, **keywords: Any) -> Any:
    """What torch.lstm gives; packed and projected sequences as torch traces them."""
    return _stacked(torch.lstm, lstm_layer, data, hx, settings, keywords)


def gru(data: Tensor, hx: Any, *settings: Any, **keywords: Any) -> Any:
    """What torch.gru gives."""
    return _stacked(torch.gru, gru_layer, data, hx, settings, keywords)


def lstm_layer(x: Tensor, states: list[Tensor], weights: list[Tensor]) -> list[Tensor]:
    """One layer in one direction: outputs, last output, last cell."""
    return _layer(x, states, weights, "lstm")


def gru_layer(
    x: Tensor,
    states: list[Tensor],
    weights: list[Tensor],
    resets_after: bool = True,
) -> list[Tensor]:
    """One layer in one direction: outputs and the last of them.

    torch's reset gate scales the product of the state; without `resets_after` it
    scales the state that is multiplied.
    """
    kind = "gru" if resets_after else "gru_reset_before"
    return _layer(x, states, weights, kind)


def _layer(
    x: Tensor, states: list[Tensor], weights: list[Tensor], kind: str
) -> list[Tensor]:
    is_learnt = any(each.requires_grad for each in (x, *states, *weights))
    trains = is_learnt and torch.is_grad_enabled()
    operator: Any = torch.ops.popple.recurrent
    return list(operator(x, states, weights, kind, trains)[:-1])


FORMS: dict[Any, Callable[..., Any]] = {torch.lstm: lstm, torch.gru: gru}


def _stacked(
    original: Callable[..., Any],
    layer: Layer,
    data: Tensor,
    hx: Any,
    settings: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    """All layers and directions, or torch's own form of what is not so simple."""
    states = [hx] if isinstance(hx, Tensor) else list(hx)
    is_plain = len(settings) == 7 and not keywords and isinstance(settings[0], list)
    # Packed sequences have other arguments.
    if not is_plain:
        return original(data, hx, *settings, **keywords)
    weights, has_biases, num_layers, dropout, trains, is_two_way, is_batch_first = (
        settings
    )
    num_directions = 1 + bool(is_two_way)
    width = 4 if has_biases else 2
    if len(weights) != width * num_layers * num_directions:
        return original(data, hx, *settings)
    x = data.transpose(0, 1) if is_batch_first else data
    last: list[list[Tensor]] = []
    for index in range(num_layers):
        if index and dropout and trains:
            x = F.dropout(x, dropout)
        found = [
            _directed(layer, x, [s[place] for s in states], own, place % num_directions)
            for place, own in _places(index, num_directions, weights, width)
        ]
        x = (
            torch.cat([result[0] for result in found], -1)
            if is_two_way
            else found[0][0]
        )
        last += [result[1:] for result in found]
    outputs = x.transpose(0, 1) if is_batch_first else x
    return outputs, *(torch.stack(each) for each in zip(*last, strict=True))


def _places(
    layer: int, num_directions: int, weights: Sequence[Tensor], width: int
) -> list[tuple[int, list[Tensor]]]:
    """Position and weights of each direction of a layer."""
    places = range(layer * num_directions, (layer + 1) * num_directions)
    return [(p, list(weights[p * width : (p + 1) * width])) for p in places]


def _directed(
    layer: Layer,
    x: Tensor,
    states: list[Tensor],
    weights: list[Tensor],
    is_backward: int,
) -> list[Tensor]:
    """A direction; the backward one sees time reversed."""
    if not is_backward:
        return layer(x, states, weights)
    outputs, *last = layer(x.flip(0), states, weights)
    return [outputs.flip(0), *last]


_SCHEMA = (
    "(Tensor x, Tensor[] states, Tensor[] weights, str kind, bool trains) -> Tensor[]"
)


_BACKWARD_SCHEMA = (
    "(Tensor[] gradients, Tensor kept, Tensor x, Tensor[] states, Tensor[] weights, "
    "str kind) -> Tensor[]"
)
_TAPE = "_tape_for_gradient"


# Not `custom_op`, whose checks take as long as a short layer.
_LIBRARY = torch.library.Library("popple", "FRAGMENT")
_LIBRARY.define(f"recurrent{_SCHEMA}")
_LIBRARY.define(f"recurrent_backward{_BACKWARD_SCHEMA}")


@torch.library.impl(_LIBRARY, "recurrent", "CompositeExplicitAutograd")
def _recurrent(
    x: Tensor, states: list[Tensor], weights: list[Tensor], kind: str, trains: bool
) -> list[Tensor]:
    """Outputs, last states, and an empty place for what the machine keeps.

    In training the place carries what torch records for the gradient, so that it need
    not run the layer again.
    """
    kept = x.new_empty(0)
    if trains:
        tape = record_tape(x, states, weights, kind)
        # An operator returns tensors only: the tape travels on the storage of an empty
        # one.
        setattr(kept.untyped_storage(), _TAPE, tape)
        found = tape.results()
    else:
        found = infer(x, states, weights, kind)
    return [*(each.contiguous() for each in found), kept]


@torch.library.register_fake(library_name(RECURRENT), lib=_LIBRARY)
def _(
    x: Tensor, states: list[Tensor], weights: list[Tensor], kind: str, trains: bool
) -> list[Tensor]:
    shape = (*x.shape[:2], states[0].shape[-1])
    last = [state.new_empty(state.shape) for state in states]
    return [x.new_empty(shape), *last, x.new_empty(0)]


@torch.library.impl(_LIBRARY, "recurrent_backward", "CompositeExplicitAutograd")
def _recurrent_backward(
    gradients: list[Tensor],
    kept: Tensor,
    x: Tensor,
    states: list[Tensor],
    weights: list[Tensor],
    kind: str,
) -> list[Tensor]:
    """Gradients of input, states and weights."""
    # Without a tape, or if another gradient has used it up, the layer runs once more.
    # Between the two, torch passes on another tensor of the same storage.
    place = kept.untyped_storage()
    tape: Tape | None = getattr(place, _TAPE, None)
    setattr(place, _TAPE, None)
    tape = tape or record_tape(x, states, weights, kind)
    # Kernels lay gradients out as suits them, and programs that are compiled rely on
    # what is promised below.
    found = tape.gradients(gradients, [x, *states, *weights])
    return [gradient.contiguous() for gradient in found]


@torch.library.register_fake(library_name(RECURRENT_BACKWARD), lib=_LIBRARY)
def _(
    gradients: list[Tensor],
    kept: Tensor,
    x: Tensor,
    states: list[Tensor],
    weights: list[Tensor],
    kind: str,
) -> list[Tensor]:
    return [t.new_empty(t.shape) for t in (x, *states, *weights)]


def _remember(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    x, states, weights, kind, _ = inputs
    ctx.save_for_backward(output[-1], x, *states, *weights)
    ctx.sizes, ctx.kind = (len(states), len(weights)), kind
    ctx.set_materialize_grads(True)


def _differentiate(ctx: Any, gradients: list[Tensor]) -> tuple[Any, ...]:
    kept, x, *rest = ctx.saved_tensors
    num_states, _ = ctx.sizes
    states, weights = rest[:num_states], rest[num_states:]
    operator: Any = torch.ops.popple.recurrent_backward
    made = operator(gradients[:-1], kept, x, states, weights, ctx.kind)
    end = 1 + num_states
    return made[0], made[1:end], made[end:], None, None


torch.library.register_autograd(
    library_name(RECURRENT), _differentiate, setup_context=_remember, lib=_LIBRARY
)
