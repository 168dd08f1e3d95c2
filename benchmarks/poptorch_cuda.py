"""How fast PopTorch programs run on a GPU: one training step against plain PyTorch.

    python benchmarks/poptorch_cuda.py [--only TEXT,TEXT] [--rounds 10]
                                       [--modes "default fused,reduce-overhead fused"]

The program is that of the CPU; POPPLE_DEVICE=cuda and POPPLE_BACKEND=inductor make it
one CUDA graph of compiled kernels. Opponents are eager PyTorch and torch.compile in
each mode, with the same model, optimiser and data, which every step copies to the GPU.
All take turns in one process, a round each; ratios are of medians and more than 1 is
faster than PyTorch. Losses of the first steps are compared with those of plain PyTorch
in float32 on the CPU.
"""

from __future__ import annotations

import argparse
import copy
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# This folder has a script with the facade's name: look beside it instead.
sys.path[0] = str(Path(__file__).parents[1])

import torch  # noqa: E402
from torch import nn  # noqa: E402

import poptorch  # noqa: E402
from benchmarks.larger_models import PaddedBert, UNet, Vit  # noqa: E402
from benchmarks.models import (  # noqa: E402
    CASES,
    Bert,
    Case,
    Gpt2,
    Gru,
    WithLoss,
    resnet50,
)

Batch = tuple[torch.Tensor, ...]
Step = Callable[[], torch.Tensor]

ROUND_SECONDS = 0.3
NUM_COMPARED = 3


@dataclass(frozen=True)
class Contest:
    """A model, what float32 products are computed in, and how near the losses are.

    Weights are float16 with `is_half`. A call has `num_parts` micro-batches: gradients
    are added over them, or in inference they are iterations of the device.
    """

    case: Case
    precision: str = "high"
    tolerance: float = 1e-2
    is_half: bool = False
    num_parts: int = 1
    is_inference: bool = False

    def make(self) -> tuple[nn.Module, Batch]:
        """The model in float32, and data."""
        torch.manual_seed(0)
        return self.case[0](), self.case[1]()

    def typed(self, module: nn.Module) -> nn.Module:
        """A copy of the model as it is run."""
        module = copy.deepcopy(module)
        module = module.half() if self.is_half else module
        return module.eval() if self.is_inference else module


def _tokens(*shape: int) -> Callable[[], Batch]:
    return lambda: tuple(torch.randint(0, 30_522, (2, *shape)))


def _padded() -> Batch:
    return (*_tokens(8, 128)(), torch.tensor([128, 17, 90, 64, 128, 33, 101, 55]))


def _images(batch: int, *shape: int) -> Callable[[], Batch]:
    return lambda: (torch.randn(batch, *shape), torch.randint(0, 10, (batch,)))


def _labelled_pixels() -> Batch:
    return torch.randn(8, 3, 128, 128), torch.randint(0, 10, (8, 128, 128))


CONTESTS = {
    "small CNN, batch 16": Contest(CASES["MNIST CNN, batch 16"], "highest"),
    "ResNet-18 32x32, batch 32": Contest(CASES["ResNet-18 32x32, batch 32"], "highest"),
    "BERT-base b8 s128 bf16": Contest(
        (lambda: Bert(dtype=torch.bfloat16), _tokens(8, 128)), tolerance=2e-2
    ),
    "BERT-base b8 s128 tf32": Contest((Bert, _tokens(8, 128))),
    "BERT-base b8 s128 tf32, padding mask": Contest((PaddedBert, _padded)),
    "GPT-2 small b8 s256 half": Contest(
        (Gpt2, _tokens(8, 256)), tolerance=2e-2, is_half=True
    ),
    "GPT-2 small b8 s256 tf32": Contest((Gpt2, _tokens(8, 256))),
    "ViT-S b32 tf32": Contest((lambda: WithLoss(Vit()), _images(32, 3, 224, 224))),
    "UNet b8 128x128 fp32": Contest((UNet, _labelled_pixels), "highest"),
    "GRU, 2 layers, b32 s64": Contest(
        (lambda: WithLoss(Gru(128, 256, 2)), _images(32, 64, 128)), "highest"
    ),
    "ResNet-18, accumulation 4": Contest(
        (CASES["ResNet-18 32x32, batch 32"][0], _images(128, 3, 32, 32)),
        "highest",
        num_parts=4,
    ),
    "ResNet-50 inference b4, 16 device iterations": Contest(
        (lambda: WithLoss(resnet50()), _images(64, 3, 224, 224)),
        num_parts=16,
        is_inference=True,
    ),
}


