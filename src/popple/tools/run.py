"""`popple run`: run a user's program unchanged, with a target and a report.

In: a script or module and its arguments. The options reach the facades as environment
variables, so the program needs no change. Its output, its traceback and its exit status
are its own; only the launcher's frames are taken out of the traceback.
"""

from __future__ import annotations

import os
import runpy
import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from popple.errors import PoppleError, UsageError, suggest
from popple.tools.command import Command, Outcome
from popple.tools.enable import cache_variables, default_cache
from popple.tools.reports import stamp_reports

if TYPE_CHECKING:
    from popple.advice import Advice
    from popple.session import ModelledCost
    from popple.session.watching import Watched

# The names the facades read.
TARGET_VARIABLE = "POPPLE_TARGET"
REPORT_VARIABLE = "POPPLE_REPORT"
QUIET_VARIABLE = "POPPLE_QUIET"
BACKEND_VARIABLE = "POPPLE_BACKEND"
DEVICE_VARIABLE = "POPPLE_DEVICE"
KEEP_BFLOAT16_VARIABLE = "POPPLE_KEEP_BFLOAT16"
NUMERICS_VARIABLE = "POPPLE_NUMERICS"
STRICT_VARIABLE = "POPPLE_STRICT"
MODEL_ONLY_VARIABLE = "POPPLE_MODEL_ONLY"

# What of the machine's float16 arithmetic values can be computed with.
NUMERICS = ("stochastic-rounding", "half-partials", "nan-on-overflow")


@dataclass(frozen=True)
class Script:
    """A user's program: a file or a module, and its arguments."""

    name: str
    arguments: tuple[str, ...]
    is_module: bool

    def __post_init__(self) -> None:
        if not self.is_module and not Path(self.name).exists():
            raise UsageError(
                f"There is no file {self.name!r}.",
                remedy="Give the path of a Python script, or -m and a module's name.",
            )

    def execute(self) -> None:
        """Run it as `python name ...` or `python -m name ...` would."""
        sys.argv = [self.name, *self.arguments]
        if self.is_module:
            # Python puts the current directory there for -m, and that of the script
            # otherwise; so far it was the directory of the `popple` command.
            sys.path[0] = str(Path.cwd())
            runpy.run_module(self.name, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(self.name).resolve().parent)
            runpy.run_path(self.name, run_name="__main__")


def add_arguments(parser: ArgumentParser) -> None:
    parser.usage = "popple run [options] (SCRIPT | -m MODULE) [arguments...]"
    add_model_arguments(parser)
    add_value_arguments(parser)
    parser.add_argument(
        "--no-cache",
        action="store_true",
        help="leave the variables of the executable caches as they are; otherwise "
        "those that are not set name a directory of the user's",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="no progress bars, no closing lines"
    )
    parser.add_argument(
        "-m",
        dest="module",
        metavar="MODULE",
        nargs=REMAINDER,
        help="run a module; everything after its name belongs to it",
    )
    parser.add_argument(
        "script",
        metavar="SCRIPT",
        nargs=REMAINDER,
        help="run a file; everything after its name belongs to it",
    )


def add_model_arguments(parser: ArgumentParser) -> None:
    """The machine, the report, and what is asked of programs that do not fit."""
    parser.add_argument(
        "--target",
        metavar="NAME|FILE",
        help="the machine to model: one that 'popple targets' or 'popple pod list' "
        "shows, or a TOML file",
    )
    parser.add_argument(
        "--report", metavar="DIR", type=Path, help="write reports into this directory"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse programs that do not fit into memory, as the machine does",
    )
    parser.add_argument(
        "--model-only",
        action="store_true",
        help="capture and model programs without computing values: PopTorch models "
        "return zeros, TensorFlow programs end at their first run",
    )


def add_value_arguments(parser: ArgumentParser) -> None:
    """How and where values are computed."""
    parser.add_argument(
        "--backend",
        choices=("replay", "inductor"),
        help="how values are computed: by replaying the framework's kernels (default), "
        "or compiled by torch.compile",
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        help="where values are computed (default: cpu)",
    )
    parser.add_argument(
        "--numerics",
        metavar="NAME,...",
        help="compute float16 values as the machine does: "
        f"{', '.join(NUMERICS)}, or all; slow, for studies of precision",
    )
    parser.add_argument(
        "--keep-bfloat16",
        action="store_true",
        help="let a GPU compute in bfloat16; the machine has none, so it is float32 "
        "otherwise",
    )


def run(arguments: Namespace) -> Outcome:
    """Check the command line; what is returned runs the program."""
    script = read_script(arguments)
    set_environment(arguments)
    return partial(launch, script, arguments.report, arguments.quiet)


def read_script(arguments: Namespace) -> Script:
    """The program that is meant."""
    words: list[str] = arguments.module or arguments.script
    words = words[1:] if words[:1] == ["--"] else words
    if not words:
        raise UsageError("Nothing to run.", remedy="Give a script, or -m and a module.")
    return Script(words[0], tuple(words[1:]), is_module=bool(arguments.module))


