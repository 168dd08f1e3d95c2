"""Which TensorFlow a program was written for, and what it gets."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tensorflow_ipu._dialect import (
    MOST_FILES,
    Dialect,
    builds_a_graph,
    dialect_of,
    names_used,
    own_files,
)
from tests.sources import SRC

START = (SRC / "popple_tensorflow.pth").read_text()


def face(**names: Any) -> ModuleType:
    module = ModuleType("face")
    vars(module).update(names)
    return module


V1 = face(placeholder=1, train=face(Saver=1, AdamOptimizer=1), zeros=1)
V2 = face(optimizers=SimpleNamespace(), train=face(Checkpoint=1), zeros=1)
IMPORT = "import tensorflow as tf\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tf.placeholder(tf.float32)", Dialect.TENSORFLOW_1),
        ("x = tf.train.AdamOptimizer(0.1).minimize(y)", Dialect.TENSORFLOW_1),
        ("from tensorflow import contrib", Dialect.TENSORFLOW_1),
        ("import tensorflow.contrib.layers as cl", Dialect.TENSORFLOW_1),
        ("from tensorflow.train import Saver", Dialect.TENSORFLOW_1),
        ("tf.optimizers.Adam()", Dialect.TENSORFLOW_2),
        ("tf.placeholder(1); tf.train.Checkpoint()", Dialect.TENSORFLOW_2),
        ("tf.placeholder(1)\nipu.ipu_strategy.IPUStrategy()", Dialect.TENSORFLOW_2),
        ("tf.zeros([3])", Dialect.UNKNOWN),
        ("tf.compat.v1.placeholder(1)", Dialect.UNKNOWN),
        ("import tensorflow.compat.v1 as tf\ntf.placeholder(1)", Dialect.UNKNOWN),
        ("if tf.__version__[0] == '1':\n    tf.placeholder(1)", Dialect.UNKNOWN),
        (
            "try:\n    tf.placeholder(1)\nexcept AttributeError:\n    pass",
            Dialect.UNKNOWN,
        ),
        ("other.placeholder(1)", Dialect.UNKNOWN),
        ("print 'Python 2'", Dialect.UNKNOWN),
    ],
)
def test_names_of_one_version_decide(text: str, expected: Dialect) -> None:
    assert dialect_of([IMPORT + text], V1, V2) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import tensorflow.compat.v1 as tf\ntf.placeholder(1)", True),
        ("import tensorflow as tf\ntf.compat.v1.Session()", True),
        ("import tensorflow.compat.v1 as tf\ntf.Session(); tf.Graph()", False),
        (
            "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n"
            "tf.placeholder(1)",
            False,
        ),
        ("import tensorflow as tf\ntf.zeros([1])", False),
    ],
)
def test_a_script_may_rely_on_the_graph_of_version_1(text: str, expected: bool) -> None:
    assert builds_a_graph([text]) is expected


def test_names_are_found_under_any_alias() -> None:
    text = "import tensorflow\nfrom tensorflow import train as t\nt.Saver()\n"
    assert names_used(text + "tensorflow.a.b") == {"train", "train.Saver", "a.b"}


def test_a_program_is_its_files_and_what_they_import(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    for name, text in {
        "main.py": "import package.inner\nimport os\nfrom package import other",
        "package/__init__.py": "",
        "package/inner.py": "from . import leaf\nimport main",
        "package/leaf.py": "",
        "package/other.py": "",
        "unused.py": "",
    }.items():
        (tmp_path / name).write_text(text)
    found = own_files([str(tmp_path / "main.py"), "<stdin>", subprocess.__file__])
    names = {Path(name).relative_to(tmp_path).as_posix() for name in found}
    assert names == {
        "main.py",
        *(f"package/{n}.py" for n in ("inner", "leaf", "other")),
    }


def test_packages_of_another_python_are_not_the_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "lib" / "site-packages"
    (site / "library").mkdir(parents=True)
    (site / "library" / "__init__.py").write_text("")
    main = tmp_path / "main.py"
    main.write_text("import library")
    monkeypatch.syspath_prepend(str(site))
    assert own_files([str(main)]) == [str(main)]


def test_only_the_first_files_of_a_program_are_read(tmp_path: Path) -> None:
    names = [f"m{number}" for number in range(MOST_FILES + 5)]
    for name, following in itertools.pairwise(names):
        (tmp_path / f"{name}.py").write_text(f"import {following}, {following}")
    found = own_files([str(tmp_path / "m0.py")])
    # Each file imports the next; one that is imported twice is read once.
    assert [Path(name).stem for name in found] == names[:MOST_FILES]


def run(directory: Path, text: str, **files: str) -> str:
    """What a program prints; a Python of its own, in which Popple is started."""
    for name, content in {"main": START + "\n" + text, **files}.items():
        (directory / f"{name}.py").write_text(content)
    command = [sys.executable, str(directory / "main.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


REPORT = "\nprint(tf.executing_eagerly(), hasattr(tf, 'Session'), tf.Variable)\n"


def test_the_ipu_may_be_imported_first(tmp_path: Path) -> None:
    text = "from tensorflow.python import ipu\nimport tensorflow as tf\ntf.Session"
    printed = run(tmp_path, text + REPORT)
    assert printed.startswith("False True")
    assert "VariableV1" in printed


def test_a_program_without_the_ipu_is_not_touched(tmp_path: Path) -> None:
    text = """
