"""Writes the parts of the documentation that are read off the code.

    python docs/generate.py            rewrite the pages
    python docs/generate.py --check    fail if one is out of date

A page is the text of `docs/NAME.in.md` with its tables filled in.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import constants
import errors
import operators
import rules
import variables

import poptorch
from popple.files import write_atomically
from popple.text_table import render_markdown_table
from poptorch._options.tables import BACKEND_NAMES, TRANSLATED, WITHOUT_EFFECT
from tensorflow_ipu import _option_tables

HERE = Path(__file__).parent


def render_options() -> str:
    """Every option: whether it does something, and what."""
    rows = [(f"`{name}`", "yes", text) for name, text in TRANSLATED.items()]
    rows += [(f"`{name}`", "no effect", text) for name, text in WITHOUT_EFFECT.items()]
    return render_markdown_table(
        ("option", "supported", "what becomes of it"), sorted(rows)
    )


def render_backend_names() -> str:
    """Names of PopART that are followed."""
    rows = [(f"`{name}`", text) for name, text in sorted(BACKEND_NAMES.items())]
    return render_markdown_table(("name", "what becomes of it"), rows)


def render_tensorflow_options(*owners: str) -> str:
    """The options that these take, by name, with what becomes of each."""
    tables = {
        "yes": _option_tables.TRANSLATED,
        "refused": _option_tables.REFUSED,
        "no effect": _option_tables.WITHOUT_EFFECT,
    }
    rows = [
        (f"`{name}`", word, text)
        for word, table in tables.items()
        for name, text in table.items()
        if name.split(".")[0] in owners
    ]
    return render_markdown_table(
        ("option", "supported", "what becomes of it"), sorted(rows)
    )


def render_names() -> str:
    """Every public name of the package with the first line of its documentation."""
    rows: list[tuple[str, ...]] = []
    for name in sorted(poptorch.__all__, key=str.lower):
        value = getattr(poptorch, name)
        if not name.startswith("__"):
            rows.append((f"`{name}`", kind_of(value), summary_of(value)))
    return render_markdown_table(("name", "kind", "what it is"), rows)


def kind_of(value: object) -> str:
    """What sort of name it is."""
    if inspect.ismodule(value):
        return "module"
    return "class" if inspect.isclass(value) else "function"


def summary_of(value: object) -> str:
    """The first line of the documentation."""
    return (inspect.getdoc(value) or "").partition("\n")[0]


# Who takes options of TensorFlow programs, by the section that lists them.
TENSORFLOW_OWNERS = {
    "config": ("IPUConfig", "IpuOptions"),
    "flags": ("TF_POPLAR_FLAGS",),
    "pipelines": ("pipeline", "PipelineStageOptions"),
    "keras": (
        "set_asynchronous_callbacks",
        "set_gradient_accumulation_options",
        "set_infeed_queue_options",
        "set_outfeed_queue_options",
        "set_pipelining_options",
        "set_replication_options",
    ),
    "others": ("IPUInfeedQueue", "IPUOutfeedQueue", "GradientAccumulationOptimizerV2"),
    "poplar": ("poplar_options", "compilation_poplar_options"),
}

PAGES: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "poptorch": {
        "options": render_options,
        "backend": render_backend_names,
        "names": render_names,
    },
    "tensorflow": {
        key: functools.partial(render_tensorflow_options, *owners)
        for key, owners in TENSORFLOW_OWNERS.items()
    },
    "environment": {
        "logs": variables.render_logs,
        "poplar_options": variables.render_poplar_options,
        **{
            section: functools.partial(variables.render_variables, section)
            for section in variables.VARIABLES
        },
    },
    "notebooks": {"rules": rules.render_rules},
    "operators": {
        "torch": operators.render_torch,
        "tensorflow": operators.render_tensorflow,
        "graph": operators.render_graph,
    },
    "cost_model": {
        "chips": constants.render_chips,
        "systems": constants.render_systems,
        "mechanisms": constants.render_mechanisms,
        "in_sample": errors.render_in_sample,
        "independent": errors.render_independent,
        "out_of_sample": errors.render_out_of_sample,
    },
}


def render_page(name: str) -> str:
    """A page with its tables."""
    text = (HERE / f"{name}.in.md").read_text(encoding="utf-8")
    for key, render in PAGES[name].items():
        text = text.replace("{{" + key + "}}", render())
    return text


def is_current(name: str) -> bool:
    """Whether a page is what would be written now."""
    page = HERE / f"{name}.md"
    return page.exists() and page.read_text(encoding="utf-8") == render_page(name)


def main() -> str | None:
    """Write the pages, or name those that are out of date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        stale = [f"docs/{name}.md" for name in PAGES if not is_current(name)]
        return f"Out of date: {', '.join(stale)}" if stale else None
    for name in PAGES:
        write_atomically(HERE / f"{name}.md", render_page(name))
    return None


if __name__ == "__main__":
    sys.exit(main())
