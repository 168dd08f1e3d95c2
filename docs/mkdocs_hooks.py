"""What the guide shows, for mkdocs: pages and files where they lie in the repository.

A link from `README.md` to `docs/pods.md`, or from a notebook to the guide, works on the
site as it does in the repository. Only the issue tracker lies outside of it: a forge
finds it beside the files, the site by `POPPLE_REPOSITORY`, the repository's address.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent

# Pages, and the files that they link to or show.
SHOWN = (
    "*.md",
    "LICENSE",
    "docs/*.md",
    "docs/images/*",
    "docs/images/gallery/*",
    "docs/decisions/*.md",
    "examples/*",
    "notebooks/*",
    "notebooks/*/*",
    "notebooks/*/*_files/*",
    "viewer/README.md",
    "benchmarks/*.py",
    "src/popple/pipeline.py",
)


# From any page to what a forge shows beside the files of a branch.
_TRACKER = re.compile(r"\[([^\]]+)\]\((?:\.\./)+issues\)")


def list_shown() -> list[Path]:
    """The files of the site, but for templates of generated pages."""
    found = {path for pattern in SHOWN for path in ROOT.glob(pattern) if path.is_file()}
    return sorted(path for path in found if not path.name.endswith(".in.md"))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The repository's files instead of those of `docs` alone."""
    theme = [
        file for file in files if not file.src_uri.endswith((".md", ".py", ".png"))
    ]
    own = [
        File.generated(
            config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)
        )
        for path in list_shown()
    ]
    return Files([*theme, *own])


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Links to the tracker as addresses, or as words where there is no address."""
    home = (config.repo_url or "").rstrip("/")
    return _TRACKER.sub(rf"[\1]({home}/issues)" if home else r"\1", markdown)
