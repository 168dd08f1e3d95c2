"""The environment variables that choose a machine, read in one place.

    POPPLE_TARGET                a system or a pod by name, or a TOML file
    POPPLE_STATE                 the directory of locks, pods and partitions
    IPUOF_VIPU_API_PARTITION_ID  a partition by name
    IPUOF_CONFIG_PATH            a file that `vipu create partition` wrote
    GRAPHCORE_POD_TYPE           the kind of the default machine: pod4, bow-pod16, ...

In: a mapping, or the process's own environment. Out: an `Environment`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Environment:
    """What the variables say; an empty one counts as unset, as shells have it."""

    target: str = ""
    state: Path | None = None
    partition: str = ""
    config: Path | None = None
    pod_type: str = ""


def read_environment(environ: Mapping[str, str] | None = None) -> Environment:
    """Read the variables as they are now: programs may change them while they run."""
    found = os.environ if environ is None else environ
    return Environment(
        target=found.get("POPPLE_TARGET", ""),
        state=_path(found.get("POPPLE_STATE", "")),
        partition=found.get("IPUOF_VIPU_API_PARTITION_ID", ""),
        config=_path(found.get("IPUOF_CONFIG_PATH", "")),
        pod_type=found.get("GRAPHCORE_POD_TYPE", ""),
    )


def _path(text: str) -> Path | None:
    return Path(text).expanduser().absolute() if text else None
