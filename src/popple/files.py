"""Files that other processes see either complete or not at all.

In: a path and what shall stand there. Out: the file, written under another name beside
the path and renamed once it is complete. A writer that fails or is killed leaves the
earlier file as it was; of several writers at once, the last to finish wins. What killed
writers left behind goes with the next write of the same file, a day later.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

# A file system allows 255 bytes for a name, and a character may take four of them.
_MAX_NAME = 48
# A draft that nobody has written to for so long belongs to no one.
_ABANDONED_SECONDS = 24 * 3600


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Generator[Path, None, None]:
    """An empty draft in the folder of `path`, which replaces `path` after the block.

    If the block raises, the draft is removed and `path` stays as it is. A new file has
    the permissions that `open` gives, a replaced one keeps those it had. A symbolic
    link is itself replaced, not the file it leads to.
    """
    target = Path(path)
    draft = target.with_name(f"{_stem_of(target)}{uuid.uuid4().hex}")
    _remove_abandoned(target)
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


def _stem_of(target: Path) -> str:
    return f".{target.name[:_MAX_NAME]}."


def _remove_abandoned(target: Path) -> None:
    """Remove drafts of the same file whose writers were killed long ago."""
    stem = _stem_of(target)
    oldest = time.time() - _ABANDONED_SECONDS
    # Another process may remove the same ones, and the folder may not be readable.
    with suppress(OSError):
        for other in target.parent.iterdir():
            is_draft = other.name.startswith(stem) and _is_hex(other.name[len(stem) :])
            if is_draft and other.lstat().st_mtime < oldest:
                other.unlink(missing_ok=True)


def _is_hex(text: str) -> bool:
    return len(text) == 32 and set(text) <= set("0123456789abcdef")
