"""`examples_utils` for published examples: benchmarks, parsing, test commands.

Imported as `examples_utils` where Graphcore's package of that name is not installed
(`boot`). It holds what the examples use of it: `python -m examples_utils benchmark`,
`parse_yaml_config`, `load_lib` and `testing.test_commands`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .benchmarks.custom_metrics import register_custom_metric
    from .load_lib_utils import load_lib
    from .parsing import parse_yaml_config

# Where public names lie. They are imported when asked for: Python's start loads this
# file for the finder beside it.
_HOMES = {
    "load_lib": "load_lib_utils",
    "parse_yaml_config": "parsing",
    "register_custom_metric": "benchmarks.custom_metrics",
}

__all__ = ["load_lib", "parse_yaml_config", "register_custom_metric"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(
            f"Popple's examples_utils has no {name!r}. It has: {', '.join(_HOMES)}. "
            "For the rest install Graphcore's own examples-utils."
        )
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
