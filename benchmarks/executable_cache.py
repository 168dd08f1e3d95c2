"""How much sooner a cached program starts: BERT-Large, cold cache against warm cache.

    python benchmarks/executable_cache.py [--layers 24] [--sequence 16] [--report]
                                          [--inference]

Each start is a process of its own, and its clock starts when the model is wrapped:

    begin    the model is compiled and attached: the first step's arithmetic begins
    end      the first step has returned
    later    a later step alone, which no cache makes shorter

Seconds of processor time, and by the clock in brackets. With --report the program asks
for a report, so that a cold start plans as well as captures. Training makes the
optimiser's state in its first step, three times the weights with their own copy.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

# This folder has a script with the facade's name: look beside it instead.
sys.path[0] = str(Path(__file__).parents[1])

import torch  # noqa: E402

from benchmarks.modelling import VOCABULARY, Bert  # noqa: E402

Times = dict[str, list[float]]


def _since(start: list[float]) -> list[float]:
    now = [time.process_time(), time.perf_counter()]
    return [b - a for a, b in zip(start, now, strict=True)]


def measure(directory: Path, arguments: argparse.Namespace) -> Times:
    """Start the program once; seconds of processor and clock by part."""
    import poptorch

    torch.manual_seed(0)
    module = Bert(arguments.layers)
    ids = torch.randint(VOCABULARY, (1, arguments.sequence))
    options = poptorch.Options().showCompilationProgressBar(False)
    options.enableExecutableCaching(str(directory / "cache"))
    options.connectionType(poptorch.ConnectionType.OnDemand)
    if arguments.report:
        options.enableProfiling(str(directory / "report"))
    wrap = partial(poptorch.inferenceModel, module, options)
    if not arguments.inference:
        optimizer = poptorch.optim.AdamW(module.parameters(), lr=1e-3)
        wrap = partial(poptorch.trainingModel, module, options, optimizer)
    start = _since([0, 0])
    model = wrap()
    model.compile(ids, ids)
    model.attachToDevice()
    times = {"begin": _since(start)}
    model(ids, ids)
    times["end"] = _since(start)
    start = _since([0, 0])
    model(ids, ids)
    return {**times, "later": _since(start)}


def start(directory: Path, given: list[str]) -> Times:
    """The same in a process of its own."""
    command = [sys.executable, __file__, *given, "--inside", str(directory)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(str(done.stdout).splitlines()[-1])


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--sequence", type=int, default=16, help="tokens, up to 128")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--inference", action="store_true")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside is not None:
        print(json.dumps(measure(arguments.inside, arguments)))
        return
    with tempfile.TemporaryDirectory() as folder:
        runs = [start(Path(folder), sys.argv[1:]) for _ in ("cold", "warm")]
    for part in runs[0]:
        (cold, cold_clock), (warm, warm_clock) = (run[part] for run in runs)
        print(
            f"{part:8} cold {cold:6.2f} s ({cold_clock:6.2f} s)   "
            f"warm {warm:6.2f} s ({warm_clock:6.2f} s) {cold / warm:6.1f} times"
        )


if __name__ == "__main__":
    main()
