"""`horovod` for programs that use it beside `popdist`, where Horovod is not there.

Programs for IPUs use Horovod on the host: to share a seed, weights at the start, and
the numbers they log. This module runs whenever a Python of the environment starts and
puts one finder at the end of `sys.meta_path`, where it is asked for what nobody else
has: a real Horovod is never replaced. Other programs pay for this file only, which is
why it imports nothing but sys.
"""

import sys

__all__ = ["SERVED", "Finder", "install"]

# Files beside this one by the names they are served under.
SERVED = {
    "horovod": "package.py",
    "horovod.tensorflow": "tensorflow.py",
    "horovod.torch": "torch.py",
}


class Finder:
    """Finds our modules under Horovod's names."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> object:
        """The spec of a module that Popple serves; None leaves it to others."""
        if name not in SERVED:
            return None
        # A real Horovod without its part for a framework stays as it is.
        if name != "horovod" and not hasattr(sys.modules["horovod"], "IS_POPPLE"):
            return None
        from importlib.util import spec_from_file_location
        from pathlib import Path

        file = Path(__file__).with_name(SERVED[name])
        inside = [] if name == "horovod" else None
        return spec_from_file_location(name, file, submodule_search_locations=inside)


def install() -> None:
    """Put the finder at the end; a second call changes nothing."""
    if Finder not in sys.meta_path:
        sys.meta_path.append(Finder)  # pyright: ignore[reportArgumentType]


install()
