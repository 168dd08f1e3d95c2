"""Event records: what went wrong in a program that used a device, for monitors to read.

In: a lease and a description. Out: one JSON file in a directory, as the documentation
of gcipuinfo describes; all values are text. An event replaces an earlier one of at most
its own severity.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import cast

from popple.device.attributes import partition_of
from popple.device.boards import site_of
from popple.device.lease import Lease
from popple.device.registry import describe_process
from popple.files import write_atomically

FILE_NAME = "ipu_app_event_record.json"
SEVERITIES = ("info", "warning", "error")


def record_event(
    directory: str | Path, lease: Lease, description: str, severity: str = "error"
) -> None:
    """Write the event, unless a more severe one is there."""
    path = Path(directory) / FILE_NAME
    earlier = read_event(directory).get("severity", SEVERITIES[0])
    if SEVERITIES.index(severity) < SEVERITIES.index(earlier):
        return
    chips = lease.device.chip_ids
    machine = lease.machine
    hosts = {site_of(machine.system, machine.name, c).server for c in chips}
    ids = ",".join(map(str, chips))
    event = {
        "event record path": str(path),
        "timestamp": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "severity": severity,
        "command line": describe_process(),
        "pid": str(os.getpid()),
        "attached ipus": ids,
        "specific ipus": ids,
        "attached ipu hosts": ",".join(sorted(hosts)),
        "specific ipu hosts": ",".join(sorted(hosts)),
        "partition": partition_of(machine),
        "description": description,
    }
    write_atomically(path, json.dumps(event, indent=2))


def read_event(directory: str | Path) -> Mapping[str, str]:
    """The event in a directory; empty if there is none that can be read."""
    try:
        found: object = json.loads((Path(directory) / FILE_NAME).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    table = cast("dict[str, object]", found)
    severity = table.get("severity")
    known = severity in SEVERITIES and all(isinstance(v, str) for v in table.values())
    return cast("dict[str, str]", table) if known else {}
