"""Configuring the IPU system as releases before 2.1 did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tensorflow.python.ipu import _device, config, utils
from tensorflow.python.platform import tf_logging

pytestmark = pytest.mark.usefixtures("own_pod")


def test_an_old_program_still_configures() -> None:
    opts = utils.create_ipu_config(profiling=False)
    opts = utils.set_ipu_model_options(opts, compile_ipu_code=False)
    opts = utils.auto_select_ipus(opts, [2, 1])
    utils.configure_ipu_system(opts)
    assert [_device.num_ipus(0), _device.num_ipus(1)] == [2, 1]
    assert not config.get_ipu_config()[0].ipu_model_config.compile_ipu_code


def test_a_plain_old_configuration_is_close_to_a_plain_new_one() -> None:
    old = utils.create_ipu_config()
    new = config.IPUConfig()._create_protobuf()
    # The two defaults that changed, and limits of reports that there are no more.
    assert not old.speed_size_config.merge_infeed_io_copies
    old.speed_size_config.merge_infeed_io_copies = True
    old.ClearField("profiling")
    new.ClearField("profiling")
    assert old == new


@pytest.mark.parametrize(
    ("change", "field", "expected"),
    [
        (utils.set_recomputation_options, "speed_size_config.allow_recompute", True),
        (utils.set_floating_point_behaviour_options, "floating_point_behaviour.esr", 1),
        (
            lambda o: utils.set_serialization_options(o, "/x"),
            "serialization_folder",
            "/x",
        ),
        (
            lambda o: utils.set_io_tile_options(o, 8, True),
            "place_ops_on_io_tiles",
            True,
        ),
        (lambda o: utils.set_norm_options(o, True), "use_stable_norm_statistics", True),
        (
            lambda o: utils.set_optimization_options(o, merge_remote_buffers=None),
            "remote_buffer_merging_mode",
            config.MergeRemoteBuffersBehaviour.IF_BENEFICIAL.value,
        ),
        (
            lambda o: utils.set_ipu_connection_type(
                o, utils.DeviceConnectionType.NEVER, ipu_version=1
            ),
            "ipu_version",
            "ipu1",
        ),
        (
            lambda o: utils.set_experimental_multi_replica_distribution_options(
                o, 4, 3
            ),
            "multi_replica_process_index",
            3,
        ),
        (
            lambda o: utils.set_matmul_options(o, clear_pass_type=True),
            "clear_matmul_pass_type",
            True,
        ),
    ],
)
def test_options_reach_their_field(
    change: Callable[[Any], Any], field: str, expected: Any
) -> None:
    value: Any = change(utils.create_ipu_config())
    for part in field.split("."):
        value = getattr(value, part)
    assert value == expected


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (utils.set_compilation_options, "compilation_options"),
        (utils.set_convolution_options, "convolution_options"),
        (utils.set_matmul_options, "matmul_options"),
        (utils.set_pooling_options, "pooling_options"),
        (utils.set_gcl_options, "gcl_options"),
    ],
)
def test_options_of_poplar(change: Callable[..., Any], field: str) -> None:
    opts = change(utils.create_ipu_config(), {"a": "1"})
    assert [(o.option, o.value) for o in getattr(opts, field)] == [("a", "1")]
    with pytest.raises((TypeError, Exception), match="must be a dictionary"):
        change(utils.create_ipu_config(), "a")


def test_ids() -> None:
    opts = utils.select_ipus(utils.create_ipu_config(), indices=[24, 0])
    assert [device.cfg_index for device in opts.device_config] == [24, 0]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda o: utils.auto_select_ipus(utils.auto_select_ipus(o, 1), 1), "already"),
        (lambda o: utils.auto_select_ipus(o, "1"), "`num_ipus` must be"),
        (lambda o: utils.select_ipus(o, 1), "`indices` must be"),
        (lambda o: utils.select_ipus(o, [1, 1]), "unique"),
        (lambda o: utils.set_io_tile_options(o, 0, True), "Cannot place ops"),
        (lambda o: utils.auto_select_ipus(o, 1, nonsense=2), "no argument 'nonsense'"),
        (lambda o: utils.create_ipu_config(profile_execution=True), "is required"),
        (lambda o: utils.create_ipu_config(scheduler_selection="?"), "not a Sched"),
    ],
)
def test_what_is_refused(spoil: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        spoil(utils.create_ipu_config())


def test_arguments_that_are_gone_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(tf_logging, "warn", said.append)
    opts = utils.create_ipu_config()
    utils.auto_select_ipus(opts, 2, number_of_replicas=2)
    assert any("number_of_replicas has no effect" in text for text in said)


def test_they_warn_and_name_the_attribute() -> None:
    assert "select_ipus" in str(utils.select_ipus.__doc__)
    assert "IPUConfig" in str(utils.set_norm_options.__doc__)
