"""What a `DataLoader` refuses or warns about: its data, and workers that die."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from .._errors import Error, check
from .._logging import logger
from ..options import Options

__all__ = [
    "DEATH_REMEDY",
    "Units",
    "check_iterable",
    "check_remainder",
    "check_sampler",
    "find_length",
    "watch_workers",
]

DEATH_REMEDY = (
    "Use num_workers=0 and DataLoaderMode.Sync to see the error itself. A process that "
    "is killed was often out of memory: use fewer workers or smaller items."
)


class Units(NamedTuple):
    """What batches are made of: items or smaller batches, and how many if known."""

    name: str
    number: int | None


def check_sampler(
    batch_size: int | None, shuffle: bool | None, is_parted: bool
) -> None:
    """Error if arguments contradict a batch sampler."""
    if batch_size != 1 or shuffle:
        raise Error("batch_sampler excludes batch_size and shuffle: leave them out.")
    if is_parted:
        raise Error(
            "batch_sampler excludes auto_distributed_partitioning: pass False, and let "
            "the sampler choose the items of this process."
        )


def check_iterable(num_workers: int, is_parted: bool, worker_init_fn: Any) -> None:
    """Refuse to cut an iterable dataset, warn when workers would repeat it."""
    check(
        not is_parted,
        "An IterableDataset cannot be partitioned automatically: pass "
        "auto_distributed_partitioning=False and let it yield this process's items.",
    )
    if num_workers > 1 and worker_init_fn is None:
        logger.warning(
            "An IterableDataset is read by num_workers=%d without worker_init_fn: "
            "every item will come %d times.",
            num_workers,
            num_workers,
        )


def check_remainder(
    units: Units, step: int, drops_rest: bool, options: Options
) -> None:
    """Warn of data that make no whole batch of `step` units, or leave a short one."""
    if units.number is None:
        return
    if drops_rest and units.number < step:
        # As in plain PyTorch such a loader is empty, and programs may live with that.
        logger.warning(_too_small(units, step, options))
    rest = units.number % step
    if rest and not drops_rest:
        logger.warning(
            "The %d %s are not a multiple of the %d that one step takes, and "
            "drop_last=False: the last batch has only %d of them. A model cannot take "
            "it; use drop_last=True or pad it.",
            units.number,
            units.name,
            step,
            rest,
        )


def _too_small(units: Units, step: int, options: Options) -> str:
    return (
        f"The {units.number} {units.name} do not make one whole batch of {step} = "
        f"batch size x deviceIterations ({options.device_iterations}) x "
        f"gradientAccumulation ({options.Training.gradient_accumulation}) x "
        "replicationFactor "
        f"({options.replication_factor}) / input group size "
        f"({options.input_group_size}) x processes "
        f"({options.Distributed.numProcesses}), so drop_last=True drops all of "
        "them and the loader is empty. Use a smaller batch size or options, more data, "
        "or drop_last=False."
    )


def find_length(sampler: Any) -> int | None:
    """The number of batches a sampler gives, if it can tell."""
    try:
        length = len(sampler)
    except (TypeError, NotImplementedError):
        return None
    return length


def watch_workers(batches: Any) -> Iterator[Any]:
    """The batches of torch's loader; that a worker died is said in words."""
    try:
        yield from batches
    except (ConnectionError, EOFError, RuntimeError) as error:
        is_death = "exited unexpectedly" in str(error)
        if isinstance(error, RuntimeError) and not is_death:
            raise
        # Or torch would say it again whenever any other process ends.
        with suppress(RuntimeError):
            batches._shutdown_workers()
        raise RuntimeError(
            f"A worker of the DataLoader exited unexpectedly. {DEATH_REMEDY}"
        ) from error
