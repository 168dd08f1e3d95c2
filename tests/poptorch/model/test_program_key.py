"""Keys of models in the executable cache: another program has another key.

A wrong hit would compute something else than the program says, so there is a test for
everything that a program can change; each compares with the key of the same program
unchanged.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

import poptorch
from popple.session import read_settings
from poptorch._model.compiler import Compiler
from poptorch._model.program_key import find_key
from tests.poptorch.models import options

PROGRAM = """
import enum
import functools
import os

import torch
import torch.nn.functional as F
from torch import nn

import poptorch

FACTOR = 2.0
TABLE = {"bias": [1.0, 2.0]}
CONSTANT = torch.tensor([1.0, 2.0])


class Mode(enum.Enum):
    SUM = 1
    MEAN = 2


class Config:
    def __init__(self):
        self.width, self.mode, self.nested = 8, Mode.SUM, {"p": 0.5}


def helper(x, scale=1.0):
    return inner(x) * scale


def inner(x):
    return x * FACTOR


def make(power):
    def raised(x):
        return x**power

    return raised


class Base(nn.Module):
    def shift(self, x):
        return x + TABLE["bias"][0]


class Model(Base):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.raised = make(2)
        self.half = functools.partial(torch.mul, other=0.5)
        self.dtype = torch.float32
        self.table = torch.tensor([3.0])
        self.first = nn.Linear(8, config.width)
        self.second = nn.Linear(config.width, 8)
        self.drop = nn.Dropout(config.nested["p"])
        self.register_buffer("seen", torch.zeros(8))
        self.register_buffer("count", torch.tensor(3))
        self.loss = nn.MSELoss()

    def forward(self, x, y=None):
        x = self.drop(self.second(self.first(x)))
        x = self.half(self.shift(helper(self.raised(x))))
        if os.environ.get("MY_SWITCH") == "on":
            x = x + CONSTANT[0]
        return x if y is None else (x, self.loss(x, y))
"""
X = torch.ones(4, 8)
_numbers = itertools.count()


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Callable[..., ModuleType]]:
    """Imports a program, with replaced texts, as a script of the user's."""
    made: list[str] = []

    def load(*changes: tuple[str, str], name: str = "users_program") -> ModuleType:
        text = PROGRAM
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        # A folder of its own: Python would take the compiled file for the newer one.
        folder = tmp_path / str(next(_numbers))
        folder.mkdir()
        (folder / f"{name}.py").write_text(text)
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made.append(name)
        return module

    yield load
    for name in made:
        sys.modules.pop(name, None)


def key_of(
    module: nn.Module,
    *args: Any,
    opts: poptorch.Options | None = None,
    optimizer: Callable[[Any], torch.optim.Optimizer] | None = None,
) -> str:
    """The key of a model, which is neither traced nor run."""
    if optimizer is None:
        model = poptorch.inferenceModel(module, opts or options())
    else:
        chosen = optimizer(module.parameters())
        model = poptorch.trainingModel(module, opts or options(), chosen)
    model._link.name_parameters(module)
    compiler = Compiler(
        module=model._model,
        options=model._options,
        training=optimizer is not None,
        optimizer=model._optimizer,
        link=model._link,
        groupings={},
        device=model._device,
    )
    bound = model._args_parser(args or (X,), {})
    request = compiler._request(bound)
    found = find_key(request, bound, model._options, model._link, read_settings())
    assert found is not None
    return found[1]


def model_of(program: ModuleType) -> Any:
    torch.manual_seed(0)
    return program.Model(program.Config())


def test_the_same_program_has_the_same_key(load: Any) -> None:
    first = key_of(model_of(load()))
    assert key_of(model_of(load())) == first
    # Values of weights and buffers are no part of the program.
    changed = model_of(load())
    nn.init.ones_(changed.first.weight)
    changed.seen += 1
    assert key_of(changed) == first