import tensorflow as tf
before = set(vars(tf))
try:
    tf.placeholder
except AttributeError as error:
    print(error)
try:
    import tensorflow.contrib
except ModuleNotFoundError as error:
    print(error)
print("__getattr__" in vars(tf), "__getattr__" in vars(tf.train))
"""
    assert run(tmp_path, text + REPORT).splitlines()[:4] == [
        "module 'tensorflow' has no attribute 'placeholder'",
        "No module named 'tensorflow.contrib'",
        "False False",
        "True False <class 'tensorflow.python.ops.variables.Variable'>",
    ]


def test_a_program_for_version_2_is_not_touched(tmp_path: Path) -> None:
    text = """
import tensorflow as tf
from tensorflow.python import ipu
strategy = ipu.ipu_strategy.IPUStrategy
try:
    tf.placeholder
except AttributeError as error:
    print(error)
"""
    assert run(tmp_path, text + REPORT).splitlines() == [
        "module 'tensorflow' has no attribute 'placeholder'",
        "True False <class 'tensorflow.python.ops.variables.Variable'>",
    ]


# No file says what it is: the text is put together, as at a prompt.
PROMPT = """
import library
from tensorflow.python import ipu
import tensorflow as tf
print(tf.executing_eagerly(), library.has(tf, "Session"), tf.executing_eagerly())
exec("tf.train.AdamOptimizer")
print(tf.executing_eagerly(), tf.placeholder.__name__)
"""


def test_at_a_prompt_the_first_name_of_version_1_decides(tmp_path: Path) -> None:
    where = tmp_path / "site-packages"
    where.mkdir()
    (where / "library.py").write_text("def has(tf, name): return hasattr(tf, name)\n")
    text = PROMPT.replace("tf.placeholder", 'getattr(tf, "placeholder")')
    # What lies in the folder of installed packages asks on nobody's behalf.
    path = f"import sys, sysconfig\nsys.path.insert(0, {str(where)!r})\n"
    path += "stock = sysconfig.get_path\nsysconfig.get_path = lambda *args: "
    path += f"{str(where)!r} if args == ('purelib',) else stock(*args)\n"
    printed = run(tmp_path, path + text).splitlines()
    assert printed == ["True False True", "False placeholder"]


def test_asking_whether_a_name_exists_decides_nothing(tmp_path: Path) -> None:
    text = "import tensorflow as tf\nfrom tensorflow.python import ipu\n"
    text += 'print(hasattr(tf, "Session"), getattr(tf, "placeholder", None))\n'
    text += "print(tf.executing_eagerly())\n"
    assert run(tmp_path, text) == "False None\nTrue\n"
