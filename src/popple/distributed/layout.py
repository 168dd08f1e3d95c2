"""Which instance runs on which host, and the variables each one is given."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from popple.distributed.hosts import is_local, local_hosts, parse_hosts, read_hostfile
from popple.distributed.instance import CACHE_PATH, Instance
from popple.distributed.options import LaunchOptions
from popple.errors import UsageError
from popple.text_table import render_table

# The caches of all frameworks, which one option sets for all instances.
_CACHES = ("POPTORCH_CACHE_DIR", "POPART_CACHE_DIR", "POPXL_CACHE_DIR", CACHE_PATH)
_TENSORFLOW_FLAGS = "TF_POPLAR_FLAGS"
_UNBUFFERED = "PYTHONUNBUFFERED"
_THREADS = "OMP_NUM_THREADS"


@dataclass(frozen=True)
class Placed:
    """An instance and the host it runs on."""

    instance: Instance
    host: str

    @property
    def is_local(self) -> bool:
        """Whether that host is this computer."""
        return is_local(self.host)


def chosen_hosts(options: LaunchOptions) -> tuple[str, ...]:
    """The hosts of the options; this computer if there are none."""
    if options.hostfile:
        return read_hostfile(Path(options.hostfile))
    return parse_hosts(options.host) if options.host else tuple(local_hosts())


def place_instances(
    options: LaunchOptions, store: str = "", store_key: str = ""
) -> tuple[Placed, ...]:
    """All instances; those of one host have consecutive numbers."""
    hosts, count = chosen_hosts(options), options.num_instances
    if count % len(hosts):
        raise UsageError(
            f"{count} instances cannot be divided evenly among {len(hosts)} hosts.",
            remedy="Make --num-instances a multiple of the number of hosts.",
        )
    per_host = count // len(hosts)
    return tuple(
        Placed(
            Instance(
                index=index,
                count=count,
                local_index=index % per_host,
                local_count=per_host,
                local_replicas=options.num_replicas // count,
                ipus_per_replica=options.ipus_per_replica,
                store=store,
                store_key=store_key,
                is_offline=options.offline_mode,
            ),
            hosts[index // per_host],
        )
        for index in range(count)
    )


def exported_variables(
    arguments: str, environ: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """What `-x VAR` and `-x VAR=VALUE` of mpirun export, and the other arguments."""
    try:
        words = shlex.split(arguments)
    except ValueError as error:
        raise UsageError(f"{arguments!r} cannot be read: {error}.") from error
    exported: dict[str, str] = {}
    others: list[str] = []
    while words:
        word = words.pop(0)
        if word != "-x" or not words:
            others.append(word)
            continue
        name, has_value, value = words.pop(0).partition("=")
        if has_value:
            exported[name] = value
        elif name in environ:
            exported[name] = environ[name]
    return exported, others


def common_variables(
    options: LaunchOptions, environ: Mapping[str, str]
) -> dict[str, str]:
    """What all instances are given besides their own numbers."""
    found: dict[str, str] = {}
    if _UNBUFFERED not in environ:
        # Lines are to appear when they are written, though not on a terminal.
        found[_UNBUFFERED] = "1"
    if options.executable_cache_path:
        path = os.path.abspath(options.executable_cache_path)
        found |= dict.fromkeys(_CACHES, path)
        flags = environ.get(_TENSORFLOW_FLAGS, "")
        found[_TENSORFLOW_FLAGS] = f"{flags} --executable_cache_path={path}".strip()
    for arguments in (options.mpi_global_args, options.mpi_local_args):
        found.update(exported_variables(arguments, environ)[0])
    return found


def default_threads(environ: Mapping[str, str], local_count: int) -> dict[str, str]:
    """A fair share of this computer's cores, unless the user has chosen."""
    if _THREADS in environ:
        return {}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return {_THREADS: str(max(1, (cores or os.cpu_count() or 1) // local_count))}


def describe_layout(placed: Sequence[Placed]) -> str:
    """A table of the instances: host, replicas and IPUs of each."""
    header = ("Instance", "Host", "Local index", "Replicas", "IPUs")
    return render_table(header, [_row(each) for each in placed], header[2:])


def _row(placed: Placed) -> tuple[str, ...]:
    instance = placed.instance
    first, num = instance.replica_offset, instance.local_replicas
    replicas = str(first) if num == 1 else f"{first}-{first + num - 1}"
    ipus = num * instance.ipus_per_replica
    name = f"{instance.index}"
    return (name, placed.host, f"{instance.local_index}", replicas, f"{ipus}")
