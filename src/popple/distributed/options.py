"""The options of `poprun`: a table, a reader of command lines, and files of them.

A command line is `poprun [options] program [program args]`: options end at the first
word that is none, and what follows belongs to the program. Values may stand behind `=`
or in the next word, even if that begins with a dash (`--mpi-global-args --tag-output`).
Names may be cut short while they are unique.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast

from popple.errors import UsageError, suggest
from popple.files import write_atomically

_YES = frozenset({"yes", "1", "on", "true", "y"})
_NO = frozenset({"no", "0", "off", "false", "n"})


def _option(default: Any, kind: str, text: str, group: str) -> Any:
    """A field with what the command line knows of it."""
    return field(default=default, metadata={"kind": kind, "text": text, "group": group})


@dataclass(frozen=True)
class LaunchOptions:
    """What `poprun` is told; names are those of the options, with underscores."""

    import_config: str = _option("", "text", "read options from this file", "General")
    export_config: str = _option(
        "", "text", "write the options to this file", "General"
    )
    overwrite_config: bool = _option(
        False, "bool", "let --export-config replace a file", "General"
    )
    host: str = _option("", "text", "hosts: host0,host1 or host[0-2,4]", "Layout")
    hostfile: str = _option("", "text", "a file with one host a line", "Layout")
    num_replicas: int = _option(1, "number", "replicas of all instances", "Layout")
    num_instances: int = _option(
        1, "number", "processes; replicas are divided evenly among them", "Layout"
    )
    ipus_per_replica: int = _option(1, "number", "IPUs of each replica", "Layout")
    num_ilds: int = _option(0, "number", "IPU-Link domains", "Layout")
    sync_type: str = _option("ST_POD_NATIVE_DEFAULT", "text", "kind of sync", "Layout")
    vipu_server_host: str = _option("localhost", "text", "the V-IPU server", "V-IPU")
    vipu_server_port: int = _option(8090, "number", "its port", "V-IPU")
    vipu_server_timeout: int = _option(
        120, "number", "seconds to wait for its answers", "V-IPU"
    )
    vipu_partition: str = _option("", "text", "partition to use or create", "V-IPU")
    vipu_partition_attempts: int = _option(
        1, "number", "how often to try to get the partition", "V-IPU"
    )
    update_partition: bool = _option(
        False, "bool", "make the partition anew if it does not fit", "V-IPU"
    )
    reset_partition: bool | None = _option(
        None, "bool", "reset the partition before the run", "V-IPU"
    )
    remove_partition: bool = _option(
        True, "bool", "remove a partition that poprun has created", "V-IPU"
    )
    vipu_allocation: str = _option(
        "", "text", "allocation to create the partition in", "V-IPU"
    )
    vipu_cluster: str = _option("", "text", "deprecated: --vipu-allocation", "V-IPU")
    executable_cache_path: str = _option(
        "", "text", "executable cache of all instances", "Running"
    )
    mpi_global_args: str = _option(
        "", "text", "options of mpirun for the job (see below)", "Running"
    )
    mpi_local_args: str = _option(
        "", "text", "options of mpirun for each instance: -x VAR[=VALUE]", "Running"
    )
    numa_aware: bool = _option(
        False, "bool", "bind instances to NUMA nodes in turn", "Running"
    )
    print_topology: bool = _option(
        False, "bool", "print which instance runs where", "Running"
    )
    only_output_from_instance: int = _option(
        -1, "number", "show the output of this instance alone", "Running"
    )
    offline_mode: bool = _option(
        False, "bool", "compile only: attach to no IPU", "Running"
    )
    verbose: int = 0
    program: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("num_replicas", "num_instances", "ipus_per_replica"):
            if getattr(self, name) < 1:
                raise UsageError(f"{flag(name)} must be at least 1.")
        if self.num_replicas % self.num_instances:
            raise UsageError(
                f"{self.num_replicas} replicas cannot be divided evenly among "
                f"{self.num_instances} instances.",
                remedy="Make --num-replicas a multiple of --num-instances.",
            )
        if self.host and self.hostfile:
            raise UsageError("--host and --hostfile exclude each other.")
        if self.only_output_from_instance >= self.num_instances:
            raise UsageError(
                f"There is no instance {self.only_output_from_instance}.",
                remedy=f"They are numbered from 0 to {self.num_instances - 1}.",
            )


KINDS: Mapping[str, str] = {
    each.name: each.metadata["kind"] for each in fields(LaunchOptions) if each.metadata
}
"""Names of options with the kind of their values: text, number or bool."""

_SHORT = {"-H": "host", "-v": "verbose", "--verbose": "verbose"}
_VERBOSE = {"-v": 1, "--verbose": 1, "-vv": 2, "--vv": 2, "--very-verbose": 2}
# Options of files: they say where the others come from or go to.
_OF_FILES = frozenset({"import_config", "export_config", "overwrite_config"})


def flag(name: str) -> str:
    """`--num-replicas` of `num_replicas`."""
    return "--" + name.replace("_", "-")


def parse_command_line(words: Sequence[str]) -> LaunchOptions:
    """The options and the program of a command line; a file it names is read first."""
    values, program = _read_words(list(words))
    if path := values.get("import_config"):
        values = {**read_config(Path(str(path))), **values}
    return LaunchOptions(**values, program=tuple(program))


def _read_words(words: list[str]) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word == "--":
            break
        if word in _VERBOSE:
            values["verbose"] = _VERBOSE[word]
            continue
        name, _, text = word.partition("=")
        found = _SHORT.get(name) or _full_name(name)
        if "=" not in word:
            text = _next_word(found, words)
        # Said twice: hosts are joined, as aliases of one host; else the last one wins.
        if found == "host" and "host" in values:
            text = f"{values['host']},{text}"
        values[found] = convert(found, text)
    return values, words


def _full_name(word: str) -> str:
    name = word.removeprefix("--").replace("-", "_")
    if name in KINDS:
        return name
    longer = [each for each in KINDS if each.startswith(name)]
    if len(longer) == 1 and word.startswith("--"):
        return longer[0]
    remedy = (
        f"It could be {', '.join(map(flag, longer))}."
        if longer
        else suggest(word, map(flag, KINDS))
    )
    raise UsageError(f"poprun has no option {word}.", remedy=remedy)


def _next_word(name: str, words: list[str]) -> str:
    """The value of an option that has no `=`; a lone boolean means yes."""
    if KINDS[name] == "bool":
        is_value = bool(words) and words[0].lower() in _YES | _NO
        return words.pop(0) if is_value else "yes"
    if not words:
        raise UsageError(f"{flag(name)} needs a value.")
    return words.pop(0)


def convert(name: str, text: str) -> str | int | bool:
    """The value of an option from what the user wrote."""
    kind = KINDS[name]
    if kind == "bool":
        if text.lower() not in _YES | _NO:
            raise UsageError(
                f"{flag(name)} is yes or no, not {text!r}.",
                remedy="1 and 0, on and off are understood, too.",
            )
        return text.lower() in _YES
    if kind == "text":
        return text
    try:
        return int(text)
    except ValueError as error:
        raise UsageError(f"{flag(name)} needs a number, not {text!r}.") from error


# -- files


def read_config(path: Path) -> dict[str, Any]:
    """The options of a file that `write_config` wrote, or that was written by hand."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"The configuration cannot be read: {error}.") from error
    if not isinstance(found, dict):
        raise UsageError("A configuration is a JSON object.", where=str(path))
    values: dict[str, Any] = {}
    for name, value in cast(dict[str, object], found).items():
        full = _full_name(flag(name))
        # JSON has numbers and booleans of its own; texts are read as on the command
        # line.
        text = str(int(value)) if isinstance(value, bool) else str(value)
        values[full] = convert(full, text)
    return values


def write_config(options: LaunchOptions, path: Path) -> None:
    """Write the options that differ from their defaults."""
    if path.exists() and not options.overwrite_config:
        raise UsageError(
            f"{path} is there already.", remedy="Allow --overwrite-config=yes."
        )
    default = LaunchOptions()
    changed = {
        flag(name).removeprefix("--"): getattr(options, name)
        for name in KINDS
        if name not in _OF_FILES and getattr(options, name) != getattr(default, name)
    }
    write_atomically(path, json.dumps(changed, indent=2).encode() + b"\n")
