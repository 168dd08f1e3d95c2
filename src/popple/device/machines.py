"""Which machine programs attach to, and which others are in use.

In: a target and the environment. Out: `Machine`s. The first that is named counts:

1. a target: a pod of that name, or the exclusive machine of a system or TOML file;
2. a partition, by IPUOF_VIPU_API_PARTITION_ID or the file of IPUOF_CONFIG_PATH;
3. the newest pod that this user created, or else the newest shared one;
4. the default machine, which is elastic; GRAPHCORE_POD_TYPE says of which kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from popple.device.environment import Environment, read_environment
from popple.device.machine import (
    Machine,
    default_machine,
    list_described,
    named_machine,
)
from popple.device.partitions import (
    find_partition_name,
    get_partition,
    list_partitions,
)
from popple.device.pod import Pod
from popple.device.pods import find_pod, find_pod_in_force, list_pods
from popple.device.state import find_roots


def find_machine(
    target: str = "",
    environ: Mapping[str, str] | None = None,
    *,
    min_chips: int = 0,
) -> Machine:
    """The machine that programs attach to now.

    `min_chips` asks for a larger system of the same kind where the machine is neither a
    pod nor a partition, whose size somebody has chosen.
    """
    environment = read_environment(environ)
    chosen = target or environment.target
    if chosen:
        pod = find_pod(chosen, environ)
        roots = find_roots(environment)
        return pod.machine if pod else named_machine(chosen, roots, min_chips)
    name = find_partition_name(environment)
    if name:
        return get_partition(name, environ).machine
    return _find_unnamed(environment, min_chips)


def _find_unnamed(environment: Environment, min_chips: int) -> Machine:
    pod = find_pod_in_force(environment)
    if pod is not None:
        return pod.machine
    return default_machine(environment, find_roots(environment), min_chips)


def list_machines(environ: Mapping[str, str] | None = None) -> tuple[Machine, ...]:
    """The machine in force, then every other one on which a chip is held.

    The copies of the default machine are listed one by one.
    """
    first = find_machine(environ=environ)
    others = {machine.directory: machine for machine in _list_known(environ)}
    others.pop(first.directory, None)
    used = (machine for machine in others.values() if Pod(machine).holders())
    return (first, *used)


def _list_known(environ: Mapping[str, str] | None) -> Iterator[Machine]:
    yield from list_described(find_roots(read_environment(environ)))
    for partition in list_partitions(environ):
        # The chips of a pod's partitions are seen with the pod.
        if not partition.pod:
            yield partition.machine
    yield from (pod.machine for pod in list_pods(environ))
