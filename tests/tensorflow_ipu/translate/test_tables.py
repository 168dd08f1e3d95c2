"""Every option is in one table: translated, refused, or without effect and said so."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")

from keras.ipu.extensions import _options  # noqa: E402
from tensorflow.compiler.plugin.poplar.driver import config_pb2  # noqa: E402
from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu._config import old_calls  # noqa: E402
from tensorflow.python.ipu._device import poplar_flags  # noqa: E402
from tensorflow.python.ipu.ops._pipeline import settings  # noqa: E402

from popple.errors import UsageError  # noqa: E402
from tensorflow_ipu import _translate  # noqa: E402
from tests.sources import ROOT  # noqa: E402
from tests.tensorflow_ipu.translate.programs import infeed, setting  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_pod", "nothing_named")

TABLES = (_translate.TRANSLATED, _translate.REFUSED, _translate.WITHOUT_EFFECT)
# Written by other means than a table from attributes to fields.
BY_HAND = ("device_config.", "floating_point_behaviour.")


@pytest.fixture
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_translate, "_NAMED", set())


def config_options() -> Iterator[str]:
    return (f"IPUConfig.{name}" for name in ipu.config.IPUConfig().to_dict())


def fields_of(descriptor: Any, prefix: str = "") -> Iterator[str]:
    """Every field of a message by its dotted name; lists of options are one field."""
    for field in descriptor.fields:
        kind = field.message_type
        if kind is None or kind.name == "PoplarOptionFlag":
            yield prefix + field.name
        else:
            yield from fields_of(kind, f"{prefix}{field.name}.")


def message_fields() -> Iterator[str]:
    """Fields of the message that no attribute of IPUConfig stands for."""
    written = {
        field.removeprefix("not ")
        for owner, _, _ in ipu.config.IPUConfig()._options()
        for field in owner._fields.values()
    }
    for field in fields_of(config_pb2.IpuOptions.DESCRIPTOR):
        if field not in written and not field.startswith(BY_HAND):
            yield f"IpuOptions.{field}"


def arguments_of(function: Callable[..., Any], owner: str) -> Iterator[str]:
    for name, parameter in inspect.signature(function).parameters.items():
        if name != "self" and parameter.kind is not parameter.VAR_KEYWORD:
            yield f"{owner}.{name}"


def accepted() -> list[str]:
    """Every option that the facade takes."""
    setters = vars(_options.OptionSetters).items()
    optimizer = ipu.optimizers.GradientAccumulationOptimizerV2
    owners: dict[str, Any] = {
        "pipeline": ipu.pipelining_ops.pipeline,
        "PipelineStageOptions": ipu.pipelining_ops.PipelineStageOptions.__init__,
        "IPUInfeedQueue": ipu.ipu_infeed_queue.IPUInfeedQueue.__init__,
        "IPUOutfeedQueue": ipu.ipu_outfeed_queue.IPUOutfeedQueue.__init__,
        "GradientAccumulationOptimizerV2": optimizer.__init__,
        **{name: method for name, method in setters if name.startswith("set_")},
    }
    return [
        *config_options(),
        *message_fields(),
        *(f"TF_POPLAR_FLAGS.{name}" for name in poplar_flags.FLAGS),
        *(n for owner, made in owners.items() for n in arguments_of(made, owner)),
    ]


@pytest.mark.parametrize("name", accepted())
def test_every_option_is_in_one_table(name: str) -> None:
    assert sum(name in table for table in TABLES) == 1


def test_tables_name_nothing_else() -> None:
    # Options of Poplar come in dictionaries; what is refused is not accepted.
    listed = {*_translate.TRANSLATED, *_translate.WITHOUT_EFFECT}
    others = listed - set(accepted())
    assert {name.split(".")[0] for name in others} == {
        "compilation_poplar_options",
        "poplar_options",
    }


@pytest.mark.parametrize("table", TABLES)
def test_every_entry_says_something(table: dict[str, str]) -> None:
    assert all(len(text) > 10 for text in table.values())


def refused(prefix: str) -> list[str]:
    names = [name for name in _translate.REFUSED if name.startswith(prefix)]
    return [name.partition(".")[2] for name in names]


@pytest.mark.parametrize("flag", refused("TF_POPLAR_FLAGS."))
def test_flags_that_are_gone(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--{flag}")
    with pytest.raises(UsageError, match="Unknown flag") as raised:
        poplar_flags.read()
    assert _translate.REFUSED[f"TF_POPLAR_FLAGS.{flag}"] in str(raised.value)


@pytest.mark.parametrize(
    ("method", "key"),
    [
        (method, key)
        for method in (
            "set_gradient_accumulation_options",
            "set_pipelining_options",
            "set_infeed_queue_options",
            "set_outfeed_queue_options",
        )
        for key in refused(f"{method}.")
    ],
)
def test_keywords_that_keras_models_refuse(method: str, key: str) -> None:
    setters: Any = _options.OptionSetters()
    with pytest.raises(ValueError, match=f"Found `{key}` key") as raised:
        getattr(setters, method)(**{key: 1})
    assert _translate.REFUSED[f"{method}.{key}"] in str(raised.value)


def test_keywords_that_no_optimizer_has() -> None:
    setters: Any = _options.OptionSetters()
    with pytest.raises(TypeError, match="no argument 'dtpye'"):
        setters.set_gradient_accumulation_options(4, dtpye=tf.float16)


def pipeline_arguments(**given: Any) -> dict[str, Any]:
    parameters = inspect.signature(ipu.pipelining_ops.pipeline).parameters
    defaults = {name: each.default for name, each in parameters.items()}
    stages = [lambda x: x, lambda x: x]
    plain = {"computational_stages": stages, "gradient_accumulation_count": 2}
    return {**defaults, **plain, **given}


def test_weights_are_updated_between_runs() -> None:
    with pytest.raises(NotImplementedError, match="use repeat_count"):
        settings.settings_of(pipeline_arguments(continuous_weight_updates=True))


def named(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said to have no effect since this was asked last."""
    found = [record.getMessage() for record in caplog.records]
    caplog.clear()
    begin, end = "Popple: ", " has no effect: "
    return [text.removeprefix(begin).partition(end)[0] for text in found if end in text]


