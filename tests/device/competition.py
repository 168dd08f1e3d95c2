"""Four processes compete for a pod of four chips while processes are killed.

Run as a script: `competition.py DIRECTORY KILLS SEED`. It imports no framework and
forks its workers, so that hundreds of them can live and die within seconds. What it saw
goes to stdout as JSON.

Each worker that gets a chip signs a witness file of its own making, and takes its name
off before it releases the chip. Whoever then finds the name of a process that is alive
has seen two holders. The witness knows nothing of locks.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path

from popple.device import Lease, Pod, create_pod, find_machine
from popple.errors import DeviceBusyError

WORKERS = 4
# The flag of a process that has begun to end: its files may be closed already.
PF_EXITING = 0x4


def is_alive(pid: int) -> bool:
    """Whether a process still runs its program: it is neither dead nor dying."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    state, *numbers = stat.rpartition(")")[2].split()
    return state not in "ZX" and not int(numbers[5]) & PF_EXITING


class Witness:
    """A file per chip with the process that has it, and a list of what went wrong."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(exist_ok=True)

    def sign(self, chip_id: int) -> None:
        found = self._read(chip_id)
        if found and is_alive(found):
            self.add("violations", f"chip {chip_id}: {found} and {os.getpid()}")
        (self._directory / str(chip_id)).write_text(str(os.getpid()), "utf-8")
        self.add("signed", str(chip_id))

    def strike(self, chip_id: int) -> None:
        if self._read(chip_id) != os.getpid():
            self.add("violations", f"chip {chip_id} was taken from {os.getpid()}")
        (self._directory / str(chip_id)).write_text("", "utf-8")

    def _read(self, chip_id: int) -> int:
        path = self._directory / str(chip_id)
        return int(path.read_text("utf-8") or 0) if path.exists() else 0

    def add(self, name: str, line: str) -> None:
        with (self._directory / name).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def lines(self, name: str) -> list[str]:
        path = self._directory / name
        return path.read_text("utf-8").splitlines() if path.exists() else []


def compute(draw: random.Random) -> None:
    """Work for a while, from nothing to a few milliseconds."""
    sum(range(draw.randrange(100_000)))


def use(lease: Lease, witness: Witness, draw: random.Random) -> None:
    """Run something on a device, seen by the witness."""
    for chip_id in lease.device.chip_ids:
        witness.sign(chip_id)
    with lease.activity.running():
        compute(draw)
    for chip_id in lease.device.chip_ids:
        witness.strike(chip_id)


def work(witness: Witness, seed: int) -> None:
    """Take devices of any size, use them and let go, until somebody kills us."""
    draw = random.Random(seed)
    pod = Pod(find_machine())
    while True:
        try:
            with pod.acquire(num_chips=draw.choice((1, 1, 2, 4))) as lease:
                use(lease, witness, draw)
        except DeviceBusyError:
            compute(draw)


def start(witness: Witness, seed: int) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work(witness, seed)
        finally:
            # Nothing but a kill ends a worker: an error of its own is one of ours.
            os._exit(1)
    return pid


def kill(pid: int) -> int:
    """Kill a worker and wait for it; the signal that ended it."""
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def compete(directory: Path, kills: int, seed: int) -> dict[str, object]:
    draw = random.Random(seed)
    witness = Witness(directory / "witness")
    pod = Pod(create_pod("bow-pod4").machine)
    workers = [start(witness, draw.getrandbits(32)) for _ in range(WORKERS)]
    leaked: list[int] = []
    endings: list[int] = []
    for _ in range(kills):
        # Any moment of attaching, running or releasing may be the last one.
        compute(draw)
        index = draw.randrange(WORKERS)
        endings.append(kill(workers[index]))
        leaked += [h.pid for h in pod.holders() if h.pid == workers[index]]
        workers[index] = start(witness, draw.getrandbits(32))
    endings += [kill(worker) for worker in workers]
    with pod.acquire(num_chips=4) as lease:
        last = lease.device.id
    return {
        "violations": witness.lines("violations"),
        "leaked": leaked,
        "endings": sorted(set(endings)),
        "chips": sorted(set(witness.lines("signed"))),
        "last": last,
    }


if __name__ == "__main__":
    print(json.dumps(compete(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
