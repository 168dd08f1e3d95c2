"""How true the model is: every published figure beside the modelled one.

    python benchmarks/fidelity.py [--facts DIR] [--set compiler] [--only 'resnet.*']
    python benchmarks/fidelity.py --without-own    constants derived without families

DIR holds tables of the names and columns of tests/calibration/data, which is the
default. Each row becomes a torch module that is captured, planned and simulated. Prints
name, published, modelled, error; then the sizes of the errors by quantity, chip and
group, with and without the rows that a constant was derived from, which are marked.
Rows that cannot be expressed are printed with the reason. After an improvement,
`--fast --record tests/calibration/data/summary.toml` keeps it, and `--without-own
--results docs/fidelity.toml` writes the tables of the guide.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

# This folder has a script with the facade's name: look beside it instead.
sys.path[0] = str(Path(__file__).parents[1])

import torch  # noqa: E402

from benchmarks.calibration.assumptions import settings_of  # noqa: E402
from benchmarks.calibration.compiler import compiler_rows  # noqa: E402
from benchmarks.calibration.derived import (  # noqa: E402
    independent,
    is_marked,
    without_own,
)
from benchmarks.calibration.kernels import kernel_rows  # noqa: E402
from benchmarks.calibration.memory import memory_rows  # noqa: E402
from benchmarks.calibration.models import model_rows  # noqa: E402
from benchmarks.calibration.record import (  # noqa: E402
    FAST,
    INDEPENDENT,
    OUT_OF_SAMPLE,
    update_results,
    write_record,
)
from benchmarks.calibration.rows import (  # noqa: E402
    Key,
    Result,
    Rows,
    Summary,
    choose,
    render_summaries,
    render_table,
    summarise,
    write_csv,
)
from benchmarks.calibration.vertices import vertex_rows  # noqa: E402

FACTS = Path(__file__).parents[1] / "tests" / "calibration" / "data"
SETS: Mapping[str, Callable[[Path], Iterator[Rows]]] = {
    "vertices": vertex_rows,
    "compiler": compiler_rows,
    "kernels": kernel_rows,
    "models": model_rows,
    "memory": memory_rows,
}


def main() -> None:
    """Model the rows asked for and print what came out."""
    arguments = _arguments()
    # PyTorch's own threads do not exist in forked processes, which would wait for them.
    torch.set_num_threads(1)
    names = [arguments.set] if arguments.set else list(SETS)
    everything: list[Result] = []
    summaries: dict[str, Mapping[Key, Summary]] = {}
    for name in names:
        start = time.perf_counter()
        only = FAST[name] if arguments.fast else arguments.only
        found = choose(SETS[name](arguments.facts), only)
        results = model_all(found, arguments.jobs)
        everything += results
        summaries |= show_set(name, results)
        if arguments.without_own:
            summaries |= show_without_own(name, found, results, arguments.jobs)
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
    if arguments.csv:
        write_csv(everything, arguments.csv)
    if arguments.record:
        write_record({name: summaries[name] for name in names}, arguments.record)
    if arguments.results:
        update_results(summaries, arguments.results)


def show_set(name: str, results: list[Result]) -> dict[str, Mapping[Key, Summary]]:
    """Print the results of a set; its summaries with marked rows and without."""
    print(f"== {name}: {len(results)} rows", flush=True)
    marked = frozenset(each.row for each in results if is_marked(name, each.row))
    found = {name: summarise(results)}
    remarks = {
        each.row: ("a constant was derived from it; " if each.row in marked else "")
        + settings_of(name, each.row)
        for each in results
    }
    lines = [*render_table(results, remarks), *render_summaries(found[name])]
    if marked:
        found[name + INDEPENDENT] = summarise(independent(name, results))
        lines += [
            f"-- {name}: without the {len(marked)} rows a constant was derived from",
            *render_summaries(found[name + INDEPENDENT]),
        ]
    print("\n".join(lines), flush=True)
    return found


def show_without_own(
    name: str, rows: Sequence[Rows], results: list[Result], num_jobs: int
) -> dict[str, Mapping[Key, Summary]]:
    """Print errors of each family by constants that were derived without it."""

    def model(some: Sequence[Rows], change: Callable[[], None]) -> list[Result]:
        return model_all(some, max(1, num_jobs), change)

    sentences, found = without_own(name, rows, results, model)
    summaries = summarise(found)
    print(f"-- {name}: constants derived without each family")
    print("\n".join([*sentences, *render_summaries(summaries)]), flush=True)
    return {name + OUT_OF_SAMPLE: summaries}


def model_all(
    rows: Iterable[Rows], num_jobs: int = 1, change: Callable[[], None] | None = None
) -> list[Result]:
    """Results of all rows in their order, by several processes if asked for.

    What `change` changes first is changed in processes of their own.
    """
    found = list(rows)
    if num_jobs > 1 or change is not None:
        parts = _model_in_parts(found, num_jobs, change or _nothing)
    else:
        parts = [_model(found)]
    # Each process has every so-many-th row.
    by_row = zip_longest(*parts, fillvalue=[])
    return [result for row in by_row for each in row for result in each]


def _nothing() -> None:
    """Everything as it is."""


def _model(rows: Sequence[Rows]) -> list[list[Result]]:
    return [each.results() for each in rows]


def _model_in_parts(
    rows: Sequence[Rows], num_jobs: int, change: Callable[[], None]
) -> list[Sequence[Sequence[Result]]]:
    """Forked processes have the rows; only their results are sent."""
    context = multiprocessing.get_context("fork")
    ends: list[Any] = []
    for first in range(num_jobs):
        receiver, sender = context.Pipe(duplex=False)
        work = (rows[first::num_jobs], sender, change)
        context.Process(target=_send, args=work, daemon=True).start()
        sender.close()
        ends.append(receiver)
    return [end.recv() for end in ends]


def _send(rows: Sequence[Rows], end: Connection, change: Callable[[], None]) -> None:
    change()
    end.send(_model(rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--facts", type=Path, default=FACTS)
    parser.add_argument("--set", choices=sorted(SETS))
    parser.add_argument("--only", default="", help="regular expression on names")
    parser.add_argument("--csv", type=Path, help="write the results as a table")
    parser.add_argument("--fast", action="store_true", help="the rows of the tests")
    parser.add_argument("--record", type=Path, help="keep the summaries")
    parser.add_argument(
        "--without-own",
        action="store_true",
        help="errors of each family by constants that were derived without it, too",
    )
    parser.add_argument("--results", type=Path, help="write summaries for the guide")
    parser.add_argument("--jobs", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
