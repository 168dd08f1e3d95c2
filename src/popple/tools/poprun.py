"""`poprun [options] program [program args]`: run a program in several instances.

In: the command line. Out: the exit status of the job, which is that of the first
instance that failed. Instances are processes, on this computer or over ssh on others;
`popdist` and `poptorch.Options` tell a program which one it is.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from popple._version import __version__
from popple.device import create_partition, find_partition, remove_partition
from popple.distributed.launcher import launch
from popple.distributed.layout import (
    describe_layout,
    exported_variables,
    place_instances,
)
from popple.distributed.options import (
    LaunchOptions,
    flag,
    parse_command_line,
    write_config,
)
from popple.errors import DeviceBusyError, PoppleError, UsageError

_REFUSED = 2
_SECONDS_BETWEEN_ATTEMPTS = 1.0
_USAGE = "poprun [options] program [program args]"
_MPI = """\
Of mpirun's options these have an effect: -x VAR[=VALUE], --tag-output and
--output-filename DIR. There is no mpirun here, and the others are listed with -v.
Booleans are yes or no; 1 and 0, on and off are understood, too.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a job and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in ("--help", "-h"):
        print(help_text())
        return 0
    if any(word.startswith("--version") for word in words[:1]):
        print(version_text(words))
        return 0
    try:
        return run(parse_command_line(words))
    except PoppleError as error:
        _say(f"error: {error}")
        return _REFUSED


def run(options: LaunchOptions) -> int:
    """Do what the options say."""
    if options.export_config:
        write_config(options, Path(options.export_config))
        if not options.program:
            return 0
    if not options.program:
        raise UsageError("poprun needs a program to run.", remedy=f"Usage: {_USAGE}.")
    placed = place_instances(options)
    if options.print_topology or options.verbose:
        _say(f"{len(placed)} instances\n{describe_layout(placed)}")
    if options.verbose:
        _say_details(options)
        if options.reset_partition:
            _say("virtual IPUs need no reset")
    with _partition(options) as variables:
        return launch(options, os.environ, variables, _say)


def _say_details(options: LaunchOptions) -> None:
    """What only curious users want to know."""
    for arguments in (options.mpi_global_args, options.mpi_local_args):
        exported, others = exported_variables(arguments, os.environ)
        for name, value in exported.items():
            _say(f"all instances get {name}={value}")
        if others:
            _say(f"options for mpirun, which is not used here: {' '.join(others)}")
    if options.verbose > 1:
        _say(f"options: {options}")


@contextmanager
def _partition(
    options: LaunchOptions,
) -> Generator[dict[str, str], None, None]:
    """Inside, the partition of the options exists; what tells programs to use it."""
    name = options.vipu_partition
    if not name or options.offline_mode:
        yield {}
        return
    is_new = _prepare_partition(options)
    try:
        yield {
            "IPUOF_VIPU_API_PARTITION_ID": name,
            "IPUOF_VIPU_API_HOST": options.vipu_server_host,
            "IPUOF_VIPU_API_PORT": str(options.vipu_server_port),
            "IPUOF_VIPU_API_TIMEOUT": str(options.vipu_server_timeout),
        }
    finally:
        if is_new and options.remove_partition:
            # Nothing of the job runs any more: whoever still holds it is a stranger.
            remove_partition(name)


def _prepare_partition(options: LaunchOptions) -> bool:
    """Have a partition with enough IPUs; whether it was created for this job."""
    name, wanted = options.vipu_partition, _partition_size(options)
    found = find_partition(name)
    if found is not None and found.num_chips >= wanted:
        return False
    if found is not None and not options.update_partition:
        raise UsageError(
            f"Partition {name} has {found.num_chips} IPUs, the job needs {wanted}.",
            remedy="Let --update-partition=yes make it anew, or name another.",
        )
    for attempt in range(options.vipu_partition_attempts):
        try:
            if find_partition(name) is not None:
                remove_partition(name)
            create_partition(name, wanted)
            break
        except DeviceBusyError:
            if attempt == options.vipu_partition_attempts - 1:
                raise
            time.sleep(_SECONDS_BETWEEN_ATTEMPTS)
    # A partition that was there before the job stays after it, in its new size.
    return found is None


def _partition_size(options: LaunchOptions) -> int:
    """IPUs of the job: partitions have a power of two of them."""
    wanted = options.num_replicas * options.ipus_per_replica
    return 1 << (wanted - 1).bit_length()


def _say(text: str) -> None:
    print(f"poprun: {text}", file=sys.stderr, flush=True)


def version_text(words: Sequence[str]) -> str:
    """What `--version` prints, in the format asked for."""
    chosen = [w.partition("=")[2] for w in words if w.startswith("--version-format=")]
    if chosen and chosen[-1].endswith("json"):
        return json.dumps({"poprun": __version__, "popdist": __version__})
    return f"poprun {__version__}"


def help_text() -> str:
    """All options with their defaults."""
    lines = [f"Usage: {_USAGE}", ""]
    group = ""
    for each in fields(LaunchOptions):
        if not each.metadata:
            continue
        if each.metadata["group"] != group:
            group = each.metadata["group"]
            lines.append(f"{group}:")
        default = f" [{each.default}]" if each.default not in ("", None) else ""
        lines.append(f"  {flag(each.name):28}{each.metadata['text']}{default}")
    return "\n".join([*lines, "  -v, -vv                     say more", "", _MPI])


if __name__ == "__main__":
    sys.exit(main())
