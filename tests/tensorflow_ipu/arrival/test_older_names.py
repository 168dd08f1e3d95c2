"""Names of older releases: they work, or say what to use instead."""

from __future__ import annotations

import importlib

import pytest

tf = pytest.importorskip("tensorflow")

from tensorflow.python import ipu  # noqa: E402

from popple.errors import UsageError  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_pod")


def test_horovod_numbers_the_instances() -> None:
    hvd = importlib.import_module("tensorflow.python.ipu.horovod")
    hvd.init()
    assert hvd.is_initialized()
    assert (hvd.size(), hvd.rank(), hvd.local_size(), hvd.local_rank()) == (1, 0, 1, 0)
    hvd.shutdown()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("ipu_multi_replica_strategy", "IPUMultiReplicaStrategyV1"),
        ("ipu_horovod_strategy", "IPUHorovodStrategyV1"),
    ],
)
def test_strategies_under_their_former_names_run_programs(
    module: str, name: str
) -> None:
    found = importlib.import_module(f"tensorflow.python.ipu.horovod.{module}")
    strategy = getattr(found, name)()
    with strategy.scope():
        weight = tf.Variable(2.0)
    doubled = strategy.run(tf.function(lambda x: weight * x), [tf.constant(3.0)])
    assert float(doubled) == 6.0
    assert strategy.num_replicas_in_sync == 1


def test_horovod_does_not_add_up_over_several_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POPDIST_NUM_TOTAL_REPLICAS", "2")
    monkeypatch.setenv("POPDIST_NUM_LOCAL_REPLICAS", "1")
    name = "tensorflow.python.ipu.horovod.ipu_horovod_strategy"
    found = importlib.import_module(name)
    with pytest.raises(UsageError, match="PopDistStrategy"):
        found.IPUHorovodStrategyV1()


@pytest.mark.parametrize("module", ["autoshard", "autoshard_cnn"])
def test_automatic_sharding_leaves_all_on_the_first_ipu(
    module: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = importlib.import_module(f"tensorflow.python.ipu.{module}")
    with tf.Graph().as_default(), found.ipu_autoshard():
        total = tf.add(1.0, 2.0)
    found.automatic_sharding(2, None, total)
    assert ipu.sharding.has_attr(total.op, "_XlaSharding")
    assert "all are on the first IPU" in caplog.text
    assert getattr(ipu, module) is found
