"""Data cut into steps: how many there are, and data that cannot be cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from keras.ipu.extensions.data_adapter import IPUDataHandler  # noqa: E402
from keras.ipu.extensions.data_feed_manager import InfeedManager  # noqa: E402
from keras.ipu.extensions.extensions_util import (  # noqa: E402
    merge_into_batch_dimension,
)

NUMBERS = np.arange(12, dtype=np.float32)


def dataset(size: int = 2) -> Any:
    return tf.data.Dataset.from_tensor_slices(NUMBERS).batch(size, drop_remainder=True)


def handler(data: Any, at_a_time: int = 1, **kwargs: Any) -> IPUDataHandler:
    return IPUDataHandler(data, steps_per_execution=tf.Variable(at_a_time), **kwargs)


def test_a_step_is_a_batch_on_every_replica() -> None:
    assert handler(dataset()).inferred_steps == 6
    assert handler(dataset(), replication_factor=4).inferred_steps == 1
    given = handler(dataset().repeat(), steps_per_epoch=8, replication_factor=2)
    assert given.inferred_steps == 4


def test_the_number_of_replicas_may_come_later() -> None:
    late = handler(dataset(), at_a_time=3, replication_factor=None)
    assert not late.is_divided
    with pytest.raises(RuntimeError, match="set_replication_factor"):
        next(late.enumerate_epochs_with_reuse(None, None, {}))
    late.set_replication_factor(2)
    assert list(late.steps()) == [0]


def test_an_execution_ends_with_the_epoch() -> None:
    long = handler(dataset(), at_a_time=100)
    with long._truncate_execution_to_epoch():
        assert long.steps_per_execution_value == 6


def test_what_is_read_again_is_not_optimised_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # TensorFlow optimises a data set once; one made of it is another.
    manager, data, made = InfeedManager(), dataset(), []
    prefetch = tf.data.Dataset.prefetch
    monkeypatch.setattr(
        tf.data.Dataset, "prefetch", lambda *args: made.append(args) or prefetch(*args)
    )
    for given in (data, data, data, dataset()):
        manager.get_infeed("fit", given, {})
    assert len(made) == 2


def test_batch_size_is_that_of_the_data() -> None:
    assert handler(dataset(3)).batch_size == 3
    assert handler(NUMBERS, batch_size=4).batch_size == 4


def test_double_precision_becomes_single() -> None:
    doubles = tf.data.Dataset.from_tensors((NUMBERS.astype(np.float64), [1]))
    spec = handler(doubles).element_spec
    assert [each.dtype for each in spec] == [tf.float32, tf.int32]


@pytest.mark.parametrize(
    ("data", "kwargs", "match"),
    [
        (NUMBERS, {"batch_size": 5}, "has a partial batch"),
        ((x for x in NUMBERS), {}, "from_generator"),
        (iter(list(NUMBERS)), {}, "wrap your iterator inside a generator"),
        ("filtered", {}, "Could not infer the size of the data"),
        ("small", {"replication_factor": 8}, "contains at least 8 items"),
        ("small", {"at_a_time": 4}, r"\(4\) must be a divisor .* \(6\)"),
        ("small", {"steps_per_epoch": 7}, "at least 7 batches"),
        ("ragged", {}, "drop_remainder=True"),
    ],
)
def test_data_that_cannot_be_cut_are_refused(
    data: Any, kwargs: dict[str, Any], match: str
) -> None:
    named = {
        "filtered": lambda: dataset().filter(lambda x: x[0] > 1),
        "small": dataset,
        "ragged": lambda: tf.data.Dataset.from_tensor_slices(NUMBERS).batch(5),
    }
    given = named[data]() if isinstance(data, str) else data
    with pytest.raises(ValueError, match=match):
        handler(given, **kwargs)


def test_weights_of_classes_become_weights_of_samples() -> None:
    labels = np.array([0, 1] * 6, np.int32)
    weighed = handler(NUMBERS, y=labels, batch_size=2, class_weight={0: 1.0, 1: 5.0})
    _, _, weights = next(iter(weighed._dataset))
    np.testing.assert_array_equal(weights, [1.0, 5.0])


def test_results_come_back_in_the_order_of_samples() -> None:
    # Sample s = (step * 2 + replica) * 3 + place in the batch.
    samples = tf.reshape(tf.range(12), [2, 2, 3])
    merged = merge_into_batch_dimension({"a": samples}, 2)["a"]
    np.testing.assert_array_equal(merged, np.arange(12))
    alone = merge_into_batch_dimension(samples, 1)
    assert alone.shape == (4, 3)
