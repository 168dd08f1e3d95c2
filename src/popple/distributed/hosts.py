"""Lists of hosts as users write them: `host0,host1`, `host[0-2,4]`, or a file."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from pathlib import Path

from popple.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9_.:@-]+")
# A comma inside brackets belongs to the numbers.
_COMMA = re.compile(r",(?![^\[]*\])")
_RANGE = re.compile(r"([^\[\]]*)\[([^\[\]]+)\]([^\[\]]*)")


def parse_hosts(text: str) -> tuple[str, ...]:
    """The hosts of a list: `host[0-2,4]` are host0, host1, host2 and host4."""
    parts = [part.strip() for part in _COMMA.split(text)]
    hosts = tuple(host for part in parts if part for host in _expand(part))
    if not hosts:
        raise UsageError("The list of hosts is empty.", remedy="Write host0,host1.")
    return hosts


def read_hostfile(path: Path) -> tuple[str, ...]:
    """The hosts of a file, one a line; what follows a blank or `#` is not read."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"The hostfile cannot be read: {error}.") from error
    names = [line.partition("#")[0].split() for line in lines]
    return parse_hosts(",".join(words[0] for words in names if words))


def is_local(host: str) -> bool:
    """Whether a name means this computer."""
    return host in {"localhost", "127.0.0.1", "::1", socket.gethostname()}


def address_for(host: str) -> str:
    """The address under which a host sees this computer."""
    name = host.rpartition("@")[2]
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            # Nothing is sent: the system only chooses the way there.
            probe.connect((name, 9))
            return probe.getsockname()[0]
    except OSError:
        # A name that only ssh knows: the host will have to find us by ours.
        return socket.gethostname()


def local_hosts() -> Sequence[str]:
    """The hosts of a job that names none."""
    return ("localhost",)


def _expand(text: str) -> list[str]:
    match = _RANGE.fullmatch(text)
    if match is None:
        return [_checked(text)]
    before, numbers, after = match.groups()
    return [_checked(f"{before}{n}{after}") for n in _numbers(numbers, text)]


def _numbers(text: str, whole: str) -> list[str]:
    """`0-2,4` are 0, 1, 2 and 4; `08-10` keeps two digits."""
    found: list[str] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise UsageError(
                f"{whole!r} is no list of hosts.", remedy="Write host[0-2,4]."
            )
        numbers = range(int(first), int(last or first) + 1)
        found += [str(number).zfill(len(first)) for number in numbers]
    return found


def _checked(host: str) -> str:
    # Names go into command lines of ssh, where one that begins with a dash would be
    # an option.
    if not _NAME.fullmatch(host) or host.startswith("-"):
        raise UsageError(f"{host!r} is no name of a host.")
    return host
