"""`popple enable`: the variables that `source enable.sh` of an SDK would have set.

    eval "$(popple enable --cache ~/.cache/ipu)"

prints them as lines for a shell; `--script DIR` writes files to source, in the folders
that an SDK has. Programs run without either: these serve scripts that source a file or
ask whether an SDK is enabled.
"""

from __future__ import annotations

import os
import shlex
import sysconfig
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from pathlib import Path

from popple.errors import UsageError
from popple.files import write_atomically
from popple.tools.command import Command

ENABLED = "POPLAR_SDK_ENABLED"
TF_FLAGS = "TF_POPLAR_FLAGS"
CACHE_VARIABLES = ("POPTORCH_CACHE_DIR", "POPART_CACHE_DIR")
_CACHE_FLAG = "--executable_cache_path"
_FOLDERS = ("poplar-popple", "popart-popple")

_SCRIPT = """\
# Written by `popple enable --script`. To be sourced in bash: source enable.sh
if [ -z "${{BASH_SOURCE[0]}}" ] || [ "${{BASH_SOURCE[0]}}" = "$0" ]; then
  echo "enable.sh is to be sourced: source $0" >&2
  exit 1
fi
{lines}
"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--cache",
        metavar="DIR",
        type=Path,
        help="also set the variables of the executable caches, to this directory",
    )
    parser.add_argument(
        "--script",
        metavar="DIR",
        type=Path,
        help="write poplar-popple/enable.sh and popart-popple/enable.sh in this "
        "directory instead of printing",
    )


def run(arguments: Namespace) -> int:
    """Print the variables, or write the scripts and say how to use them."""
    cache: Path | None = arguments.cache
    variables = {} if cache is None else cache_variables(cache.absolute(), os.environ)
    if arguments.script is None:
        home = Path(__file__).parent.parent
        print(render_exports({ENABLED: str(home), **variables}))
        return 0
    for path in write_scripts(arguments.script.absolute(), variables):
        print(f"source {shlex.quote(str(path))}")
    return 0


def cache_variables(directory: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of the three executable caches, for those that are not set.

    TensorFlow's is a flag among others, which are kept.
    """
    values = {name: str(directory) for name in CACHE_VARIABLES if not environ.get(name)}
    flags = environ.get(TF_FLAGS, "").strip()
    # What does not begin with a hyphen is the name of a file of flags.
    is_file = bool(flags) and not flags.startswith("-")
    if not is_file and _CACHE_FLAG not in flags:
        flag = shlex.quote(f"{_CACHE_FLAG}={directory}")
        values[TF_FLAGS] = f"{flags} {flag}".strip()
    return values


def default_cache(environ: Mapping[str, str]) -> Path:
    """Where a user's executables are kept if nobody says otherwise.

    POPLAR_EXECUTABLE_CACHE_DIR is what published notebooks ask for their directory.
    """
    if chosen := environ.get("POPLAR_EXECUTABLE_CACHE_DIR"):
        return Path(chosen).absolute()
    home = environ.get("XDG_CACHE_HOME")
    return Path(home or Path.home() / ".cache") / "popple" / "executables"


def render_exports(variables: Mapping[str, str]) -> str:
    """Lines for a shell: the variables, and the commands on its path."""
    lines = [f"export {name}={shlex.quote(text)}" for name, text in variables.items()]
    scripts = shlex.quote(sysconfig.get_path("scripts"))
    # A second time changes nothing.
    is_there = f'":$PATH:" in *:{scripts}:*) ;;'
    lines.append(f'case {is_there} *) PATH={scripts}:"$PATH" ;; esac')
    return "\n".join([*lines, "export PATH"])


def write_scripts(directory: Path, variables: Mapping[str, str]) -> list[Path]:
    """Write the files to source; Poplar's says that it is enabled."""
    paths: list[Path] = []
    try:
        for folder in _FOLDERS:
            home = directory / folder
            home.mkdir(parents=True, exist_ok=True)
            sdk = {ENABLED: str(home)} if folder == _FOLDERS[0] else {}
            text = _SCRIPT.format(lines=render_exports({**sdk, **variables}))
            write_atomically(home / "enable.sh", text)
            paths.append(home / "enable.sh")
    except OSError as error:
        raise UsageError(
            f"{directory} cannot be written: {error.strerror}.",
            remedy="Name a directory that you may write to.",
        ) from error
    return paths


COMMAND = Command(
    "enable", "Print the variables that an SDK's enable.sh sets.", add_arguments, run
)
