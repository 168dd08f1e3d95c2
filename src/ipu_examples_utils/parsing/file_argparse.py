"""`parse_yaml_config`: arguments of a command line from a section of a YAML file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from ..yaml_files import read_yaml

__all__ = ["parse_yaml_config"]


def parse_yaml_config(args: Namespace, parser: ArgumentParser) -> Namespace:
    """The arguments with the section `args.config` of `args.config_path` as defaults.

    The section is parsed as if it stood on the command line, which still wins.
    """
    if args.config is None:
        return args
    sections: dict[str, Any] = read_yaml(args.config_path)
    if args.config not in sections:
        raise ValueError(
            f"unknown config {args.config} in config file. "
            f"Available configs are {list(sections)}."
        )
    section = parser.parse_args(_words(sections[args.config]))
    parser.set_defaults(**vars(section))
    return parser.parse_args()


def _words(section: dict[str, Any]) -> list[str]:
    """A section of a file as the words of a command line."""
    words: list[str] = []
    for name, value in section.items():
        values = value if isinstance(value, list) else [value]
        words += [f"--{name}", *map(str, values)]
    return words
