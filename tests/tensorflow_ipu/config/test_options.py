"""`IPUConfig`: its options, their fields in the message, and what excludes what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tensorflow.compiler.plugin.poplar.driver import config_pb2
from tensorflow.python.ipu import config, utils

from popple.errors import UsageError

pytestmark = pytest.mark.usefixtures("own_pod")


def changed(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, dict):
        return {"a": "b"}
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    members: Any = type(value)
    return next(member for member in members if member != value)


def options() -> list[str]:
    special = ("auto_select_ipus", "select_ipus")
    return [name for name in config.IPUConfig().to_dict() if name not in special]


def with_option(name: str) -> config.IPUConfig:
    """A configuration with one option that is not at its default."""
    made = config.IPUConfig()
    # What these need in order to be allowed.
    made.io_tiles.num_io_tiles = 32 if name == "io_tiles.place_ops_on_io_tiles" else 0
    *path, last = name.split(".")
    owner: Any = made
    for part in path:
        owner = getattr(owner, part)
    setattr(owner, last, changed(getattr(owner, last)))
    return made


@pytest.mark.parametrize("name", options())
def test_every_option_reaches_the_message(name: str) -> None:
    plain = config.IPUConfig()._create_protobuf()
    assert with_option(name)._create_protobuf() != plain


@pytest.mark.parametrize("name", options())
def test_every_option_has_a_text(name: str) -> None:
    found = config.IPUConfig().get_attribute_metadata(name)
    assert found.__doc__
    assert "No description" not in found.__doc__


def test_negated_fields_mean_the_opposite() -> None:
    made = config.IPUConfig()
    made.optimizations.enable_graph_outlining = False
    message = made._create_protobuf()
    assert message.speed_size_config.disable_graph_outlining
    assert not message.disable_gather_simplifier


def test_set_all_turns_floating_point_behaviour_on() -> None:
    made = config.IPUConfig()
    made.floating_point_behaviour.set_all = True
    behaviour = made._create_protobuf().floating_point_behaviour
    assert [behaviour.inv, behaviour.div0, behaviour.oflo, behaviour.nanoo] == [
        True
    ] * 4
    assert behaviour.esr == config.StochasticRoundingBehaviour.ON.value


@pytest.mark.parametrize(("value", "name"), [(True, "ON"), (False, "OFF")])
def test_rounding_was_a_switch(
    value: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = config.IPUConfig()
    made.floating_point_behaviour.esr = value
    assert made.floating_point_behaviour.esr.name == name
    assert made._create_protobuf().floating_point_behaviour.esr == int(value)
    assert f"a StochasticRoundingBehaviour today: {name}" in caplog.text


def test_options_of_poplar_keep_their_order() -> None:
    made = config.IPUConfig()
    made.matmuls.poplar_options = {"partialsType": "half", "a": "1"}
    found = made._create_protobuf().matmul_options
    assert [(f.option, f.value) for f in found] == [
        ("partialsType", "half"),
        ("a", "1"),
    ]


def test_an_integer_becomes_a_list_when_it_counts() -> None:
    made = config.IPUConfig()
    made.auto_select_ipus = 2
    assert made._create_protobuf().device_config[0].auto_count == 2
    assert made.auto_select_ipus == [2]


def set_both_selections(made: config.IPUConfig) -> None:
    made.auto_select_ipus, made.select_ipus = [1], [1]


def set_one_id_twice(made: config.IPUConfig) -> None:
    made.select_ipus = [1, 1]


def set_ops_without_io_tiles(made: config.IPUConfig) -> None:
    made.io_tiles.place_ops_on_io_tiles = True


def set_groups_and_io_tiles(made: config.IPUConfig) -> None:
    made.io_tiles.num_io_tiles = 8
    made.norms.experimental.distributed_batch_norm_replica_group_size = 2


def set_no_group(made: config.IPUConfig) -> None:
    made.norms.experimental.distributed_batch_norm_replica_group_size = 0


def set_offline_without_version(made: config.IPUConfig) -> None:
    made.device_connection.type = config.DeviceConnectionType.NEVER


def set_index_outside(made: config.IPUConfig) -> None:
    made.experimental.multi_replica_distribution.process_count = 2
    made.experimental.multi_replica_distribution.process_index = 2


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (set_both_selections, "only one of"),
        (set_one_id_twice, "more than once"),
        (set_ops_without_io_tiles, "Cannot place ops on I/O tiles"),
        (set_groups_and_io_tiles, "not supported with I/O tiles"),
        (set_no_group, "at least 1"),
        (set_offline_without_version, "device_connection.version must be set"),
        (set_index_outside, r"must be in the range \[0, 2\)"),
    ],
)
def test_contradictions(
    spoil: Callable[[config.IPUConfig], None], message: str
) -> None:
    made = config.IPUConfig()
    spoil(made)
    with pytest.raises(Exception, match=message):
        made._create_protobuf()


def set_ids(made: config.IPUConfig) -> None:
    made.select_ipus = 0


def set_no_version(made: config.IPUConfig) -> None:
    made.ipu_model.version = ""


def set_processes(made: config.IPUConfig) -> None:
    made.experimental.multi_replica_distribution.process_count = 2


@pytest.mark.parametrize("spoil", [set_ids, set_no_version, set_processes])
def test_what_the_ipu_model_cannot_do(
    spoil: Callable[[config.IPUConfig], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = config.IPUConfig()
    spoil(made)
    made._create_protobuf()
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model")
    with pytest.raises(Exception, match="odel"):
        made._create_protobuf()


def test_rounding_from_a_flag() -> None:
    behaviour = config.StochasticRoundingBehaviour
    assert behaviour.from_bool(True) is behaviour.ON
    assert behaviour.from_bool(False) is behaviour.OFF


def test_old_fast_math_warns() -> None:
    found = config.IPUConfig().get_attribute_metadata("optimizations.enable_fast_math")
    assert found.deprecated_msg is not None
    assert "optimizations.math.fast" in found.deprecated_msg


def test_utils_has_the_same_names() -> None:
    assert utils.IPUConfig is config.IPUConfig
    assert utils.IpuOptions is config_pb2.IpuOptions
    assert utils.configure_ipu_system is config.configure_ipu_system


@pytest.mark.parametrize("owner", ["convolutions", "matmuls", "slices"])
def test_a_proportion_that_is_no_number_is_refused_at_once(owner: str) -> None:
    wanted = config.IPUConfig()
    getattr(wanted, owner).poplar_options = {"availableMemoryProportion": "much"}
    with pytest.raises(UsageError, match="must be a number, but is 'much'"):
        wanted.configure_ipu_system()
