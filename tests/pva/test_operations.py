"""Programs grouped by the operation of the user's program they belong to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pva


def test_programs_of_an_operation(report: pva.Report) -> None:
    (dense,) = pva.OperationAnalysis(report).operations
    assert dense.name == "dense"
    assert [program.name for program in dense.programs()] == ["dense/forward"]
    # The program is the second of the liveness steps.
    assert (dense.firstStepIndex, dense.lastStepIndex) == (1, 1)
    assert [each._id for each in dense.vars] == [0, 1]
    assert dense.replacedDebugContext == []


def test_debug_contexts_name_the_users_line(report: pva.Report) -> None:
    context = pva.OperationAnalysis(report).operations[0].debugContext
    assert (context.id, context.location.fileName) == (4, "net.py")
    assert context.location.lineNumber == 12
    assert json.loads(context.layer) == {"layer": "torch"}
    facts = json.loads(context.json)
    assert (facts["op_name"], facts["module"]) == ("dense", "net.dense")
    assert context.parents == []


def test_the_debug_file_may_lie_elsewhere(written: Path, tmp_path: Path) -> None:
    shutil.copy(written, tmp_path / "profile.pop")
    alone = pva.openReport(str(tmp_path / "profile.pop"))
    assert pva.OperationAnalysis(alone).operations[0].name == ""
    debug = str(written.with_name("debug.cbor"))
    both = pva.openReport(str(tmp_path / "profile.pop"), debug)
    assert pva.OperationAnalysis(both).operations[0].name == "dense"
