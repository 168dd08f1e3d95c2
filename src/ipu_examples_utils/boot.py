"""Serves this package as `examples_utils`; runs whenever a Python starts.

In: nothing. Out: one finder at the end of `sys.meta_path`, so it is asked only for
names that nobody else has: a genuine examples_utils that is installed comes first.
"""

import sys

NAME = "examples_utils"


class Finder:
    """Finds `examples_utils` here if it is nowhere else."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> object:
        """The spec of the package; its modules are found by its path."""
        if name != NAME:
            return None
        from importlib.util import spec_from_file_location
        from pathlib import Path

        home = Path(__file__).parent
        return spec_from_file_location(
            NAME, home / "__init__.py", submodule_search_locations=[str(home)]
        )


def install() -> None:
    """Put the finder last; a second call changes nothing."""
    if Finder not in sys.meta_path:
        sys.meta_path.append(Finder)  # pyright: ignore[reportArgumentType]


install()
