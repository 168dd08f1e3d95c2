"""Explanations: the operation that is meant, its numbers, its text."""

from __future__ import annotations

import json

import pytest

from popple.errors import UsageError
from popple.report import (
    ChipTime,
    ExplainedRun,
    Explanation,
    Operation,
    add_times,
    explain_run,
)
from popple.report.query.explain import find_module
from popple.report.query.plan_record import parse_plan

PLAN = {
    "how": "A convolution with kernel 1.",
    "choice": {"method": "amp-1x1", "estimated_cycles": "100"},
    "runners_up": [["slic: field 7", 125]],
    "steps": [["partials", "AMP on 8 tiles", 300]],
}
MATMUL = Operation(
    id=0,
    name="fc1/addmm",
    kind="matmul",
    cycles=400,
    phase="forward",
    chip=0,
    stage=1,
    module="net.fc1",
    source_line="net.py:7",
    compute_cycles=300,
    exchange_cycles=40,
    link_cycles=20,
    host_cycles=30,
    sync_cycles=10,
    bound_by="compute",
    limited_by="memory",
    rule="matmul",
    memory_bytes=5000,
    temporary_bytes=2000,
    plan_json=json.dumps(PLAN),
)
BIAS = Operation(1, "fc1/add", "add", 100, module="net.fc1", exchange_cycles=100)
OTHER = Operation(2, "fc2/add", "add", 300, chip=1, module="net.fc2", sync_cycles=300)
TIME = add_times(
    [ChipTime(0, 300, 140, 20, 30, 10, 500), ChipTime(1, 0, 0, 0, 0, 300, 700)]
)
RUN = ExplainedRun("net", 1000, (MATMUL, OTHER, BIAS), frozenset({"fc1/t"}), TIME)


def explain(name: str = "") -> Explanation:
    return explain_run(RUN, name)


@pytest.mark.parametrize("name", ["fc1/addmm", "addmm"])
def test_an_operation_is_found_by_its_name_or_a_part_of_it(name: str) -> None:
    assert explain(name).operation == MATMUL


@pytest.mark.parametrize("name", ["net.fc1", "fc1"])
def test_a_layer_is_all_its_operations(name: str) -> None:
    layer = explain(name)
    assert [part.name for part in layer.parts] == ["fc1/addmm", "fc1/add"]
    assert (layer.operation.cycles, layer.share) == (500, 0.5)
    assert layer.bound_by == "compute"  # 300 of its 500 cycles


def test_a_layer_of_one_operation_is_that_operation() -> None:
    assert explain("net.fc2").operation == OTHER


def test_without_a_name_the_run_is_explained_costliest_first() -> None:
    run = explain()
    assert [part.operation for part in run.parts] == [MATMUL, OTHER, BIAS]
    assert run.share == 800 / (2 * 1000)  # two chips for 1000 cycles each


def test_classes_add_up() -> None:
    assert sum(explain("addmm").cycles_by_class.values()) == 400


def test_a_run_is_bound_by_what_takes_most_of_the_time_of_all_ipus() -> None:
    run = explain()
    assert run.bound_by == "bubbles"  # 1200 of 2000 cycles
    assert sum(run.cycles_by_class.values()) == 2 * 1000
    assert "bound by bubbles: IPUs that wait for others" in run.render()


def test_memory_is_that_of_results_and_temporaries() -> None:
    assert explain("addmm").result_bytes == 3000


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("add", "a part of 3 names, such as fc1/addmm"),
        ("fc1/adm", "Did you mean 'fc1/addmm' or 'fc1/add'"),
        ("fc1/t", "costs nothing"),
        ("convolution", "The costliest operations are fc1/addmm"),
    ],
)
def test_what_cannot_be_found_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        explain(name)


def test_a_run_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="no operations"):
        explain_run(ExplainedRun("net", 0, ()))


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a.b", "a.b"),
        ("b", "a.b"),
        ("0", ""),  # a.b.0 and a.c.0
        ("b.0", "a.b.0"),
        ("a", "a"),
        ("x", ""),
    ],
)
def test_module_paths_are_found_at_their_dots(name: str, path: str) -> None:
    assert find_module(["a.b.0", "a.b.1", "a.c.0", ""], name) == path


def test_a_plan_is_read_back() -> None:
    plan = parse_plan(json.dumps(PLAN))
    (other,) = plan.runners_up
    assert (other.estimated_cycles, other.slower_by) == (125, 0.25)
    assert [(step.name, step.cycles) for step in plan.steps] == [("partials", 300)]


def test_an_operation_of_a_genuine_report_has_no_plan() -> None:
    assert parse_plan("").choice == ()


def test_the_text_has_what_a_reader_asks_for() -> None:
    text = explain("addmm").render()
    for part in (
        "net.fc1",
        "net.py:7",
        "forward, IPU 0, stage 1",
        "400, 40.0 % of the run",
        "bound by compute",
        "limited by memory",
        "A convolution with kernel 1.",
        "amp-1x1",
        "AMP on 8 tiles",
        "+25.0 %  slic: field 7",
        "temporaries  2.0 KiB",
    ):
        assert part in text


def test_at_most_ten_parts_are_printed() -> None:
    many = tuple(Operation(i, f"op{i}", "add", 10) for i in range(12))
    text = explain_run(ExplainedRun("net", 120, many)).render()
    assert text.count("op") - text.count("operation") == 10
    assert "and 2 more" in text


def test_json_says_the_same() -> None:
    data = json.loads(json.dumps(explain("fc1").to_json()))
    assert data["parts"][0]["plan"]["choice"]["method"] == "amp-1x1"
    assert data["parts"][0]["cycles_by_class"]["links"] == 20
