"""`python -m examples_utils benchmark`: variants, commands, numbers, files."""

from __future__ import annotations

import csv
import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import pytest

from ipu_examples_utils.benchmarks import run_benchmarks as runner
from ipu_examples_utils.benchmarks.options import add_arguments
from ipu_examples_utils.benchmarks.spec import (
    Benchmark,
    Variant,
    choose,
    make_variants,
    read_specs,
)
from ipu_examples_utils.benchmarks.variant import (
    make_command,
    make_environment,
    split_command,
)
from popple.errors import UsageError


def parse(*words: str) -> Namespace:
    parser = ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(words)


def entry(name: str = "x_gen_pod4", **fields: Any) -> Benchmark:
    return Benchmark(name, Path("/somewhere/benchmarks.yml"), fields)


def test_rows_of_parameters_make_variants() -> None:
    given = entry(parameters=[["a", "b"], [1, 2], [3, 4]])
    names = [variant.name for variant in make_variants(given)]
    assert names == ["x_gen_pod4_a_1_b_2", "x_gen_pod4_a_3_b_4"]


def test_a_mapping_of_parameters_makes_all_combinations() -> None:
    found = make_variants(entry(parameters={"a": "1, 2", "b": "3"}))
    assert [v.parameters for v in found] == [{"a": "1", "b": "3"}, {"a": "2", "b": "3"}]


def test_which_benchmarks_are_meant() -> None:
    names = ("common_options", "a_gen", "b_conv")
    known = {name: entry(name) for name in names}
    assert [b.name for b in choose(known, None)] == ["a_gen"]
    assert [b.name for b in choose(known, ["b_conv"])] == ["b_conv"]
    with pytest.raises(UsageError, match=r"Benchmark a_gem not found.*'a_gen'"):
        choose(known, ["a_gem"])


def test_a_command_is_one_line_without_wandb() -> None:
    command = "python3 train.py\n  --wandb --lr {lr} --wandb-name x --steps 3"
    variant = Variant("v", entry(cmd=command), {"lr": "0.1"})
    assert make_command(variant, parse()) == "python3 train.py --lr 0.1 --steps 3"
    allowed = make_command(variant, parse("--allow-wandb"))
    assert "--wandb-name x" in allowed


def test_variables_and_python_of_a_command() -> None:
    words = split_command(
        "poprun -H $HOSTS python3 t.py '${A} b' $C", {"HOSTS": "h", "A": "1"}
    )
    assert words == ["poprun", "-H", "h", sys.executable, "t.py", "1 b", "$C"]


def test_the_environment_of_a_command() -> None:
    variant = Variant("v", entry(env={"SIZE": 4}), {})
    found = make_environment(variant, parse("--logging", "WARNING", "--profile"), {})
    assert (found["SIZE"], found["POPLAR_LOG_LEVEL"]) == ("4", "WARN")
    assert json.loads(found["POPLAR_ENGINE_OPTIONS"])["autoReport.all"] == "true"


def test_a_notebook_is_run_by_a_command() -> None:
    command = entry(notebook={"file": "a.ipynb", "timeout": 9}).command
    assert command.endswith("notebook_utils a.ipynb . --timeout 9")
    with pytest.raises(UsageError, match="unknown fields"):
        _ = entry(notebook={"fiel": "a.ipynb"}).command


def test_real_data_need_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATASETS_DIR", raising=False)
    with pytest.raises(UsageError, match="'bert_real' requires a dataset"):
        runner._check_dataset(entry("bert_real"))
    runner._check_dataset(entry("bert_gen"))
    runner._check_dataset(entry("bert", synthetic=True))


PROGRAM = """\
import sys
for step in range(3):
    print(f"throughput: {10.0 * (step + 1)} samples/sec, loss: {3 - step}")
print("2024-04-03T08:00:00.000000Z PO:ENGINE   1.1 I: Compiling p", file=sys.stderr)
print("2024-04-03T08:00:02.500000Z PO:ENGINE   1.1 I: Compiled p", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""
DATA = {
    "throughput": {"regexp": r"throughput: (\S+) samples", "skip": 1},
    "loss": {"regexp": r"loss: (\S+)", "reduction_type": "final"},
}


def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, *words: str
) -> tuple[int, dict[str, Any]]:
    """Run a spec of two benchmarks; the status, and the JSON that was written."""
    (tmp_path / "train.py").write_text(PROGRAM)
    fields = {
        "cmd": f"python3 train.py {status}",
        "data": DATA,
        "derived": {"twice": {"expr": "2 * {throughput}"}},
    }
    path = tmp_path / "benchmarks.yml"
    known = {name: Benchmark(name, path, fields) for name in ("a_gen", "b_gen")}
    monkeypatch.setattr(runner, "read_specs", lambda paths: known)
    logs = tmp_path / "logs"
    done = runner.run_benchmarks(parse("--log-dir", str(logs), *words))
    return done, json.loads((logs / "benchmark_results.json").read_text())


def test_numbers_are_collected(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, results = run(tmp_path, monkeypatch, 0)
    found = results["a_gen"][0]
    # The lowest of 10, 20 and 30 is skipped.
    assert found["results"]["throughput"] == {"mean": 25.0}
    assert found["results"]["loss"] == {"final": 1.0}
    assert found["results"]["twice"] == {"mean": 50.0}
    assert found["results"]["total_compiling_time"] == {"mean": 2.5}
    assert (status, found["exitcode"]) == (0, 0)
    assert "0 failed, 2 passed" in capsys.readouterr().out
    assert Path(found["log_paths"]["out"]).read_text().startswith("throughput: 10.0")
    with (tmp_path / "logs" / "benchmark_results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["throughput"] for row in rows] == ["25.0", "25.0"]


def test_a_failure_is_counted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, results = run(tmp_path, monkeypatch, 3, "--stop-on-error")
    assert (status, list(results)) == (1, ["a_gen"])
    assert results["a_gen"][0]["exitcode"] == 3
    assert results["a_gen"][0]["results"]["throughput"] == {"mean": None}
    assert "FAILED a_gen::a_gen" in capsys.readouterr().out


def test_a_benchmark_may_take_its_time_only(tmp_path: Path) -> None:
    from ipu_examples_utils.benchmarks.variant import run_variant

    words = [sys.executable, "-c", "import threading; threading.Event().wait(600)"]
    with (tmp_path / "log").open("w") as listener:
        outcome = run_variant(words, tmp_path, {}, 0.2, listener)
    assert outcome.exitcode == 124
    assert "Timeout (0.2)" in outcome.stderr


def test_a_spec_is_read(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    path = tmp_path / "benchmarks.yml"
    path.write_text(
        "common_options: &common {env: {A: 1e-3}}\n"
        "a_gen:\n  <<: [*common]\n  cmd: >-\n    python3 x.py\n      --lr {lr}\n"
    )
    found = read_specs([path])["a_gen"]
    assert found.fields["env"] == {"A": 0.001}
    assert found.command == "python3 x.py\n  --lr {lr}"
    assert found.directory == tmp_path
