"""Programs in the executable cache that the shell names.

`TF_POPLAR_FLAGS=--executable_cache_path=DIR` names it. A program that is compiled
leaves a file there. Its cycles and its report are added when somebody asks for them,
and the next process to compile the same program takes them from the file: then nothing
is captured and nothing is planned.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tensorflow.python.platform import tf_logging as logging

from popple.session import ExecutableCache, KeptProgram

__all__ = ["find_kept"]


def find_kept(
    name: str, directory: Path, key_of: Callable[[], str]
) -> tuple[KeptProgram, bool]:
    """The entry of the program `name`, and whether it was there before."""
    description = {"front end": "tensorflow", "name": name}
    kept = KeptProgram(ExecutableCache(directory), key_of(), description)
    path = kept.cache.path_of(kept.key)
    # The words of the vendor's log, which people search for.
    if kept.archive is not None:
        logging.info(f"Loaded {name} from {path}")
        return kept, True
    logging.info(f"Couldn't find {path} in executable cache")
    # The file is there from now on; what is modelled is added to it.
    kept.add({})
    return kept, False
