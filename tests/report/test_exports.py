"""The public names of the package are listed, each once."""

from __future__ import annotations

import inspect

from popple import report


def test_all_is_complete() -> None:
    listed = report.__all__
    public = {
        name
        for name, value in vars(report).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert set(listed) == public
    assert len(set(listed)) == len(listed)
