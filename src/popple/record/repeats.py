"""Repeat the modelled run in a report, for programs that ran more than once."""

from __future__ import annotations

from dataclasses import replace

from popple.report import ReportContents, Step

__all__ = ["repeat_run"]


def repeat_run(contents: ReportContents, num_runs: int) -> ReportContents:
    """The contents with so many runs, each after the other and equal to the first.

    Without any run the report is about memory only.
    """
    (run,) = contents.runs
    (total,) = contents.cycle_totals
    rounds = range(num_runs)
    return replace(
        contents,
        steps=[_later(s, n * total.cycles) for n in rounds for s in contents.steps],
        runs=[
            replace(
                run,
                id=n,
                # Runs are laid end to end: time between calls depends on the host,
                # which is not modelled.
                start_epoch_us=run.start_epoch_us + n * (run.elapsed_us or 0),
                start_cycles_by_chip=_shifted(
                    run.start_cycles_by_chip, n * total.cycles
                ),
                end_cycles_by_chip=_shifted(run.end_cycles_by_chip, n * total.cycles),
            )
            for n in rounds
        ],
        cycle_totals=[replace(total, run_id=n) for n in rounds],
        program_trace=[*contents.program_trace] * num_runs,
        timeline=contents.timeline if num_runs else (),
        chip_times=contents.chip_times if num_runs else (),
    )


def _later(step: Step, cycles: int) -> Step:
    """The step, begun so many cycles later."""
    if not cycles:
        return step
    return replace(
        step,
        chips=tuple(
            replace(on, base_cycles=on.base_cycles + cycles) for on in step.chips
        ),
    )


def _shifted(values: tuple[int, ...] | None, by: int) -> tuple[int, ...] | None:
    return None if values is None else tuple(value + by for value in values)