CODE = {
    "a global constant": ("FACTOR = 2.0", "FACTOR = 3.0"),
    "a value in a global dict": ('"bias": [1.0', '"bias": [4.0'),
    "a helper's helper": ("return x * FACTOR", "return x + FACTOR"),
    "a helper's default": ("scale=1.0", "scale=1.5"),
    "a closure": ("make(2)", "make(3)"),
    "the body of a closure": ("return x**power", "return x*power"),
    "a method of a base class": ("return x + TABLE", "return x - TABLE"),
    "forward": ("self.second(self.first(x))", "self.second(self.first(-x))"),
    "an argument of a partial": ("other=0.5", "other=0.25"),
    "a tensor that becomes a constant": ("tensor([3.0])", "tensor([4.0])"),
    "a global tensor": ("tensor([1.0, 2.0])", "tensor([1.5, 2.0])"),
    "a type": ("self.dtype = torch.float32", "self.dtype = torch.float16"),
    "a nested attribute": ('{"p": 0.5}', '{"p": 0.6}'),
    "an enumeration": ("Mode.SUM, {", "Mode.MEAN, {"),
    "the value of an enumeration": ("SUM = 1", "SUM = 7"),
    "a shape": ("= 8, Mode", "= 16, Mode"),
    "a loss": ("nn.MSELoss()", 'nn.MSELoss(reduction="sum")'),
    "another loss": ("nn.MSELoss()", "nn.L1Loss()"),
    "an integer buffer": ("torch.tensor(3)", "torch.tensor(4)"),
    "a buffer's type": ("torch.zeros(8)", "torch.zeros(8).half()"),
}


@pytest.mark.parametrize("case", CODE)
def test_changed_code_has_another_key(case: str, load: Any) -> None:
    plain = key_of(model_of(load()))
    assert key_of(model_of(load(CODE[case]))) != plain


# A number of another module, by other ways than a name behind a dot.
OWN = ("import os", "import importlib, os, own, pathlib\nfrom numpy import load")
KEPT = ("self.config = config", "self.config, self.own = config, own")
IMPORTED = "def imported(): import own as o; return o.FACTOR\n\n\ndef inner("
ASKED = "def asked(n): import own as o; return getattr(o, n)\n\n\ndef inner("
# The module is reached through another one, which holds nothing else.
OUTER = (OWN[0], OWN[1] + "\nouter = type(own)('outer'); outer.part = own")
MAKER = "\nmade = type(own)('made'); made.__getattr__ = lambda _: own.FACTOR"
MADE = (OWN[0], OWN[1] + MAKER)
LOOKUPS = {
    "a name that is made": ("getattr(own, 'FAC' + 'TOR')", OWN),
    "a module's dict": ("own.__dict__['FAC' + 'TOR']", OWN),
    "a module that is handed on": ("(lambda module: module.FACTOR)(own)", OWN),
    "a module that is an attribute": ("self.own.FACTOR", OWN, KEPT),
    "an import inside": ("imported()", ("def inner(", IMPORTED)),
    "a formatted name": ("getattr(own, f'FAC{chr(84)}OR')", OWN),
    "a formatted name of an import": ("asked('FACTOR')", ("def inner(", ASKED)),
    "a formatted name of a part": ("getattr(outer.part, f'FAC{chr(84)}OR')", OUTER),
    "a part that is handed on": ("(lambda m: m.part.FACTOR)(outer)", OUTER),
    "a name that a module makes": ("made.FACTOR", MADE),
}
READ = {
    "globals": "globals()['FAC' + 'TOR']",
    "eval": "eval('FAC' + 'TOR')",
    "modules by name": "importlib.import_module('own').FACTOR",
    "the text of a file": "float(pathlib.Path('x').read_text())",
    "tensors of a file": "torch.load('x')",
    "a function that reads": "load('x')",
    "a variable whose name is made": "float(os.environ.get(f'A_{x.dim()}', 1))",
}


def looking_up(
    load: Any, expression: str, *changes: tuple[str, str], factor: float = 2.0
) -> Any:
    """A model that multiplies by what the expression finds in a second module."""
    load(("FACTOR = 2.0", f"FACTOR = {factor}"), name="own")
    times = ("return x if y", f"x = x * {expression}\n        return x if y")
    return model_of(load(*changes, times))


@pytest.mark.parametrize("case", LOOKUPS)
def test_values_of_another_module_count_however_they_are_found(
    case: str, load: Any
) -> None:
    plain = key_of(looking_up(load, *LOOKUPS[case]))
    assert key_of(looking_up(load, *LOOKUPS[case])) == plain
    assert key_of(looking_up(load, *LOOKUPS[case], factor=3.0)) != plain


