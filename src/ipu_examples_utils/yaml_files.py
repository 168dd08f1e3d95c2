"""Reads YAML files, with numbers like 1e-3 as the examples write them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from popple.errors import UsageError

# YAML 1.1 wants a point in a number with an exponent; examples write 1e-3.
_EXPONENT = re.compile(r"[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$")


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping in a YAML file."""
    try:
        import yaml
    except ImportError as error:
        raise UsageError(
            "Reading YAML files needs the package pyyaml.",
            remedy="Install it: pip install 'popple[examples-utils]'.",
        ) from error

    class Loader(yaml.SafeLoader):
        """Knows such numbers; a class of its own leaves PyYAML's as it is."""

    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789")
    )
    try:
        found = yaml.load(Path(path).read_text("utf-8"), Loader)
    except (OSError, yaml.YAMLError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error
    if not isinstance(found, dict):
        raise UsageError("is not a mapping of names.", where=str(path))
    return found
