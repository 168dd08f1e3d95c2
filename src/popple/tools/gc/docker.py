"""`gc-docker`: starts a docker container that sees the devices of this host."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from popple.tools.gc.container import make_container_tool
from popple.tools.gc.tool import run_tool

TOOL = make_container_tool("docker")


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    return run_tool(TOOL, argv)


if __name__ == "__main__":
    sys.exit(main())
