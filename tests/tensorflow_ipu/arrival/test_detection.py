"""Which programs are taken for programs of the IPU."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from tensorflow_ipu import SWITCH, _detection
from tensorflow_ipu._detection import IPU_IMPORT, IPU_MODULE, IpuDetection


@pytest.mark.parametrize(
    "line",
    [
        "from tensorflow.python import ipu",
        "from tensorflow.python.ipu import utils",
        "from tensorflow.python import ops, ipu",
        "import tensorflow.python.ipu.config as c",
        "    from keras.ipu import extensions",
        "from tensorflow.python import (\n    ops,\n    ipu,\n)",
        "from ipu_tensorflow_addons.keras import layers",
        "from tensorflow.compiler.plugin.poplar.ops import gen_ipu_ops",
    ],
)
def test_imports_of_the_ipu_are_seen(line: str) -> None:
    assert IPU_IMPORT.search(f"import os\n{line}\n")


@pytest.mark.parametrize(
    "line",
    [
        "import keras",
        "import keras  # not on the ipu",
        "from tensorflow_ipu import boot",
        "# from tensorflow.python import ipu",
        'print("import ipu")',
        "from keras import (layers)\nipu = 1",
    ],
)
def test_other_lines_are_not(line: str) -> None:
    assert not IPU_IMPORT.search(f"import os\n{line}\n")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No main script, no command and no environment that say anything."""
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setattr(_detection, "main_file", list)
    monkeypatch.setattr(_detection, "command_text", str)


def examined_from(path: Path, text: str, program: IpuDetection) -> bool:
    """The answer to an import that happens in a file with this text."""
    path.write_text(text)
    names: dict[str, object] = {"program": program}
    source = compile("answer = program.examine()", str(path), "exec")
    # A new thread, or the frames would lead on to this file.
    thread = threading.Thread(target=exec, args=(source, names))
    thread.start()
    thread.join()
    return bool(names["answer"])


@pytest.mark.usefixtures("alone")
def test_the_importing_file_decides(tmp_path: Path) -> None:
    plain, wanted = tmp_path / "plain.py", tmp_path / "wanted.py"
    program = IpuDetection()
    assert not examined_from(plain, "import keras", program)
    assert examined_from(wanted, "from tensorflow.python import ipu", program)
    assert examined_from(plain, "import keras", program)  # once found, it stays


@pytest.mark.usefixtures("alone")
def test_the_switch_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "on")
    assert examined_from(tmp_path / "a.py", "import keras", IpuDetection())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["python", "-c", "import keras; import a.ipu"], "import keras\n import a.ipu"),
        (["python", "script.py"], ""),
        (["python", "-c"], ""),
    ],
)
def test_a_command_is_read(
    words: list[str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_detection, "sys", SimpleNamespace(orig_argv=words))
    assert _detection.command_text() == expected


def test_what_waits_for_an_import_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting: list[str] = []

    class Looker:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            waiting.extend(_detection.modules_being_imported())

    monkeypatch.setattr(sys, "meta_path", [Looker, *sys.meta_path])
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("not_there.ipu.config")
    assert {"not_there", "not_there.ipu", "not_there.ipu.config"} <= set(waiting)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("keras.ipu", True),
        ("keras.ipu.layers", True),
        ("tensorflow.python.ipu.config", True),
        ("keras.ipus", False),
        ("mykeras.ipu", False),
    ],
)
def test_modules_of_the_ipu_are_known(name: str, expected: bool) -> None:
    assert bool(IPU_MODULE.match(name)) == expected
