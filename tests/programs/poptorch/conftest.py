"""Programs hold devices of their own, as the tests of the facade do."""

from __future__ import annotations

from tests.poptorch.conftest import _own_devices  # noqa: F401
