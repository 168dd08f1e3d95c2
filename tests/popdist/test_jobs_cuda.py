"""Jobs on a GPU: instances that share it go through the host, one alone uses NCCL."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

from tests.distributed.jobs import poprun
from tests.popdist.test_jobs import train

torch = importlib.import_module("torch")
if not torch.cuda.is_available():
    pytest.skip("PyTorch finds no GPU", allow_module_level=True)


def test_instances_that_share_a_gpu_train_as_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (on_cpu,) = train(tmp_path / "cpu", 1)
    monkeypatch.setenv("POPPLE_DEVICE", "cuda")
    first, second = train(tmp_path / "gpu", 2)
    assert first["weights"] == second["weights"]
    for name, weights in on_cpu["weights"].items():
        np.testing.assert_allclose(first["weights"][name], weights, rtol=0, atol=1e-4)


NCCL = """
import torch
from popple.engine.torch.peers import connect_peers
peers = connect_peers(0, 1, "cuda")
tensor = torch.arange(4.0, device="cuda")
peers._group.allreduce([tensor]).wait()
print(peers.backend, tensor.tolist())
"""


def test_one_instance_alone_uses_nccl() -> None:
    done = poprun(NCCL)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "nccl [0.0, 1.0, 2.0, 3.0]\n"