def set_environment(arguments: Namespace) -> None:
    """Hand the options to the facades; paths survive a change of directory."""
    if arguments.target is not None:
        os.environ[TARGET_VARIABLE] = check_target(arguments.target)
    if arguments.report is not None:
        os.environ[REPORT_VARIABLE] = str(arguments.report.absolute())
    if arguments.backend is not None:
        os.environ[BACKEND_VARIABLE] = arguments.backend
    if arguments.device is not None:
        os.environ[DEVICE_VARIABLE] = arguments.device
    if arguments.numerics is not None:
        os.environ[NUMERICS_VARIABLE] = check_numerics(arguments.numerics)
    if arguments.keep_bfloat16:
        os.environ[KEEP_BFLOAT16_VARIABLE] = "1"
    if arguments.strict:
        os.environ[STRICT_VARIABLE] = "1"
    if arguments.model_only:
        os.environ[MODEL_ONLY_VARIABLE] = "1"
    if not arguments.no_cache:
        set_cache_variables(default_cache(os.environ))
    if arguments.quiet:
        os.environ[QUIET_VARIABLE] = "1"


def set_cache_variables(directory: Path) -> None:
    """Let compiled programs be found again, as platforms with IPUs preset it.

    A directory that cannot be written is no reason not to run.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    if os.access(directory, os.W_OK):
        os.environ.update(cache_variables(directory, os.environ))


def check_target(name: str) -> str:
    """The target as an environment variable says it; an unknown one raises."""
    from popple.device import find_machine

    # Here, where the mistake is the user's: later it would look like one of the
    # program.
    find_machine(name)
    return str(Path(name).absolute()) if name.lower().endswith(".toml") else name


def check_numerics(text: str) -> str:
    """The names, or `all`; an unknown one raises."""
    known = (*NUMERICS, "all")
    for name in text.split(","):
        if name.strip() not in known:
            raise UsageError(
                f"There is no arithmetic {name.strip()!r}.",
                remedy=suggest(name.strip(), known),
            )
    return text


def launch(script: Script, report: Path | None, quiet: bool) -> int:
    """Run the program; what it raises passes through."""
    serve_tensorflow_names()
    sys.excepthook = partial(show_error, sys.excepthook)
    if quiet:
        script.execute()
        return 0
    # The program may change the directory before the reports are announced.
    report = None if report is None else report.absolute()
    before = {} if report is None else stamp_reports(report)
    from popple.session.watching import watch_programs

    with watch_programs() as programs:
        try:
            script.execute()
        finally:
            if report is not None:
                announce(report, before)
            # After an error there is something else to read.
            if not isinstance(sys.exc_info()[1], Exception):
                give_verdicts(programs, report)
    return 0


def execute_to_the_end(script: Script) -> None:
    """Run a program that may end itself; an error that it raises passes through."""
    try:
        script.execute()
    except SystemExit as ending:
        if ending.code not in (None, 0):
            raise


def give_verdicts(programs: Watched, report: Path | None) -> None:
    """Say of every program whether it fits, on stderr; why not, if it does not."""
    from popple.advice import render_advice

    for name, cost in programs.items():
        try:
            advice = find_verdict(name, cost)
        # What is gone or cannot be modelled has no verdict; the program has run.
        except PoppleError:
            continue
        text = render_advice(advice)
        if not advice.outcome.fits:
            subject = report or "SCRIPT"
            text = f"{text}\n\nWhat to do: popple advise {subject}"
        print(f"popple: {text}", file=sys.stderr)


def find_verdict(name: str, cost: ModelledCost) -> Advice:
    """Does the program fit; what its memory is for, if it does not."""
    # Planner and simulator are loaded here, when the user's program is over.
    from popple.advice import Advice, outcome_of
    from popple.record import memory_by_role

    modelled = cost.modelled()
    outcome = outcome_of(modelled)
    if outcome.fits:
        return Advice(name, outcome)
    memory = memory_by_role(modelled.graph, modelled.simulation)
    return Advice(name, outcome, tuple(memory))


def serve_tensorflow_names() -> None:
    """What an installation does when Python starts, for those that do not (`-S`)."""
    from tensorflow_ipu import boot

    boot.install()


def announce(directory: Path, before: dict[Path, int]) -> None:
    """Say what was written, on stderr: stdout belongs to the program."""
    now = stamp_reports(directory)
    written = [path for path, stamp in now.items() if stamp != before.get(path)]
    for path in written:
        print(f"popple: wrote the report {path}", file=sys.stderr)
    if written:
        print(f"popple: see it with: popple view {directory}", file=sys.stderr)
    else:
        print(f"popple: no report was written to {directory}", file=sys.stderr)


ErrorHook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


def show_error(
    show: ErrorHook,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
) -> None:
    """Show an uncaught error as plain Python would, without the launcher's frames."""
    own = skip_launcher(trace)
    show(kind, error.with_traceback(own), own)


def skip_launcher(trace: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that is the program's own.

    It begins behind `Script.execute` and the frames of `runpy` below it. Nothing is
    left of a program that does not compile: such an error names its line itself.
    """
    frames = list_frames(trace)
    codes = [frame.tb_frame.f_code for frame in frames]
    if Script.execute.__code__ not in codes:
        return trace
    below = frames[codes.index(Script.execute.__code__) + 1 :]
    return next((frame for frame in below if not is_runpy(frame)), None)


def list_frames(trace: TracebackType | None) -> list[TracebackType]:
    """The linked frames of a traceback, outermost first."""
    frames: list[TracebackType] = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    return frames


def is_runpy(frame: TracebackType) -> bool:
    return frame.tb_frame.f_globals.get("__name__") == "runpy"


COMMAND = Command("run", "Run a program unchanged.", add_arguments, run)
