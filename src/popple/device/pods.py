"""Pods that a user creates: machines that programs hold for themselves alone.

    <state>/pods/<name>/     a pod of this user
    <shared>/<name>/         a pod of all users of this host, made with --shared

In: a kind of system and a name. Out: the pod as a `Machine`. A pod stays until it is
removed; the newest of a user's own is the one in force, then the newest shared one.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from popple.device.environment import Environment, read_environment
from popple.device.machine import Machine, make_machine
from popple.device.registry import POD_FILE, Registry, list_file_names
from popple.device.state import (
    Roots,
    check_name,
    find_roots,
    get_user_name,
    make_directory,
    make_shared_file,
    make_shared_root,
    read_json,
    saying_where,
    write_json,
)
from popple.errors import DeviceBusyError, DeviceError, TargetError, suggest
from popple.target import load_system

_SHARED_DIRECTORY = 0o755


@dataclass(frozen=True)
class CreatedPod:
    """A pod as its creator described it; `created` is a UTC time in ISO 8601."""

    machine: Machine
    user: str
    created: str


def create_pod(
    kind: str,
    name: str = "",
    *,
    is_shared: bool = False,
    environ: Mapping[str, str] | None = None,
) -> CreatedPod:
    """Make a pod of a kind of system; it is in force from now on."""
    roots = find_roots(read_environment(environ))
    machine = _plan(kind, name, is_shared, roots)
    if find_pod(machine.name, environ) is not None:
        raise DeviceError(
            f"There is a pod {machine.name!r} already.",
            remedy=f"Give this one another --name, or 'popple pod remove "
            f"{machine.name}'.",
        )
    with saying_where(machine.directory.parent):
        _make_parent(machine, roots)
        _publish(machine)
    return CreatedPod(machine, *_read_maker(machine))


def _plan(kind: str, name: str, is_shared: bool, roots: Roots) -> Machine:
    origin = str(Path(kind).absolute()) if kind.lower().endswith(".toml") else kind
    system = load_system(origin)
    name = check_name(name or system.name, "pod")
    parent = roots.shared if is_shared else roots.own / "pods"
    machine = make_machine(name, origin, parent / name)
    return replace(machine, is_shared=is_shared, is_pod=True)


def _make_parent(machine: Machine, roots: Roots) -> None:
    if machine.is_shared:
        make_shared_root(roots.shared)
    else:
        make_directory(machine.directory.parent, roots.own)


def _publish(machine: Machine) -> None:
    """Make the directory under another name, so that it appears complete."""
    place = machine.directory
    draft = place.with_name(f".{uuid.uuid4().hex}")
    draft.mkdir(mode=0o700)
    try:
        _fill(draft, machine)
        if place.is_dir() and not (place / POD_FILE).exists():
            shutil.rmtree(place)  # left by somebody who waited for a removed pod
        draft.rename(place)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _fill(directory: Path, machine: Machine) -> None:
    content = {
        "name": machine.name,
        "system": machine.origin,
        "user": get_user_name(),
        "created": datetime.now(timezone.utc).isoformat(),
    }
    write_json(directory / POD_FILE, content)
    if machine.is_shared:
        # Made once by the creator, in a directory that nobody else can change: other
        # users can lock these files, and put nothing else in their place.
        for name in list_file_names(machine.chips):
            make_shared_file(directory / name)
        (directory / POD_FILE).chmod(0o644)
        directory.chmod(_SHARED_DIRECTORY)


def list_pods(environ: Mapping[str, str] | None = None) -> tuple[CreatedPod, ...]:
    """All pods that this user may use, the one in force first."""
    return list_pods_in(find_roots(read_environment(environ)))


def list_pods_in(roots: Roots) -> tuple[CreatedPod, ...]:
    """The pods of two state directories: the user's own first, newest first."""
    own = _read_pods(roots.own / "pods", is_shared=False)
    shared = _read_pods(roots.shared, is_shared=True)
    return (*own, *shared)


def _read_pods(parent: Path, *, is_shared: bool) -> tuple[CreatedPod, ...]:
    try:
        names = [name for name in os.listdir(parent) if not name.startswith(".")]
    except OSError:
        # No pod was ever made here, or it is not for us to look.
        return ()
    paths = (parent / name / POD_FILE for name in names)
    pods = (_read_pod(path, is_shared=is_shared) for path in paths)
    found = [pod for pod in pods if pod is not None]
    return tuple(sorted(found, key=lambda pod: pod.created, reverse=True))


def _read_pod(path: Path, *, is_shared: bool) -> CreatedPod | None:
    found = read_json(path)
    try:
        machine = make_machine(path.parent.name, found["system"], path.parent)
    except (LookupError, TypeError, AttributeError, TargetError):
        # Left by another version, or its TOML file has gone.
        return None
    machine = replace(machine, is_shared=is_shared, is_pod=True)
    return CreatedPod(machine, *_read_maker(machine))


def _read_maker(machine: Machine) -> tuple[str, str]:
    found: Mapping[str, Any] = read_json(machine.directory / POD_FILE)
    return str(found.get("user", "")), str(found.get("created", ""))


def find_pod(name: str, environ: Mapping[str, str] | None = None) -> CreatedPod | None:
    """The pod of that name, a user's own before a shared one."""
    pods = list_pods(environ)
    return next((pod for pod in pods if pod.machine.name == name), None)


def get_pod(name: str, environ: Mapping[str, str] | None = None) -> CreatedPod:
    """As `find_pod`, but there is one."""
    found = find_pod(name, environ)
    if found is None:
        names = [pod.machine.name for pod in list_pods(environ)]
        raise DeviceError(
            f"There is no pod {name!r}.",
            remedy=suggest(name, names) if names else "None was created.",
        )
    return found


def remove_pod(name: str, environ: Mapping[str, str] | None = None) -> CreatedPod:
    """Remove a pod with its partitions, unless a program uses it."""
    pod = get_pod(name, environ)
    directory = pod.machine.directory
    registry = Registry(directory, is_shared=pod.machine.is_shared, is_pod=True)
    with registry.guard():
        holders = registry.read_holders(pod.machine.chips)
        if holders:
            pids = ", ".join(str(pid) for pid in sorted({h.pid for h in holders}))
            raise DeviceBusyError(
                f"Pod {name} is in use by process {pids}.",
                remedy="Wait until it ends.",
            )
        _check_owner(pod)
        # Away in one step, with the guard that others may be waiting for.
        removed = directory.with_name(f".{uuid.uuid4().hex}")
        with saying_where(directory):
            directory.rename(removed)
    with suppress(OSError):
        shutil.rmtree(removed)
    return pod


def _check_owner(pod: CreatedPod) -> None:
    if not os.access(pod.machine.directory, os.W_OK):
        raise DeviceError(
            f"Pod {pod.machine.name} belongs to user {pod.user}.",
            remedy="Only who created it can change it.",
        )


def find_pod_in_force(environment: Environment) -> CreatedPod | None:
    """The pod that programs use which name no machine."""
    return next(iter(list_pods_in(find_roots(environment))), None)
