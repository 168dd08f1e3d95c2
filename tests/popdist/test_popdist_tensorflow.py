"""What PopDist writes into an IPU configuration."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import pytest

set_ipu_config = importlib.import_module("popdist.tensorflow").set_ipu_config


def config() -> Any:
    """As much of an `IPUConfig` as is written."""
    distribution = SimpleNamespace(process_count=0, process_index=0)
    experimental = SimpleNamespace(multi_replica_distribution=distribution)
    return SimpleNamespace(auto_select_ipus=[], experimental=experimental)


def launched(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the second of two instances, with two replicas of four IPUs each."""
    numbers = {
        "NUM_TOTAL_REPLICAS": 4,
        "NUM_LOCAL_REPLICAS": 2,
        "NUM_IPUS_PER_REPLICA": 4,
        "REPLICA_INDEX_OFFSET": 2,
    }
    for name, number in numbers.items():
        monkeypatch.setenv(f"POPDIST_{name}", str(number))


def test_a_program_alone_is_one_of_one() -> None:
    written = config()
    set_ipu_config(written, ipus_per_replica=2)
    assert written.auto_select_ipus == 2
    assert vars(written.experimental.multi_replica_distribution) == {
        "process_count": 1,
        "process_index": 0,
    }


def test_the_launcher_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    launched(monkeypatch)
    written = config()
    set_ipu_config(written)
    assert written.auto_select_ipus == 2 * 4
    assert written.experimental.multi_replica_distribution.process_index == 1
    with pytest.raises(RuntimeError, match="ipus-per-replica=1"):
        set_ipu_config(config(), ipus_per_replica=1)


def test_the_choice_of_ipus_can_be_left_alone() -> None:
    written = config()
    set_ipu_config(written, configure_device=False)
    assert written.auto_select_ipus == []
