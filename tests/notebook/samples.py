"""A notebook that breaks no rule, made in memory, and ways to break it."""

from __future__ import annotations

from pathlib import Path

from nbformat import NotebookNode, v4

from popple.notebook.badge import PlatformLink, render_badge
from popple.notebook.document import Document
from popple.notebook.files import make_document

ADDRESS = PlatformLink("org/repo", "a b.ipynb", "org/image:1.0").address

TABLE = """\
| Domain | Tasks | Model | Datasets | Workflow | Number of IPUs | Execution time |
|---|---|---|---|---|---|---|
| Vision | Digits | CNN | Digits | Training | recommended: 16 (min: 4) | 5 min |
"""
INTRODUCTION = """\
Reading digits is a first problem. This notebook solves it. It is quick.

In this notebook you will learn how to:

- train a network for digits
- save what was trained

For inference see [the guide](https://example.org/guide).

[![Join the community](badge.svg)](https://example.org/community)
"""
SETUP = """\
## Environment setup

Install Popple as the [guide](https://example.org/start) says, and run Jupyter.
"""
CONFIGURATION = """\
import os
import poptorch
from tensorflow.python import ipu
number_of_ipus = int(os.getenv("NUM_AVAILABLE_IPU", 16))
pod_type = os.getenv("GRAPHCORE_POD_TYPE", "pod16")
cache = os.getenv("POPLAR_EXECUTABLE_CACHE_DIR", "/tmp/exe_cache/")
data_dir = os.getenv("DATASETS_DIR")
checkpoints = os.getenv("CHECKPOINT_DIR")
print(pod_type == "pod4")
"""
BODY = """\
options = poptorch.Options().replicationFactor(number_of_ipus)
options.enableExecutableCaching(cache)
config = ipu.config.IPUConfig()
config.auto_select_ipus = number_of_ipus
config.configure_ipu_system()
model = poptorch.trainingModel(read(data_dir=data_dir), options)
model(1)
app.change_checkpoint(checkpoints)
app.save_checkpoint(checkpoints)
app.evaluate()
"""
RELEASE = """\
if model.isAttachedToDevice():
    model.detachFromDevice()
ipu.config.reset_ipu_configuration()
"""
CONCLUSIONS = """\
## Conclusions and next steps

You trained a network. You used `trainingModel`. You saved it.

- `other/notebook.ipynb` goes on
- [the guide](https://example.org/guide) tells more
"""

# The cells by name, so that a test can say which one it changes.
CELLS: dict[str, tuple[str, str]] = {
    "copyright": ("markdown", "Copyright (c) 2024 Example Ltd. All rights reserved."),
    "title": ("markdown", "# Digits on IPUs using a CNN - Training"),
    "table": ("markdown", TABLE),
    "introduction": ("markdown", INTRODUCTION),
    "button": ("markdown", render_badge("Run on Gradient", "badge.svg", ADDRESS)),
    "setup": ("markdown", SETUP),
    "dependencies": ("markdown", "## Dependencies and configuration\n\nFirst:"),
    "install": ("code", "%pip install -r requirements.txt"),
    "configuration": ("code", CONFIGURATION),
    "parameters": ("code", "epochs = 2  # how often the data are seen"),
    "body": ("markdown", "## Train a network for digits\n\nThis trains it."),
    "code": ("code", BODY),
    "more": ("markdown", "## Save what was trained\n\nThis is how."),
    "release": ("code", RELEASE),
    "conclusions": ("markdown", CONCLUSIONS),
}


def make_notebook(**changes: str | None) -> NotebookNode:
    """The sample with other texts for some cells; None leaves a cell out."""
    cells: list[NotebookNode] = []
    for name, (kind, text) in CELLS.items():
        changed = changes.get(name, text)
        if changed is not None:
            make = v4.new_markdown_cell if kind == "markdown" else v4.new_code_cell
            tags = {"tags": ["parameters"]} if name == "parameters" else {}
            cells.append(make(changed, metadata=tags))
    return v4.new_notebook(cells=cells, metadata={"language_info": {"name": "python"}})


def make_sample(home: Path, **changes: str | None) -> Document:
    """The sample as the rules see it, with the files that it names."""
    (home / "badge.svg").touch()
    (home / "requirements.txt").write_text("numpy==2.0.0\n")
    return make_document(make_notebook(**changes), home / "sample.ipynb")
