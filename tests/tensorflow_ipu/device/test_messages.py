"""Protobuf messages made from text, and the raw operators that carry them."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.compiler.plugin.poplar.driver import (
    backend_config_pb2,
    config_pb2,
    threestate_pb2,
    trace_pb2,
)
from tensorflow.compiler.plugin.poplar.ops import gen_ipu_ops
from tensorflow.python.ipu import config, test_utils, utils
from tensorflow.python.ipu._device import trace_events

pytestmark = pytest.mark.usefixtures("own_pod")


def test_fields_of_nested_messages() -> None:
    message = config_pb2.IpuOptions()
    message.speed_size_config.allow_recompute = True
    message.device_config.add(auto_count=2)
    again = config_pb2.IpuOptions.FromString(message.SerializeToString())
    assert again == message
    assert again.device_config[0].WhichOneof("selection") == "auto_count"


def test_members_of_a_oneof_exclude_each_other() -> None:
    device = config_pb2.IpuOptions.DeviceConfig(auto_count=2)
    device.cfg_index = 3
    assert (device.auto_count, device.cfg_index) == (0, 3)


def test_enums_of_a_module_and_of_a_message() -> None:
    assert config_pb2.IpuDeviceConnectionType.PRE_COMPILE == 3
    assert threestate_pb2.THREESTATE_UNDEFINED == 2
    assert trace_pb2.IpuTraceEvent.EXECUTE == 5
    names = backend_config_pb2.FrontendAttributeId
    assert names.Name(3) == "GRADIENT_ACCUMULATION_COUNT"


def test_messages_can_be_pickled() -> None:
    message = config_pb2.IpuOptions(num_io_tiles=3)
    assert pickle.loads(pickle.dumps(message)) == message


def traced_config() -> config.IPUConfig:
    made = config.IPUConfig()
    made.auto_select_ipus = 1
    test_utils.enable_ipu_events(made)
    return made


def events(eagerly: bool) -> Any:
    if eagerly:
        return gen_ipu_ops.ipu_event_trace().numpy()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(gen_ipu_ops.ipu_event_trace())


@pytest.mark.parametrize("eagerly", [True, False])
def test_events_are_handed_out_once(eagerly: bool) -> None:
    traced_config().configure_ipu_system()
    events(eagerly)
    trace_events.record_compile("net", duration_us=5)
    trace_events.record_load("net")
    trace_events.record_execute("net")
    found = events(eagerly)
    kinds = trace_pb2.IpuTraceEvent
    assert utils.extract_all_types_from_event_trace(found) == [
        kinds.COMPILE_BEGIN,
        kinds.COMPILE_END,
        kinds.LOAD_ENGINE,
        kinds.EXECUTE,
    ]
    assert "Compile end: net" in utils.extract_all_strings_from_event_trace(found)
    assert len(events(eagerly)) == 0


def test_events_are_kept_on_demand_only() -> None:
    trace_events.drain()
    trace_events.record_execute("net")
    assert trace_events.drain() == []


def test_configuration_through_operators() -> None:
    made = config.IPUConfig()
    made.auto_select_ipus = [2, 1]
    options = made._create_protobuf()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        configure = gen_ipu_ops.ipu_configure_hardware(options.SerializeToString())
        number = gen_ipu_ops.ipu_get_num_devices("/device:IPU:0")
        current = gen_ipu_ops.ipu_get_configuration()
        session.run(configure)
        assert session.run(number) == 2
        assert list(session.run(current)) == [options.SerializeToString()] * 2
        session.run(gen_ipu_ops.ipu_reset_devices())
        assert len(session.run(current)) == 0


def test_raw_operators_that_are_not_there_say_what_is() -> None:
    from tensorflow.compiler.plugin.poplar.ops import gen_poputil_ops

    with pytest.raises(AttributeError, match="GradientAccumulationOptimizerV2"):
        _ = gen_poputil_ops.ipu_stateful_gradient_accumulate
