"""The command lines of `popple notebook`, and the environment that kernels get."""

from __future__ import annotations

import os
from argparse import REMAINDER, ArgumentParser, Namespace
from pathlib import Path

from popple.tools.enable import cache_variables

DEFAULT_IPUS = 16
_DEFAULT_CACHE = "/tmp/exe_cache/"
_MODES = ("release", "development", "template")
_FORMATS = ("text", "json", "github")


def add_new(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of its folder and files")
    parser.add_argument(
        "--directory",
        metavar="DIR",
        type=Path,
        default=Path(),
        help="where the folder is made (default: here)",
    )
    parser.add_argument(
        "--title",
        default="<Task> on IPUs using <Model> - <Inference, Fine-tuning or Training>",
        help="the title, '[Task] on IPUs using [Model] - Inference'",
    )
    parser.add_argument("--owner", default="<owner>", help="who holds the copyright")


def _add_paths(parser: ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="FILE|DIR",
        type=Path,
        nargs="+",
        help="notebooks; a directory stands for those in it",
    )


def add_check(parser: ArgumentParser) -> None:
    _add_paths(parser)
    parser.add_argument(
        "--mode",
        choices=_MODES,
        default="release",
        help="drafts may have notes and autoreload, templates placeholders too",
    )
    parser.add_argument("--format", choices=_FORMATS, default="text")
    parser.add_argument(
        "--only", metavar="ID", action="append", default=[], help="these rules alone"
    )
    parser.add_argument(
        "--run", action="store_true", help="also run them, with 16 and with 4 IPUs"
    )
    parser.add_argument(
        "--online", action="store_true", help="also try the links to other computers"
    )
    parser.add_argument(
        "--strict", action="store_true", help="warnings fail the check too"
    )
    parser.add_argument(
        "--no-checklist", action="store_true", help="without the reviewer's questions"
    )


def add_build(parser: ArgumentParser) -> None:
    _add_paths(parser)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if files differ"
    )
    parser.add_argument(
        "--execute", action="store_true", help="run it, and show outputs in README.md"
    )
    add_environment(parser)


def add_run(parser: ArgumentParser) -> None:
    _add_paths(parser)
    parser.add_argument(
        "--timeout", metavar="S", type=int, default=600, help="seconds for one cell"
    )
    parser.add_argument(
        "--output", metavar="DIR", type=Path, help="keep the executed notebooks here"
    )
    add_environment(parser)


def add_badge(parser: ArgumentParser) -> None:
    from popple.notebook.badge import DEFAULT_HOST, DEFAULT_MACHINE

    parser.add_argument("repository", metavar="ORGANISATION/NAME")
    parser.add_argument("file", metavar="NOTEBOOK", help="its path in the repository")
    parser.add_argument(
        "--container", metavar="IMAGE:TAG", required=True, help="what it runs in"
    )
    parser.add_argument(
        "--machine", default=DEFAULT_MACHINE, help="the platform's name"
    )
    parser.add_argument("--host", default=DEFAULT_HOST, help="the platform")
    parser.add_argument("--label", default="Run on Gradient", help="the badge's text")
    parser.add_argument(
        "--svg", metavar="FILE", type=Path, help="write the badge's picture"
    )
    parser.add_argument(
        "--image", metavar="PATH", help="the picture as the notebook names it"
    )


def add_open(parser: ArgumentParser) -> None:
    add_environment(parser)
    parser.add_argument("words", metavar="...", nargs=REMAINDER, help="for Jupyter")


def add_environment(parser: ArgumentParser) -> None:
    """What notebooks read from the environment; set variables count if not given."""
    parser.add_argument("--ipus", metavar="N", type=int, help="NUM_AVAILABLE_IPU")
    parser.add_argument("--pod-type", metavar="TYPE", help="GRAPHCORE_POD_TYPE")
    parser.add_argument("--cache", metavar="DIR", help="POPLAR_EXECUTABLE_CACHE_DIR")
    parser.add_argument("--datasets", metavar="DIR", help="DATASETS_DIR")
    parser.add_argument("--checkpoints", metavar="DIR", help="CHECKPOINT_DIR")


def environment_of(arguments: Namespace) -> dict[str, str]:
    """The environment of a kernel: this one's, with what was asked for."""
    found = dict(os.environ)
    count = arguments.ipus or int(found.get("NUM_AVAILABLE_IPU") or DEFAULT_IPUS)
    found["NUM_AVAILABLE_IPU"] = str(count)
    if arguments.pod_type or arguments.ipus or not found.get("GRAPHCORE_POD_TYPE"):
        found["GRAPHCORE_POD_TYPE"] = arguments.pod_type or f"pod{count}"
    for name, value in (
        ("POPLAR_EXECUTABLE_CACHE_DIR", arguments.cache),
        ("DATASETS_DIR", arguments.datasets),
        ("CHECKPOINT_DIR", arguments.checkpoints),
    ):
        if value:
            found[name] = str(Path(value).absolute())
    cache = Path(found.setdefault("POPLAR_EXECUTABLE_CACHE_DIR", _DEFAULT_CACHE))
    return {**found, **cache_variables(cache, found)}