def torch_step(
    contest: Contest, module: nn.Module, batch: Batch, device: str, mode: str
) -> Step:
    """A plain step; `mode` is "eager" or one of torch.compile's.

    With " fused" behind it, the optimiser is torch's fused one.
    """
    module = module.to(device)
    is_fused = "fused" in mode
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, fused=is_fused or None)
    mode = mode.removesuffix(" fused")
    call: Callable[..., torch.Tensor] = module
    if mode != "eager":
        call = torch.compile(module, mode=mode, dynamic=False)
    num_parts = contest.num_parts
    # Gradients that are added to must lie outside the memory of CUDA graphs.
    is_summed = num_parts > 1 and not contest.is_inference
    for parameter in module.parameters() if is_summed else ():
        parameter.grad = torch.zeros_like(parameter)

    def parts() -> list[Batch]:
        moved = [tensor.to(device, non_blocking=True) for tensor in batch]
        chunks = [tensor.split(tensor.shape[0] // num_parts) for tensor in moved]
        return list(zip(*chunks, strict=True))

    def train() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=not is_summed)
        loss = torch.zeros(())
        for part in parts():
            torch.compiler.cudagraph_mark_step_begin()
            loss = call(*part)
            (loss / num_parts).backward()
        optimizer.step()
        return loss.detach().cpu()

    def infer() -> torch.Tensor:
        with torch.no_grad():
            return torch.stack([call(*part).clone() for part in parts()]).cpu()

    return infer if contest.is_inference else train


def popple_step(contest: Contest, module: nn.Module, batch: Batch) -> Step:
    """The same step as a PopTorch model."""
    options = poptorch.Options().showCompilationProgressBar(False).useIpuModel(True)
    if contest.is_inference:
        options.deviceIterations(contest.num_parts)
        inference = poptorch.inferenceModel(module, options)
        return lambda: inference(*batch)
    options.Training.gradientAccumulation(contest.num_parts)
    optimizer = poptorch.optim.AdamW(module.parameters(), lr=1e-4)
    training = poptorch.trainingModel(module, options, optimizer)
    return lambda: training(*batch)


def first_losses(step: Step) -> list[float]:
    """What the first steps return."""
    return [float(step().float().flatten()[-1]) for _ in range(NUM_COMPARED)]


def seconds_per_step(step: Step, count: int) -> float:
    """Mean time of `count` steps; each ends when its loss is on the host."""
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def medians(steps: dict[str, Step], rounds: int) -> dict[str, float]:
    """Median seconds of each step, measured in turns."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        seconds_per_step(step, 10)
    for _ in range(rounds):
        for name, step in steps.items():
            count = max(3, round(ROUND_SECONDS / seconds_per_step(step, 3)))
            times[name].append(seconds_per_step(step, count))
    return {name: statistics.median(values) for name, values in times.items()}


def hold(name: str, contest: Contest, modes: list[str], rounds: int) -> float:
    """Run one contest and print its lines; how we do against the best of torch."""
    torch.set_float32_matmul_precision(contest.precision)
    torch.compiler.reset()  # what it learnt from the last model would slow this one
    module, batch = contest.make()
    plain = copy.deepcopy(module).train(not contest.is_inference)
    expected = first_losses(torch_step(contest, plain, batch, "cpu", "eager"))
    batch = tuple(
        t.half() if contest.is_half and t.is_floating_point() else t for t in batch
    )
    steps: dict[str, Step] = {}
    for mode in ["eager", *modes]:
        steps[mode] = torch_step(contest, contest.typed(module), batch, "cuda", mode)
    steps["popple"] = popple_step(contest, contest.typed(module), batch)
    start = time.perf_counter()
    found = first_losses(steps["popple"])
    ready = time.perf_counter() - start
    errors = [abs(f / e - 1) for f, e in zip(found, expected, strict=True)]
    verdict = "as on the CPU" if max(errors) < contest.tolerance else "WRONG"
    print(
        f"{name}: losses {verdict}, {max(errors):.1e} apart, first steps {ready:.0f} s"
    )
    times = medians(steps, rounds)
    for mode, seconds in times.items():
        print(f"  {mode:30} {1e3 * seconds:9.3f} ms {seconds / times['popple']:7.2f}")
    best = min(times[mode] for mode in modes)
    print(f"  against the best mode of torch.compile {best / times['popple']:.2f}")
    sys.stdout.flush()
    return best / times["popple"]


def main() -> None:
    """Run the contests asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=10)
    modes = "default fused,reduce-overhead fused"
    parser.add_argument("--modes", default=modes)
    arguments = parser.parse_args()
    os.environ["POPPLE_BACKEND"] = "inductor"
    os.environ["POPPLE_DEVICE"] = "cuda"
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    wanted = arguments.only.lower().split(",")
    ratios = [
        hold(name, contest, arguments.modes.split(","), arguments.rounds)
        for name, contest in CONTESTS.items()
        if any(text in name.lower() for text in wanted)
    ]
    print(f"geometric mean of {len(ratios)}: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
