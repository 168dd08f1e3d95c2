"""Files that other processes see either complete or not at all.

In: a path and what shall stand there. Out: the file, written under another name beside
the path and renamed once it is complete. A writer that fails or is killed leaves the
earlier file as it was; of several writers at once, the last to finish wins.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

# A file system allows 255 bytes for a name, and a character may take four of them.
_MAX_NAME = 48


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Generator[Path, None, None]:
    """An empty draft in the folder of `path`, which replaces `path` after the block.

    If the block raises, the draft is removed and `path` stays as it is. A new file has
    the permissions that `open` gives, a replaced one keeps those it had. A symbolic
    link is itself replaced, not the file it leads to.
    """
    target = Path(path)
    draft = target.with_name(f".{target.name[:_MAX_NAME]}.{uuid.uuid4().hex}")
    # Not by `tempfile`: its files are for their owner alone, whatever the umask says.
    draft.touch(exist_ok=False)
    try:
        yield draft
        with suppress(FileNotFoundError):
            shutil.copymode(target, draft)
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write bytes, or text as UTF-8 with its line ends as they are."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    with replace_file(path) as draft:
        draft.write_bytes(data)
