"""Programs that speak of the IPU run with PyTorch alone, where TensorFlow is missing.

Their text names what the import finder looks for; libraries ask whether TensorFlow is
there and must get Python's own answer.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Stands in for an environment without these packages.
HIDE = """
import importlib.machinery, importlib.util, sys
from tensorflow_ipu import boot
find = importlib.machinery.PathFinder.find_spec
hidden = {"tensorflow", "tf_keras", "keras"}
importlib.machinery.PathFinder.find_spec = staticmethod(
    lambda name, path=None, target=None:
    None if name.partition(".")[0] in hidden else find(name, path, target)
)
"""

PROGRAM = """
def on_tensorflow():
    from tensorflow.python import ipu

import torch
import torch._dynamo  # looks for TensorFlow to skip its files
import poptorch

for name in ("tensorflow", "keras", "tf_keras"):
    assert importlib.util.find_spec(name) is None, name
layer = torch.nn.Linear(3, 2)
x = torch.ones(4, 3)
expected = layer(x)
options = poptorch.Options().showCompilationProgressBar(False)
model = poptorch.inferenceModel(layer, options)
torch.testing.assert_close(model(x), expected)
try:
    import some_library
except ModuleNotFoundError as error:
    print(error.name)
on_tensorflow()
"""

LIBRARY = "import tensorflow\n"


def test_python_answers(tmp_path: Path) -> None:
    (tmp_path / "some_library.py").write_text(LIBRARY)
    script = tmp_path / "program.py"
    script.write_text(HIDE + PROGRAM)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.stdout == "tensorflow\n"
    # Once: for the program's own import, not for the library's.
    assert done.stderr.count("Programs for the IPU need TensorFlow") == 1
    assert "pip install 'popple[tensorflow]'" in done.stderr
    assert done.stderr.strip().endswith("No module named 'tensorflow'")
