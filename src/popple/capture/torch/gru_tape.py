"""A GRU on the CPU, where torch has no kernel for it: few operators for each step.

torch makes a dozen operators of a step, and autograd as many again. Here the products
of the input are taken out of the loop, a step works in memory of all steps, and what
the gradient of a step needs of its gates is computed for all steps at once:

    r, z = sigmoid(x Wx + h Wh)    n = tanh(x Wx + r (h Wh))    h' = z (h - n) + n

Values are torch's but for the order of sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class GruTape:
    """What a layer has computed: [T,B,H] each, states with the first one in front.

    `gates` are reset and update, side by side; `products` those of the state, before
    the reset gate scales them.
    """

    states: Tensor
    gates: Tensor
    new: Tensor
    products: Tensor

    @classmethod
    def record(cls, x: Tensor, first: Tensor, weights: list[Tensor]) -> GruTape:
        """Run a layer."""
        wx, wh, *biases = weights
        size, (steps, batch, _) = first.shape[-1], x.shape
        given = F.linear(x, wx, *biases[:1])
        bias = biases[1] if biases else wh.new_zeros(3 * size)
        states = first.new_empty(steps + 1, batch, size)
        states[0] = first
        gates = first.new_empty(steps, batch, 2 * size)
        new, made = torch.empty_like(states[1:]), torch.empty_like(given)
        across = wh.t()
        given_gates, given_new = given.split([2 * size, size], -1)
        made_gates, products = made.split([2 * size, size], -1)
        reset, update = gates.chunk(2, -1)
        rows = zip(
            *map(torch.unbind, (states[:-1], states[1:], made, made_gates, products)),
            *map(torch.unbind, (given_gates, given_new, gates, reset, update, new)),
            strict=True,
        )
        for h, after, both, own_gates, own, to_gates, to_new, rz, r, z, n in rows:
            torch.addmm(bias, h, across, out=both)
            torch.add(own_gates, to_gates, out=rz).sigmoid_()
            torch.mul(own, r, out=n).add_(to_new).tanh_()
            torch.sub(h, n, out=after).mul_(z).add_(n)
        return cls(states, gates, new, products)

    def results(self) -> list[Tensor]:
        """Outputs and the last of them."""
        return [self.states[1:].clone(), self.states[-1].clone()]

    def gradients(self, given: list[Tensor], read: list[Tensor]) -> list[Tensor]:
        """Of input, state and weights, none of which share memory."""
        outputs, last = given
        x, _, wx, wh, *biases = read
        inner, outer, update = self._slopes()
        after = torch.empty_like(self.new)
        scaled = torch.empty_like(inner)
        upstream = last.contiguous()
        rows = zip(
            *map(torch.unbind, (outputs, inner, update, after, scaled)), strict=True
        )
        for output, slope, z, total, gates in reversed(list(rows)):
            torch.add(upstream, output, out=total)
            torch.mul(slope, total.unsqueeze(1), out=gates)
            upstream = torch.addmm(total * z, gates.flatten(1), wh)
        # Of the gates as the state sees them, and as the input does.
        by_state = scaled.flatten(2).flatten(0, 1)
        scaled_new = torch.mul(outer, after, out=outer)
        by_input = torch.cat([scaled[:, :, :2].flatten(2), scaled_new], -1)
        flat = by_input.flatten(0, 1)
        found = [
            (flat @ wx).view_as(x),
            upstream,
            flat.t() @ x.flatten(0, 1),
            by_state.t() @ self.states[:-1].flatten(0, 1),
        ]
        return [*found, flat.sum(0), by_state.sum(0)] if biases else found

    def _slopes(self) -> tuple[Tensor, Tensor, Tensor]:
        """How gates follow the state that comes out: as the state moves them, and n.

        [T,B,3,H] for reset, update and new gate as products of the state reach them,
        [T,B,H] for the new gate as the input does, and the update gate.
        """
        reset, update = self.gates.chunk(2, -1)
        new = (1 - update) * (1 - self.new * self.new)
        scaled = new * reset
        from_reset = scaled * (1 - reset) * self.products
        from_update = (self.states[:-1] - self.new) * update * (1 - update)
        return torch.stack([from_reset, from_update, scaled], 2), new, update
