"""Notebooks: written from one source, checked against guidelines, run, and linked.

    popple notebook new|check|build|run|badge|open     the same from a terminal
    Application          what an application offers to a notebook
    ArgumentParser       argparse that leaves a Jupyter kernel's arguments alone
    release_devices      give IPUs back at the end of a notebook

What a notebook itself needs is here and loads nothing but Python's library; the tool
needs the extra `notebook` (nbformat, nbclient, jupytext), and only when it is used.
"""

from popple.notebook.application import Application, release_devices
from popple.notebook.arguments import ArgumentParser, is_notebook

__all__ = ["Application", "ArgumentParser", "is_notebook", "release_devices"]
