"""GCDA_OPTIONS: the documented options, our grammar of faults, and what is refused."""

from __future__ import annotations

import json

import pytest

from popple.device.faults import Fault, FaultInjector, parse_device_options
from popple.errors import UsageError

PREFIX = "simulateSOCError."


def options_of(**keys: object) -> str:
    return json.dumps({PREFIX + key: value for key, value in keys.items()})


def test_nothing_is_asked_for() -> None:
    assert parse_device_options("").faults == ()
    assert parse_device_options("{}").monitor_utilisation


def test_the_example_of_the_manual() -> None:
    text = options_of(errorList="IPUSOFTERR", triggerCount=1, rearmOnReset=True)
    found = parse_device_options(text)
    assert found.faults == (Fault("soc", name="IPUSOFTERR"),)
    assert (found.trigger_count, found.rearm_on_reset) == (1, True)


def test_flags_may_be_text() -> None:
    found = parse_device_options('{"enableMonitoring": "true"}')
    assert found.enable_monitoring


def test_faults_as_objects_and_as_names() -> None:
    faults = [{"type": "memory", "tile": 17, "ipu": 2}, "link"]
    found = parse_device_options(options_of(errorList=faults, triggerCount="3"))
    assert found.faults == (Fault("memory", ipu=2, tile=17), Fault("link"))
    assert found.trigger_count == 3
    names = parse_device_options(options_of(errorList="host, link", triggerCount=1))
    assert [fault.kind for fault in names.faults] == ["host", "link"]


def test_a_fault_acts_so_often_and_again_after_a_reset() -> None:
    text = options_of(errorList="link,host", triggerCount=2, rearmOnReset=True)
    injector = FaultInjector(parse_device_options(text))
    acted = [bool(injector.strike("link")) for _ in range(3)]
    assert acted == [True, True, False]
    assert injector.strike("host")
    assert not injector.strike("memory")
    injector.reset()
    assert injector.strike("link")


def test_only_operations_that_meet_a_fault_use_it_up() -> None:
    faults = [{"type": "memory", "ipu": 1}]
    text = options_of(errorList=faults, triggerCount=1)
    injector = FaultInjector(parse_device_options(text))
    assert not injector.strike("memory", 0)
    assert injector.strike("memory", 1)
    assert not injector.strike("memory", 1)


def test_a_spent_fault_stays_spent_unless_it_is_to_be_armed() -> None:
    injector = FaultInjector(
        parse_device_options(options_of(errorList="link", triggerCount=1))
    )
    assert injector.strike("link")
    injector.reset()
    assert not injector.strike("link")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"enableMonitorin": true}', "Did you mean 'enableMonitoring'"),
        ('{"enableMonitoring": 3}', "Use true or false"),
        ('{"configFile": "x"}', "vipu create partition"),
        (options_of(errorList="link"), "needs simulateSOCError.triggerCount"),
        (options_of(errorList="link", triggerCount=-1), "Use a whole number"),
        (options_of(errorList="link", triggerCount="x"), "Use a whole number"),
        (options_of(errorList=5, triggerCount=1), "errorList is 5"),
        (options_of(errorList=[5], triggerCount=1), "neither a name nor an object"),
        (options_of(errorList="CIUERR", triggerCount=1), "unknown fault 'CIUERR'"),
        (options_of(errorList=[{"type": "fire"}], triggerCount=1), "type 'fire'"),
        (
            options_of(errorList=[{"type": "link", "til": 1}], triggerCount=1),
            "Did you mean 'tile'",
        ),
        (
            options_of(errorList=[{"type": "link", "ipu": -1}], triggerCount=1),
            "ipu of a link fault is -1",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=r"^GCDA_OPTIONS: ") as caught:
        parse_device_options(text)
    assert reason in str(caught.value)
