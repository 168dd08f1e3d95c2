"""Each rule speaks about a notebook that breaks it, and about no other.

`BROKEN` is a table: a rule, the cell that is changed and how. The unchanged sample has
everything that a rule looks at, and passes them all.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TypeAlias

import pytest

from popple.notebook.linter import check_document, find_rule
from popple.notebook.rule import Kind, Mode, Settings, Spot
from popple.notebook.rulebook import ALL
from tests.notebook import samples
from tests.notebook.samples import make_sample

Change: TypeAlias = tuple[
    str, str | None, str
]  # cell, what is replaced (None: all), by

NOW = Settings(hosted=True, this_year=2026)

# Cell, text to replace in it (None: the whole text), the new text.
BROKEN: dict[int, Change] = {
    1: ("copyright", "Copyright (c)", "Copyleft"),
    2: ("copyright", "2024", "1999"),
    3: ("title", "# Digits", "## Digits"),
    4: ("title", "IPUs", "GPUs"),
    5: ("title", "Training", "Training, with extras"),
    6: ("body", "## Train", "# Train"),
    7: ("body", "## Train", "# Train"),
    8: ("more", "## Save", "#### Save"),
    9: ("conclusions", "## Conclusions", "## Summary, conclusions"),
    10: ("table", None, ""),
    11: ("table", "Domain", "Field"),
    12: ("table", "recommended: 16 (min: 4)", "16"),
    13: ("table", "5 min", "2Xmin"),
    15: ("introduction", " This notebook solves it. It is quick.", ""),
    17: ("introduction", "It is quick", "It uses I/O overlap"),
    18: ("introduction", "It is quick", "It uses PopART"),
    19: ("introduction", "- train a network for digits\n- save what was trained", ""),
    20: ("introduction", "- train", "- training of"),
    22: ("introduction", "[the guide](https://example.org/guide)", "the guide"),
    23: ("introduction", "For inference", "For more"),
    24: ("introduction", "[![Join the community](badge.svg)]", "[Join]"),
    25: ("button", None, ""),
    26: ("button", "badge.svg", "https://example.org/badge.svg"),
    27: ("button", "org/repo", "org"),
    28: ("button", "machine=", "engine="),
    29: ("button", "%3A1.0", ""),
    30: ("button", "%2Fa", "a"),
    31: ("button", "%2F", "/"),
    32: ("body", None, ""),  # see `test_autoreload_comes_first`
    33: ("install", "%pip", "%load_ext autoreload\n%pip"),
    34: ("code", "model(1)", "model(1)  # FIX" + "ME: loop"),
    35: ("body", "This trains it.", "> Refer to the guidelines."),
    36: ("setup", "Install Popple", "Install <framework>"),
    37: ("setup", "## Environment setup\n", ""),
    38: ("dependencies", "## Dep", "More setup.\n\n## Dep"),
    39: ("setup", "Jupyter", "it"),
    40: ("dependencies", "## Dependencies and", "### Dependencies and"),
    41: ("install", "%pip", "!pip"),
    42: ("install", "requirements.txt", "missing.txt"),
    43: ("install", "-r requirements.txt", "numpy"),
    44: ("code", "model(1)", "import cv2\nmodel(1)"),
    45: ("configuration", "NUM_AVAILABLE_IPU", "NUM_IPU"),
    46: ("configuration", "GRAPHCORE_POD_TYPE", "POD_TYPE"),
    47: ("configuration", "POPLAR_EXECUTABLE_CACHE_DIR", "CACHE_DIR"),
    48: ("configuration", "DATASETS_DIR", "DATA"),
    49: ("configuration", "CHECKPOINT_DIR", "CHECKPOINT"),
    50: ("configuration", '"NUM_AVAILABLE_IPU", 16', '"NUM_AVAILABLE_IPU", 4'),
    51: ("code", "enableExecutableCaching(cache)", "enableExecutableCaching(here)"),
    52: ("code", "replicationFactor(number_of_ipus)", "replicationFactor(8)"),
    53: ("body", "Train a network for digits", "Something else"),
    54: ("body", "This trains it.", "word " * 300),
    55: ("conclusions", "tells more", "tells more\n\n## Appendix\n"),
    56: ("conclusions", " You saved it.", ""),
    57: ("conclusions", "`trainingModel`", "trainingModel"),
    58: ("conclusions", "- `other/notebook.ipynb` goes on\n", ""),
    59: ("conclusions", "`other/notebook.ipynb`", "[another](requirements.ipynb)"),
    60: ("body", "This", "[This](missing.md)"),
    61: ("body", "This trains it.", "It trains, e.g. digits."),
    62: ("body", "This trains it.", "It trains with Pytorch."),
    63: ("parameters", "  # how often the data are seen", ""),
    65: ("code", "model(1)", "model(1)\n" * 40),
    68: ("code", "app.change_checkpoint(checkpoints)\n", ""),
    71: ("code", "app.save_checkpoint(checkpoints)\n", ""),
    72: ("code", "app.evaluate()", "app.run()"),
    73: ("code", "model(1)", "parser.parse_args()\nmodel(1)"),
    74: ("release", "model.detachFromDevice()", "pass"),
    75: ("release", "ipu.config.reset_ipu_configuration()\n", ""),
    76: ("release", "if model.isAttachedToDevice():", "if model:"),
    80: ("body", "This", "![plot](https://example.org/plot.png)\n\nThis"),
    81: ("body", "This trains it.", "The text is licensed under the terms of CC BY."),
    89: ("introduction", "how to:", "these three things:"),
    90: ("release", "    model.detach", "model.detach"),
    91: ("body", "This trains it.", "(JupyterLab)[https://example.org] trains."),
    92: ("body", "This", "[Text generation with X](https://example.org/x.ipynb)"),
}

# These look at what running left, and have tests of their own.
OF_RUNS = {67, 77, 78, 79}


def found_in(home: Path, settings: Settings = NOW, **changes: str | None) -> set[int]:
    document = make_sample(home, **changes)
    return {finding.rule.number for finding in check_document(document, settings)}


def test_the_table_of_the_guidelines_is_complete() -> None:
    counts = Counter(rule.kind for rule in ALL if rule.number <= 88)
    assert [rule.number for rule in ALL] == list(range(1, 93))
    assert counts == {Kind.AUTOMATIC: 55, Kind.WARNING: 19, Kind.HUMAN: 14}


def test_every_rule_that_code_checks_is_broken_somewhere() -> None:
    checked = {rule.number for rule in ALL if rule.kind is not Kind.HUMAN}
    assert set(BROKEN) | OF_RUNS == checked


def test_the_sample_passes_all_rules(tmp_path: Path) -> None:
    assert found_in(tmp_path) == set()


@pytest.mark.parametrize("number", sorted(set(BROKEN) - {32}))
def test_a_broken_rule_is_found(number: int, tmp_path: Path) -> None:
    cell, old, new = BROKEN[number]
    text = samples.CELLS[cell][1]
    assert old is None or old in text
    changed = new if old is None else text.replace(old, new)
    document = make_sample(tmp_path, **{cell: changed})
    found = {finding.rule.number for finding in check_document(document, NOW)}
    assert number in found


def test_autoreload_comes_first(tmp_path: Path) -> None:
    draft = Settings(Mode.DEVELOPMENT, this_year=2026)
    early = "%load_ext autoreload\n" + samples.CONFIGURATION
    late = samples.CONFIGURATION + "%load_ext autoreload\n"
    assert 32 not in found_in(tmp_path, draft, configuration=early)
    assert 32 in found_in(tmp_path, draft, configuration=late)


def test_failures_of_runs_are_findings(tmp_path: Path) -> None:
    failed = ((16, Spot(3, 1, "NameError")), (4, Spot(5, 2, "ValueError")))
    for number, failure in ((77, failed[:1]), (78, failed[1:])):
        settings = Settings(this_year=2026, failures=failure)
        assert found_in(tmp_path, settings) == {number}


def test_traces_of_a_run_are_found(tmp_path: Path) -> None:
    notebook = samples.make_notebook()
    notebook.cells[7].execution_count = 3
    text = "<popart.Session object at 0x7f3a>"
    notebook.cells[8].outputs = [{"output_type": "stream", "text": text}]
    make_sample(tmp_path)
    document = samples.make_document(notebook, tmp_path / "sample.ipynb")
    found = {each.rule.number: each.spot for each in check_document(document, NOW)}
    assert set(found) == {67, 79}
    assert found[79].cell == 8


def test_places_are_cells_and_lines_as_people_count_them(tmp_path: Path) -> None:
    document = make_sample(tmp_path, body="## Train a network\n\nOne.\nTwo, e.g. this.")
    (finding,) = check_document(document, NOW)
    assert finding.rule.id == "N61"
    assert finding.spot == (11, 4, "'e.g.'")


@pytest.mark.parametrize(
    "title",
    [
        "Text-to-Image Generation on IPUs using Stable Diffusion - Inference",
        "Text Guided In-Painting on IPUs using Stable Diffusion - Inference",
        "Multi-label Classification on IPUs using ViT - Fine-tuning",
        "Image Classification on IPUs using ViT - Fine-tuning",
        "Question-Answering on IPUs using BERT - Fine-tuning",
        "Node Classification on IPUs using Cluster-GCN - Training with PyTorch "
        "Geometric",
    ],
)
def test_the_guidelines_titles_pass(title: str, tmp_path: Path) -> None:
    found = found_in(tmp_path, title=f"# {title}")
    assert not found & {3, 4, 5, 6}


def test_the_guidelines_own_faults_are_found(tmp_path: Path) -> None:
    host = "https://console.paperspace.com/github/gradient-ai/Graphcore-Pytorch"
    query = (
        "machine=Free-IPU-POD4&container=graphcore/pytorch-jupyter:3.1.0&file=/t.ipynb"
    )
    body = (
        "A notebook has these three items:\n\n- a\n- b\n- c\n- d\n\n"
        "Use (JupyterLab)[https://example.org].\n\n"
        f"<{host}?{query}>\n\n"
        "[Text Entailment on IPU using GPT-J - Fine-tuning](https://x.org/f.ipynb)"
    )
    code = "!apt install -y <reqs...\nif model.isAttachedToDevice():\nmodel.detach()"
    found = found_in(tmp_path, body=body, code=code)
    assert {31, 36, 89, 90, 91, 92} <= found


def test_notebooks_are_released_in_a_loop_or_by_the_helper(tmp_path: Path) -> None:
    loop = (
        "for each in (model, other):\n    if each.isAttachedToDevice():\n"
        "        each.detachFromDevice()\nipu.config.reset_ipu_configuration()"
    )
    helper = "release_devices(model)\nipu.config.reset_ipu_configuration()"
    for release in (loop, helper):
        assert not found_in(tmp_path, release=release) & {74, 75, 76}


def test_a_template_may_have_placeholders(tmp_path: Path) -> None:
    template = Settings(Mode.TEMPLATE, this_year=2026)
    assert found_in(tmp_path, template, body="## <Outcome>") == set()


def test_formulas_are_no_text(tmp_path: Path) -> None:
    heading = "## Train a network for digits\n\n"
    formulas = "It is $N_{MAX} <name>$, and\n$$\nx_{via}, e.g.\n$$\nfor `$A` and `$B`."
    block = "\\begin{align}\n{MAX}\n\\end{align}"
    assert found_in(tmp_path, body=f"{heading}{formulas}\n\n{block}") == set()
    prices = "It costs $5 for {whom}, and $6 for others."
    assert found_in(tmp_path, body=heading + prices) == {36}


def test_rules_are_found_by_id() -> None:
    assert find_rule("N04") is ALL[3]
    assert find_rule("N99") is None
