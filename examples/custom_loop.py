"""PopTorch: a loop and a branch that run on the IPU.

A call from the host costs more than a small operation. Where the host would only call
again and again, `poptorch.for_loop` keeps the data on the chip; `poptorch.cond` chooses
there too. Here the loop multiplies a vector by a matrix until it points along the
matrix's main axis: the first principal component of the handwritten digits.
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import popple
import poptorch


class PowerIteration(nn.Module):
    """The main axis of a matrix and the variance along it, after `num_rounds`."""

    def __init__(self, num_rounds):
        super().__init__()
        self.num_rounds = num_rounds

    def forward(self, matrix, start):
        def multiply(vector):
            product = matrix @ vector
            return product / product.norm()

        # The results of a round are the arguments of the next.
        (axis,) = poptorch.for_loop(self.num_rounds, multiply, [start])
        # An axis has no direction: take the one whose components have a positive sum.
        (axis,) = poptorch.cond(
            axis.sum() < 0, lambda x: -x, [axis], lambda x: x, [axis]
        )
        return axis, axis @ matrix @ axis


def main():
    pixels = load_digits().data
    covariance = np.cov(pixels, rowvar=False).astype(np.float32)
    largest = np.linalg.eigvalsh(covariance)[-1]
    torch.manual_seed(0)
    start = nn.functional.normalize(torch.randn(64), dim=0)

    cycles = {}
    for num_rounds in (1, 4, 32):
        inference_model = poptorch.inferenceModel(PowerIteration(num_rounds))
        axis, variance = inference_model(torch.from_numpy(covariance), start)
        inference_model.detachFromDevice()
        cycles[num_rounds] = popple.modelled(inference_model).simulation.cost.cycles
        print(f"rounds: {num_rounds}, variance found: {float(variance / largest):.1%}")
    print(f"direction is positive: {bool(axis.sum() > 0)}")

    per_round = (cycles[32] - cycles[1]) / 31
    ratio = cycles[1] / per_round
    print(f"a call with one round costs as much as {ratio:.0f} rounds of the loop")


if __name__ == "__main__":
    main()
