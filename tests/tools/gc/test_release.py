"""Programs that let go of their IPUs are gone from gc-monitor."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

import poptorch
from tests.tools.gc.test_monitor import pids_of

OWN = {str(os.getpid())}


def test_poptorch(run_json: Callable[..., Any]) -> None:
    model = poptorch.inferenceModel(torch.nn.Linear(4, 2))
    model(torch.ones(1, 4))
    assert pids_of(run_json("monitor")) == OWN
    assert model.isAttachedToDevice()
    model.detachFromDevice()
    assert pids_of(run_json("monitor")) == set()


def test_tensorflow(run_json: Callable[..., Any]) -> None:
    from tensorflow.python import ipu

    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 2
    config.configure_ipu_system()
    assert pids_of(run_json("monitor")) == OWN
    ipu.config.reset_ipu_configuration()
    assert pids_of(run_json("monitor")) == set()