@pytest.mark.parametrize("case", READ)
def test_programs_whose_reading_cannot_be_seen_have_no_key(
    case: str, load: Any
) -> None:
    with pytest.raises(AssertionError):
        key_of(looking_up(load, READ[case], OWN))


def _freeze(model: Any) -> None:
    model.first.weight.requires_grad_(False)


def _tie(model: Any) -> None:
    model.second.weight = model.first.weight


def _hook(model: Any) -> None:
    model.first.register_forward_hook(lambda module, given, made: made * 2)


def _patch(model: Any) -> None:
    model.first.forward = lambda x: x


def _block(model: Any) -> None:
    poptorch.BeginBlock(model.second, ipu_id=1)


def _add_parameter(model: Any) -> None:
    model.more = nn.Parameter(torch.ones(1))


def _reorder(model: Any) -> None:
    model._modules["first"] = model._modules.pop("first")


STATE: dict[str, Callable[[Any], object]] = {
    "evaluation": lambda model: model.eval(),
    "evaluation of a part": lambda model: model.drop.eval(),
    "a probability": lambda model: setattr(model.drop, "p", 0.1),
    "requires_grad": _freeze,
    "tied weights": _tie,
    "a hook": _hook,
    "a replaced method": _patch,
    "a block": _block,
    "another precision": lambda model: model.bfloat16(),
    "a new attribute": lambda model: setattr(model, "extra", 1),
    "one more parameter": _add_parameter,
    "the order of modules": _reorder,
}


@pytest.mark.parametrize("case", STATE)
def test_a_changed_module_has_another_key(case: str, load: Any) -> None:
    program = load()
    plain = key_of(model_of(program))
    changed = model_of(program)
    STATE[case](changed)
    assert key_of(changed) != plain


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "a shape": (torch.ones(2, 8),),
    "a type": (X.half(),),
    "one more": (X, X),
    "a number": (X, 3),
    "another number": (X, 4),
    "a list": ([X],),
}


def test_other_arguments_have_other_keys(load: Any) -> None:
    module = model_of(load())
    keys = {key_of(module, *args) for args in ((X,), *ARGUMENTS.values())}
    assert len(keys) == 1 + len(ARGUMENTS)
    # Values of tensors are no part of the program.
    assert key_of(module, X + 1) == key_of(module, X)


def sharded() -> poptorch.Options:
    return options().setExecutionStrategy(poptorch.ShardedExecution())


def location() -> poptorch.Options:
    opts = options()
    settings = poptorch.TensorLocationSettings().useOnChipStorage(False)
    opts.TensorLocations.setWeightLocation(settings)
    return opts


def partials() -> poptorch.Options:
    opts = options()
    opts.Precision.setPartialsType(torch.half)
    return opts


def rounding() -> poptorch.Options:
    opts = options()
    opts.Precision.enableStochasticRounding(True)
    return opts


def engine() -> poptorch.Options:
    opts = options()
    opts._Popart.setEngineOptions({"debug.allowOutOfMemory": "true"})
    return opts


OPTIONS: dict[str, Callable[[], poptorch.Options]] = {
    "device iterations": lambda: options(d=2),
    "replicas": lambda: options(r=2),
    "strategy": sharded,
    "locations": location,
    "partials": partials,
    "rounding": rounding,
    "memory": lambda: options().setAvailableMemoryProportion({"IPU0": 0.3}),
    "name": lambda: options().modelName("another"),
    "output mode": lambda: options(mode=poptorch.OutputMode.Sum),
    "engine options": engine,
    "outlining": lambda: _popart("enableOutlining", False),
    "strided groups": lambda: _popart("groupNormStridedChannelGrouping", True),
    "name scopes": lambda: options().disableModuleNamescope(),
}


def _popart(name: str, value: Any) -> poptorch.Options:
    opts = options()
    opts._Popart.set(name, value)
    return opts


def test_other_options_have_other_keys(load: Any) -> None:
    module = model_of(load())
    plain = key_of(module)
    for case, make in OPTIONS.items():
        assert key_of(module, opts=make()) != plain, case


