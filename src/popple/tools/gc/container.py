"""Containers that see the virtual devices of this host: for gc-docker and gc-podman.

In: a device and the arguments of a container. Out: the command that starts it. A
container shares the directory of locks and the process ids of the host: both sides see
who holds which IPU.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from popple.device import Pod, find_machine
from popple.device.boards import is_fabric
from popple.device.environment import read_environment
from popple.device.state import find_roots
from popple.errors import UsageError
from popple.tools.gc.tool import Tool

_DEVICE_FILES = ("", "_ex", "_mailbox", "_mem")
# What chooses a machine outside chooses the same one inside.
_VARIABLES = (
    "POPPLE_TARGET",
    "GRAPHCORE_POD_TYPE",
    "GCDA_OPTIONS",
    "IPUOF_VIPU_API_HOST",
    "IPUOF_VIPU_API_PORT",
    "IPUOF_VIPU_API_PARTITION_ID",
)


def make_container_tool(engine: str) -> Tool:
    """gc-docker or gc-podman: they differ in the program that they start."""

    def run(arguments: Namespace) -> int:
        return _run(engine, arguments)

    return Tool(
        f"gc-{engine}",
        f"start a {engine} container with IPU devices",
        f"Starts '{engine} run' with what a program inside needs to use the IPUs of "
        f"this host. What follows -- is handed to {engine}: its options, the image, "
        "and a command.\n\n"
        "IPUs are virtual: they are the directory of their locks, which the container "
        "shares. The image needs Popple; see the Dockerfile of its sources.",
        _add_arguments,
        run,
        (
            f"gc-{engine} -- -it --rm popple",
            f"gc-{engine} --device-id 4 --echo -- popple gc-monitor",
        ),
        takes_rest=True,
    )


def build_command(engine: str, device_id: int | None, rest: Sequence[str]) -> list[str]:
    """The whole command line."""
    machine = find_machine()
    pod = Pod(machine)
    device = pod.device(len(pod.devices) - 1 if device_id is None else device_id)
    state = str(find_roots(read_environment()).own)
    command = [engine, "run", "--ulimit", "memlock=-1:-1", "--net=host", "--ipc=host"]
    command += ["--pid=host", "-v", f"{state}:{state}", "-e", f"POPPLE_STATE={state}"]
    config = os.environ.get("IPUOF_CONFIG_PATH", "")
    if config:
        command += ["-v", f"{config}:{config}", "-e", f"IPUOF_CONFIG_PATH={config}"]
    for name in _VARIABLES:
        if name in os.environ:
            command += ["-e", name]
    if not is_fabric(machine.system):
        command += [
            f"--device=/dev/ipu{chip_id}{suffix}"
            for chip_id in device.chip_ids
            for suffix in _DEVICE_FILES
        ]
    return [*command, *rest]


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-d",
        "--device-id",
        type=int,
        metavar="ID",
        help="the device; otherwise all IPUs",
    )
    parser.add_argument(
        "--echo", action="store_true", help="print the command and do not run it"
    )


def _run(engine: str, arguments: Namespace) -> int:
    command = build_command(engine, arguments.device_id, arguments.rest)
    if arguments.echo:
        print(shlex.join(command))
        return 0
    if not arguments.rest:
        raise UsageError("No image is named.", remedy="Put it after --.")
    if shutil.which(engine) is None:
        raise UsageError(
            f"{engine} is not installed here.",
            remedy=f"Install it, or see the command with --echo: {shlex.join(command)}",
        )
    return subprocess.call(_without_missing_files(command))


def _without_missing_files(command: Sequence[str]) -> list[str]:
    """Leave out device files that there are none of, as there are no cards."""
    prefix = "--device="
    kept = [
        word
        for word in command
        if not word.startswith(prefix + "/dev/ipu")
        or Path(word.removeprefix(prefix)).exists()
    ]
    if len(kept) < len(command):
        print("Virtual IPUs have no files in /dev; left out.", file=sys.stderr)
    return kept
