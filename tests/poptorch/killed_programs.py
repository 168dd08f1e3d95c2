"""Four PopTorch programs compete for a pod of four chips and are killed at moments.

Run as a module: `python -m tests.poptorch.killed_programs DIRECTORY KILLS SEED`. Each
program attaches, compiles, writes a cache that all of them share, and runs. A byte of
shared memory says what it is about, so that each kill can be aimed at one of the four
moments and counted by the one it hit. What was seen goes to stdout as JSON.
"""

from __future__ import annotations

import contextlib
import json
import logging
import mmap
import os
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import poptorch
from popple.device import Lease, Pod, create_pod
from popple.errors import DeviceBusyError
from popple.session import ExecutableCache
from popple.session.archive import read_archive
from tests.device.competition import WORKERS, Witness, kill

MOMENTS = ("other", "attach", "compile", "cache write", "run")
WIDTHS = (3, 4, 5, 6)
DAY = 86_400.0


@dataclass(frozen=True)
class Teller:
    """What each worker is about, in memory that all processes share."""

    memory: mmap.mmap

    def moment_of(self, index: int) -> str:
        return MOMENTS[self.memory[index]]

    @contextlib.contextmanager
    def telling(self, index: int, moment: str) -> Iterator[None]:
        before = self.memory[index]
        self.memory[index] = MOMENTS.index(moment)
        try:
            yield
        finally:
            self.memory[index] = before

    def tells(self, owner: type, name: str, index: int, moment: str) -> None:
        """Replace a method of a class by one that tells when it is at work."""
        method: Callable[..., Any] = getattr(owner, name)

        def told(*args: Any, **kwargs: Any) -> Any:
            with self.telling(index, moment):
                return method(*args, **kwargs)

        setattr(owner, name, told)


def watch_devices(witness: Witness) -> None:
    """Sign for every chip that is acquired, until just before it is released."""
    acquire, release = Pod.acquire, Lease.release

    def acquired(*args: Any, **kwargs: Any) -> Lease:
        lease = acquire(*args, **kwargs)
        for chip_id in lease.device.chip_ids:
            witness.sign(chip_id)
        return lease

    def released(lease: Lease) -> None:
        for chip_id in lease.device.chip_ids:
            witness.strike(chip_id)
        release(lease)

    Pod.acquire, Lease.release = acquired, released  # type: ignore[method-assign]


class Complaints(logging.Handler):
    """Warnings, of damaged files for one, are as bad as two holders."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(logging.WARNING)
        self._witness = witness

    def emit(self, record: logging.LogRecord) -> None:
        self._witness.add("violations", record.getMessage())


def run_once(cache: Path, width: int, replicas: int) -> None:
    """Run a small program: each sum is of as many threes as the row is wide."""
    module = torch.nn.Linear(width, width, bias=False)
    torch.nn.init.constant_(module.weight, 3.0)
    options = poptorch.Options().showCompilationProgressBar(False)
    options.replicationFactor(replicas).enableExecutableCaching(str(cache))
    model = poptorch.inferenceModel(module, options)
    try:
        for _ in range(20):
            assert model(torch.ones(4, width)).eq(3.0 * width).all()
    finally:
        model.destroy()


def work(directory: Path, teller: Teller, index: int, seed: int) -> None:
    """Run programs until somebody kills us; a warning is an error."""
    warnings.simplefilter("error")
    draw = random.Random(seed)
    witness = Witness(directory / "witness")
    watch_devices(witness)
    for name in ("popple", "poptorch::python"):
        logging.getLogger(name).addHandler(Complaints(witness))
    teller.tells(Pod, "acquire", index, "attach")
    teller.tells(poptorch.PoplarExecutor, "_compile", index, "compile")
    teller.tells(ExecutableCache, "store", index, "cache write")
    teller.tells(poptorch.PoplarExecutor, "__call__", index, "run")
    cache = directory / "cache"
    while True:
        if draw.random() < 0.7:
            ExecutableCache(cache).prune(max_bytes=draw.choice((0, 8000)))
        try:
            run_once(cache, draw.choice(WIDTHS), draw.choice((1, 1, 2, 4)))
        except poptorch.Error as error:
            if not isinstance(error.__cause__, DeviceBusyError):
                raise


def start(directory: Path, teller: Teller, index: int, seed: int) -> int:
    teller.memory[index] = 0
    pid = os.fork()
    if pid == 0:
        try:
            work(directory, teller, index, seed)
        finally:
            # Nothing but a kill ends a worker: an error of its own is one of ours.
            os._exit(1)
    return pid


def await_moment(teller: Teller, moment: str, draw: random.Random) -> int:
    """A worker that is at this moment, or was a little while ago."""
    while True:
        at_it = [i for i in range(WORKERS) if teller.moment_of(i) == moment]
        if at_it:
            # Most moments are over within milliseconds, and compiling takes longer.
            spread = 0.05 if moment == "compile" else 0.002
            time.sleep(draw.choice((0.0, draw.random() * spread)))
            return draw.choice(at_it)
        time.sleep(0)


def check_cache(directory: Path) -> list[str]:
    """What is not sound in a cache: files that cannot be read, drafts that stay."""
    cache = ExecutableCache(directory)
    for entry in cache.entries():
        read_archive(entry.path)
    for width in WIDTHS:
        run_once(directory, width, 1)
    cache.prune(max_bytes=0, now=time.time() + DAY)
    return [path.name for path in directory.iterdir()]


def compete(directory: Path, kills: int, seed: int) -> dict[str, object]:
    draw = random.Random(seed)
    witness = Witness(directory / "witness")
    pod = Pod(create_pod("bow-pod4").machine)
    run_once(directory / "warm-up", 2, 1)  # loads what is loaded when it is used
    teller = Teller(mmap.mmap(-1, WORKERS))
    seeds = [draw.getrandbits(32) for _ in range(WORKERS)]
    workers = [start(directory, teller, i, s) for i, s in enumerate(seeds)]
    hits: Counter[str] = Counter()
    endings: list[int] = []
    leaked: list[int] = []
    for _ in range(kills):
        rarest = min(MOMENTS[1:], key=lambda moment: hits[moment])
        index = await_moment(teller, rarest, draw)
        endings.append(kill(workers[index]))
        hits[teller.moment_of(index)] += 1
        leaked += [h.pid for h in pod.holders() if h.pid == workers[index]]
        workers[index] = start(directory, teller, index, draw.getrandbits(32))
    endings += [kill(worker) for worker in workers]
    return {
        "violations": witness.lines("violations"),
        "signed": len(witness.lines("signed")),
        "leaked": leaked,
        "endings": sorted(set(endings)),
        "hits": hits,
        "left in the cache": check_cache(directory / "cache"),
    }


if __name__ == "__main__":
    print(json.dumps(compete(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
