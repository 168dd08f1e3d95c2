"""The command line as a whole: help, version, errors, closed pipes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from popple._version import __version__
from popple.errors import UsageError
from popple.tools import cli
from popple.tools.command import Command


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"popple {__version__}\n"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--help"])
    text = capsys.readouterr().out
    for command in cli.COMMANDS:
        assert command.name in text
        assert command.summary in text


@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda command: command.name)
def test_every_command_has_help(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main([command.name, "--help"])
    assert command.summary in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["nosuch"]])
def test_wrong_commands_are_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(words)
    assert "COMMAND" in capsys.readouterr().err


def test_an_error_of_ours_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: object) -> int:
        raise UsageError("Bad.", where="here", remedy="Do good.")

    command = Command("bad", "Refuses.", lambda parser: None, refuse)
    monkeypatch.setattr(cli, "COMMANDS", (command,))
    assert cli.main(["bad"]) == 2
    assert capsys.readouterr().err == "popple: error: here: Bad. Do good.\n"


def test_a_closed_pipe_is_no_error() -> None:
    popple = f"{sys.executable} -m popple.tools.cli targets bow-pod16"
    # `true` reads nothing, so the pipe breaks; PIPESTATUS is popple's own status.
    script = f"{popple} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
