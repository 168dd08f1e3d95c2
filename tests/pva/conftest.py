"""The report that is made by hand in `tests/report`, written and opened by pva."""

from __future__ import annotations

from pathlib import Path

import pytest

import pva
from popple.report import ReportContents, write_report
from tests.report.conftest import contents as contents
from tests.report.conftest import genuine_path as genuine_path


@pytest.fixture(scope="session")
def written(contents: ReportContents, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(contents, tmp_path_factory.mktemp("report"))


@pytest.fixture
def report(written: Path) -> pva.Report:
    return pva.openReport(str(written))
