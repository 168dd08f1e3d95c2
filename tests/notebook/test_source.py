"""Both forms of a source give the same cells."""

from __future__ import annotations

import pytest

from popple.errors import UsageError
from popple.notebook.source import read_source

WALKTHROUGH = '''\
"""
Copyright (c) 2024 Example
"""
"""
# A title
"""
# %pip install -r requirements.txt
# sst_ignore_code_only
"""
Text.
"""
import os

"""
"""
print(os.name)
# sst_hide_output
'''

PERCENT = '''\
# %% [markdown]
# Copyright (c) 2024 Example

# %% [markdown]
"""
# A title
"""

# %% tags=["ignore_code_only"]
# %pip install -r requirements.txt

# %% [markdown]
# Text.

# %%
import os

# %% tags=["sst_hide_output"]
print(os.name)
'''

EXPECTED = [
    ("markdown", "Copyright (c) 2024 Example", []),
    ("markdown", "# A title", []),
    ("code", "%pip install -r requirements.txt", ["ignore_code_only"]),
    ("markdown", "Text.", []),
    ("code", "import os", []),
    ("code", "print(os.name)", ["hide_output"]),
]


@pytest.mark.parametrize("text", [WALKTHROUGH, PERCENT], ids=["walkthrough", "percent"])
def test_cells(text: str) -> None:
    cells = read_source(text).cells
    found = [(c.cell_type, c.source, c.metadata.get("tags", [])) for c in cells]
    assert found == EXPECTED
    assert [cell.id for cell in cells] == [f"cell-{n:02d}" for n in range(1, 7)]


def test_what_is_no_source_is_refused() -> None:
    with pytest.raises(UsageError, match=r"line 1, is no Python"):
        read_source("def f(:\n", "broken.py")
    with pytest.raises(UsageError, match="has no cells"):
        read_source("\n", "empty.py")


def cells_of(text: str) -> list[tuple[str, list[str]]]:
    cells = read_source(text).cells
    return [(cell.source, cell.metadata.get("tags", [])) for cell in cells]


def test_text_has_tags_and_keeps_its_backslashes() -> None:
    text = '"""\nHow to run it.\nsst_ignore_jupyter\n"""\n"""\n$2 \\times 3$\n"""\n'
    assert cells_of(text) == [
        ("How to run it.", ["ignore_jupyter"]),
        (r"$2 \times 3$", []),
    ]


def test_what_follows_a_notice_is_a_cell_of_its_own() -> None:
    text = '"""\nCopyright (c) 2024 Example\n\nDerived from a work of others.\n"""\n'
    assert [source for source, _ in cells_of(text)] == [
        "Copyright (c) 2024 Example",
        "Derived from a work of others.",
    ]


def test_only_magics_without_a_gap_are_live() -> None:
    text = "# %pip list\n# ! rm data\n# % of all\nx = 1\n"
    assert cells_of(text) == [("%pip list\n# ! rm data\n# % of all\nx = 1", [])]
