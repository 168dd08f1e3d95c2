"""The source of a new notebook: every section in order, with what to write there.

Instructions are quoted blocks and names in angle brackets; `check` finds those that are
left, and accepts them with `--mode template`.
"""

from __future__ import annotations

from popple.notebook.badge import render_badge, render_svg

BADGE_FILE = "community-badge.svg"
BADGE_TEXT = "Community: ask and answer"

# A source in percent format. Its pieces of text are put together by `render_source`.
_SOURCE = '''\
# %% [markdown]
"""
Copyright (c) {year} {owner}. All rights reserved.
"""

# %% [markdown]
"""
# {title}
"""

# %% [markdown]
"""
> Refer to the guide to notebooks for each section. Quoted blocks like this one and
> names in angle brackets are instructions: follow them, then remove them.
"""

# %% [markdown]
"""
| Domain | Tasks | Model | Datasets | Workflow | Number of IPUs | Execution time |
|---|---|---|---|---|---|---|
| <domain> | <tasks> | <model> | <data> | <steps> | recommended: <n> (min: <n>) | <t> |
"""

# %% [markdown]
"""
<Three to five sentences: which problem is solved, for whom, with which big-picture
features. Nothing that is special to a machine or a framework.>

In this notebook you will learn how to:

- <verb, and what the reader does>
- <verb, and what the reader does>

<Links to related notebooks and documentation, for example the
[guidelines](https://example.org/guidelines).>

{badge}
"""

# %% [markdown]
"""
## Environment setup

This notebook runs on any computer with Popple: `pip install 'popple[torch,notebook]'`,
then `popple notebook open` starts Jupyter with virtual IPUs. On other IPU hardware
enable the SDK first; the [guide](https://example.org/getting-started) says how.
"""

# %% [markdown]
"""
## Dependencies and configuration

Install the dependencies that the notebook needs:
"""

# %% tags=["hide_output", "ignore_code_only"]
# %pip install -q -r requirements.txt

# %% [markdown]
"""
The number of IPUs and the places of data, checkpoints and compiled programs come from
the environment. Remove what the notebook does not use.
"""

# %%
import os

number_of_ipus = int(os.getenv("NUM_AVAILABLE_IPU", 16))
pod_type = os.getenv("GRAPHCORE_POD_TYPE", "pod16")
executable_cache_dir = os.getenv("POPLAR_EXECUTABLE_CACHE_DIR", "/tmp/exe_cache/")
dataset_directory = os.getenv("DATASETS_DIR")
checkpoint_directory = os.getenv("CHECKPOINT_DIR")
print(number_of_ipus, pod_type, executable_cache_dir)
print(dataset_directory, checkpoint_directory)

# %% [markdown]
"""
These are the values to experiment with:
"""

# %% tags=["parameters"]
epochs = 2  # times that the data are seen

# %% [markdown]
"""
## <The first outcome, in the same words>

> The body is yours. Name its sections after the outcomes.
"""

# %%
print(f"training for {{epochs}} epochs on {{number_of_ipus}} IPUs")

# %% [markdown]
"""
Give the IPUs back: the kernel lives on after the last cell.
"""

# %%
from popple.notebook import release_devices

release_devices()

# %% [markdown]
"""
## Conclusions and next steps

<Three to six sentences: what the reader did, and with which `class` or `method`.>

- <a notebook to continue with, by path: `folder/notebook.ipynb`>
- <documentation to read>
"""
'''


def render_source(title: str, year: int, owner: str) -> str:
    """The source of a notebook that has yet to be written."""
    badge = render_badge(
        "Join the community", BADGE_FILE, "https://example.org/community"
    )
    return _SOURCE.format(title=title, year=year, owner=owner, badge=badge)


def render_files() -> dict[str, str]:
    """The files of a new notebook beside its source, by name."""
    return {
        "requirements.txt": "# One package to a line, pinned: name==1.2.3\n",
        BADGE_FILE: render_svg(BADGE_TEXT),
    }
