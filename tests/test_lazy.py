"""Modules that are imported when something of them is used."""

from __future__ import annotations

import subprocess
import sys

from popple.lazy import LazyModule


def test_a_lazy_module_gives_what_the_module_has() -> None:
    import colorsys

    lazy = LazyModule("colorsys")
    assert lazy.rgb_to_hsv is colorsys.rgb_to_hsv
    assert "colorsys" in repr(lazy)


def test_running_a_program_loads_no_planner() -> None:
    code = "import popple.pipeline, sys; print('popple.plan' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")
