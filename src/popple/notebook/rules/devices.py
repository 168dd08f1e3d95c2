"""Code that runs in a kernel: arguments, and devices given back at the end."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from popple.notebook.code import Call, ParsedCell, calls, dotted, imports
from popple.notebook.document import Document
from popple.notebook.rule import Rule, Settings, Spot, automatic

_WRAPPERS = ("poptorch.trainingModel", "poptorch.inferenceModel")
_DETACH = "detachFromDevice"
# Does both: asks whether a model is attached, and detaches it.
_RELEASE = "release_devices"


def check_arguments(document: Document, settings: Settings) -> Iterator[Spot]:
    modules = {name for name, _, _ in imports(document.code)}
    if "popple.notebook.ArgumentParser" in modules:
        return
    for call in calls(document.code):
        is_parse = call.method in ("parse_args", "parse_known_args")
        if is_parse and not call.node.args and not call.node.keywords:
            yield Spot(call.cell, call.line)


def _wrappers(document: Document) -> Iterator[tuple[str, int, int]]:
    """Names that PopTorch's models are assigned to, with cell and line."""
    for parsed in document.code:
        for node in ast.walk(parsed.tree):
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            if dotted(node.value.func) in _WRAPPERS:
                yield dotted(node.targets[0]), parsed.cell, node.lineno


def check_detached(document: Document, settings: Settings) -> Iterator[Spot]:
    last_use: dict[str, tuple[int, int]] = {}
    released: dict[str, tuple[int, int]] = {}
    for call in calls(document.code):
        place = (call.cell, call.line)
        for name in _released_by(call, document.code):
            released[name] = place
        if call.method not in (_DETACH, _RELEASE, "isAttachedToDevice", "destroy"):
            last_use[call.name] = place
    for name, cell, line in _wrappers(document):
        used = max((cell, line), last_use.get(name, (0, 0)))
        if released.get(name, (0, 0)) < used:
            yield Spot(*used, name)


def _released_by(call: Call, cells: tuple[ParsedCell, ...]) -> list[str]:
    if call.method == _RELEASE:
        return [dotted(argument) for argument in call.node.args]
    if call.method in (_DETACH, "destroy"):
        owner = call.name.rpartition(".")[0]
        return [owner, *_looped_over(owner, cells)]
    return []


def _looped_over(name: str, cells: tuple[ParsedCell, ...]) -> list[str]:
    """What `name` stands for in `for name in (a, b):`."""
    for parsed in cells:
        for node in ast.walk(parsed.tree):
            if isinstance(node, ast.For) and dotted(node.target) == name:
                elements = getattr(node.iter, "elts", [])
                return [dotted(element) for element in elements]
    return []


def check_reset(document: Document, settings: Settings) -> Iterator[Spot]:
    configures = [c for c in calls(document.code) if c.method == "configure_ipu_system"]
    resets = [c for c in calls(document.code) if c.method == "reset_ipu_configuration"]
    last = max(((c.cell, c.line) for c in resets), default=(0, 0))
    for call in configures[-1:]:
        if last < (call.cell, call.line):
            yield Spot(call.cell, call.line)


def check_guarded(document: Document, settings: Settings) -> Iterator[Spot]:
    for parsed in document.code:
        guarded: set[int] = set()
        for node in ast.walk(parsed.tree):
            if isinstance(node, ast.If) and "isAttachedToDevice" in ast.dump(node.test):
                guarded |= {id(part) for part in ast.walk(node)}
        for call in calls([parsed]):
            if call.method == _DETACH and id(call.node) not in guarded:
                yield Spot(call.cell, call.line, call.name)


def check_syntax(document: Document, settings: Settings) -> Iterator[Spot]:
    for parsed in document.code:
        if parsed.error:
            yield Spot(parsed.cell, parsed.error_line, parsed.error)


RULES: tuple[Rule, ...] = (
    automatic(
        73,
        "arguments",
        "The command line is parsed, which in a notebook is Jupyter's",
        "Give a list, make a Namespace, or use popple.notebook.ArgumentParser.",
        check_arguments,
    ),
    automatic(
        74,
        "devices",
        "A PopTorch model is not detached after its last use",
        "Call popple.notebook.release_devices(model) in the last cell.",
        check_detached,
    ),
    automatic(
        75,
        "devices",
        "TensorFlow's IPUs are not released",
        "Call ipu.config.reset_ipu_configuration() in the last cell.",
        check_reset,
    ),
    automatic(
        76,
        "devices",
        "A model is detached without asking whether it is attached",
        "Write: if model.isAttachedToDevice(): model.detachFromDevice()",
        check_guarded,
    ),
    automatic(
        90,
        "code",
        "A cell is no Python",
        "Correct it, or show it as a block of text.",
        check_syntax,
    ),
)