def test_options_that_only_matter_to_a_run_do_not_count(
    load: Any, tmp_path: Path
) -> None:
    module = model_of(load())
    plain = key_of(module)
    assert key_of(module, opts=options().randomSeed(5)) == plain
    caching = options().enableExecutableCaching(str(tmp_path))
    assert key_of(module, opts=caching) == plain


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda p: poptorch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: poptorch.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: poptorch.optim.Adam(p, lr=0.1),
    "AdamW": lambda p: poptorch.optim.AdamW(p, lr=0.1),
    "plain AdamW": lambda p: torch.optim.AdamW(p, lr=0.1),
    "moments": lambda p: poptorch.optim.Adam(
        p, lr=0.1, first_order_momentum_accum_type=torch.half
    ),
    "scaling": lambda p: poptorch.optim.Adam(p, lr=0.1, loss_scaling=4.0),
    "a part": lambda p: poptorch.optim.Adam(list(p)[:2], lr=0.1),
}


def test_other_optimisers_have_other_keys(load: Any) -> None:
    program = load()
    keys = {key_of(model_of(program))}
    for make in OPTIMIZERS.values():
        keys.add(key_of(model_of(program), optimizer=make))
    assert len(keys) == 1 + len(OPTIMIZERS)


def test_accumulation_counts(load: Any) -> None:
    program, make = load(), OPTIMIZERS["SGD"]
    plain = key_of(model_of(program), optimizer=make)
    assert key_of(model_of(program), optimizer=make, opts=options(g=2)) != plain


def test_a_sweep_over_learning_rates_compiles_once(load: Any) -> None:
    keys = {
        key_of(model_of(load()), optimizer=lambda p, lr=lr: torch.optim.SGD(p, lr=lr))
        for lr in (0.1, 0.2)
    }
    assert len(keys) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("POPPLE_NUMERICS", "half-partials"),
        ("POPPLE_TARGET", "pod16"),
        ("POPLAR_ENGINE_OPTIONS", '{"debug.allowOutOfMemory": "true"}'),
        ("POPLAR_TARGET_OPTIONS", '{"ipuLinkTopology": "mesh"}'),
        ("MY_SWITCH", "on"),  # which the program reads itself
    ],
)
def test_the_environment_counts(
    name: str, value: str, load: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = model_of(load())
    plain = key_of(module)
    monkeypatch.setenv(name, value)
    assert key_of(module) != plain


@pytest.mark.parametrize("name", ["POPTORCH_LOG_LEVEL", "POPPLE_REPORT", "HOME"])
def test_variables_that_no_model_reads_do_not_count(
    name: str, load: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = model_of(load())
    plain = key_of(module)
    monkeypatch.setenv(name, "another")
    assert key_of(module) == plain


def test_switches_of_torch_count(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = model_of(load())
    plain = key_of(module)
    monkeypatch.setattr(nn.functional, "dropout", lambda x, *_: x * 0)
    patched = key_of(module)
    assert patched != plain
    monkeypatch.undo()
    torch.set_default_dtype(torch.float64)
    try:
        assert key_of(module) not in (plain, patched)
    finally:
        torch.set_default_dtype(torch.float32)


PACKAGE = """
import torch
from otherpackage import double

__version__ = "1.0"


class Layer(torch.nn.Module):
    def forward(self, x):
        return double(x)
"""


def test_package_versions_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site-packages"
    first, second = site / "somepackage", site / "otherpackage"
    for folder in (first, second):
        folder.mkdir(parents=True)
    (first / "__init__.py").write_text(PACKAGE)
    (second / "__init__.py").write_text("def double(x):\n    return x * 2\n")
    monkeypatch.syspath_prepend(str(site))

    def key() -> str:
        for name in ("somepackage", "otherpackage"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        import somepackage  # pyright: ignore[reportMissingImports]

        return key_of(somepackage.Layer())

    plain = key()
    assert key() == plain
    # Upgraded: a package that the model is from, and one that this uses in turn.
    for folder in (first, second):
        file = folder / "__init__.py"
        status = file.stat()
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 10**9))
        upgraded = key()
        assert upgraded != plain
        plain = upgraded
    for name in ("somepackage", "otherpackage"):
        sys.modules.pop(name, None)