def another(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, dict):
        return {"a": "b"}
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return f"{value}x"
    members: Any = type(value)
    return next(member for member in members if member != value)


UNUSED = [n for n in config_options() if n in _translate.WITHOUT_EFFECT]
PROCESS_COUNT = "experimental.multi_replica_distribution.process_count"


@pytest.mark.parametrize("name", UNUSED)
def test_options_without_effect_are_named_once(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    option = name.removeprefix("IPUConfig.")
    value = another(ipu.config.IPUConfig().get_attribute_metadata(option).default)
    for expected in ([name], []):
        config = ipu.config.IPUConfig()
        config.auto_select_ipus = 1
        setting(PROCESS_COUNT, 4)(config)
        setting(option, value)(config)
        config.configure_ipu_system()
        assert named(caplog) == expected
        ipu.config.reset_ipu_configuration()


def test_nothing_is_named_where_nothing_is_set(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ipu.config.IPUConfig().configure_ipu_system()
    ipu.config.reset_ipu_configuration()
    options = old_calls.create_ipu_config(profiling=True)
    old_calls.set_optimization_options(options)
    ipu.config.configure_ipu_system(options)
    assert named(caplog) == []


def test_fields_that_only_older_calls_set_are_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = old_calls.create_ipu_config(
        profiling=True, use_poplar_text_report=True, report_directory="reports"
    )
    ipu.config.configure_ipu_system(options)
    assert named(caplog) == [
        "IpuOptions.profiling.enable_poplar_reports_text",
        "IpuOptions.profiling.report_directory",
    ]


def test_options_of_poplar_are_named_by_themselves(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = ipu.config.IPUConfig()
    config.matmuls.poplar_options = {"partialsType": "half", "enableFastReduce": "1"}
    config.compilation_poplar_options = {
        "autoReport.directory": "reports",
        "target.deterministicWorkers": "true",
    }
    config.configure_ipu_system()
    assert named(caplog) == [
        "poplar_options.enableFastReduce",
        "compilation_poplar_options.target.deterministicWorkers",
    ]


@pytest.mark.parametrize(
    "flag",
    [n for n in poplar_flags.FLAGS if f"TF_POPLAR_FLAGS.{n}" not in TABLES[0]],
)
def test_flags_without_effect_are_named(
    flag: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = poplar_flags.FLAGS[flag].default
    value = "7" if type(default) is int else "true"
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--{flag}={value}")
    poplar_flags._parse.cache_clear()  # what a text says is found out once
    poplar_flags.read()
    assert named(caplog) == [f"TF_POPLAR_FLAGS.{flag}"]


def test_arguments_without_effect_are_named(caplog: pytest.LogCaptureFixture) -> None:
    options = ipu.pipelining_ops.PipelineStageOptions()
    mode = ipu.pipelining_ops.RecomputationMode
    given = {
        "recomputation_mode": mode.RecomputeThenBackpropagate,
        "replicated_weight_sharding": True,
        "weight_update_poplar_options": options,
    }
    settings.settings_of(pipeline_arguments(**given))
    assert named(caplog) == [f"pipeline.{name}" for name in given]
    settings.settings_of(pipeline_arguments(recomputation_mode=mode.Auto))
    infeed(optimise_latency=True)
    ipu.ipu_outfeed_queue.IPUOutfeedQueue(buffer_depth=4, optimise_latency=True)
    assert named(caplog) == [
        "IPUInfeedQueue.optimise_latency",
        "IPUOutfeedQueue.buffer_depth",
        "IPUOutfeedQueue.optimise_latency",
    ]


def test_the_documentation_lists_every_option() -> None:
    page = (ROOT / "docs" / "tensorflow.md").read_text(encoding="utf-8")
    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    listed = {name for table in TABLES for name in table}
    assert listed <= set(rows)
