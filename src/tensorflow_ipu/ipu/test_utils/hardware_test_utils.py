"""Which tests run where: TF_IPU_COUNT says how many IPUs there are for them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from tensorflow_ipu._types import IpuOptions

from ..config import DeviceConnectionType

_Test = Callable[..., Any]


def get_ci_num_ipus() -> int:
    """Number of IPUs that tests may use."""
    return int(os.environ.get("TF_IPU_COUNT", "0"))


def has_ci_ipus() -> bool:
    """Whether tests may use IPUs."""
    return get_ci_num_ipus() > 0


def add_hw_ci_connection_options(opts: IpuOptions) -> None:
    """Attach only while something runs, so that tests share the IPUs."""
    opts.device_connection.enable_remote_buffers = True
    opts.device_connection.type = DeviceConnectionType.ON_DEMAND


def test_may_use_ipus_or_model(num_ipus: int, func: _Test | None = None) -> Any:  # noqa: PT028
    """Decorator: the test runs on `num_ipus` IPUs or on the IPU Model."""
    return test_uses_ipus(num_ipus, allow_ipu_model=True, func=func)


def test_uses_ipus(
    num_ipus: int,
    allow_ipu_model: bool = False,  # noqa: PT028
    func: _Test | None = None,  # noqa: PT028
) -> Any:
    """Decorator: the test needs `num_ipus` IPUs and is skipped if there are fewer."""

    def decorate(test: _Test) -> _Test:
        @functools.wraps(test)
        def run(self, *args: Any, **kwargs: Any) -> Any:
            if not allow_ipu_model:
                skip_if_not_enough_ipus(self, num_ipus)
            on_model = "use_ipu_model" in os.environ.get("TF_POPLAR_FLAGS", "")
            assert not (on_model and get_ci_num_ipus() >= num_ipus), (
                "There are IPUs for this test, but TF_POPLAR_FLAGS asks for the model."
            )
            return test(self, *args, **kwargs)

        return run

    return decorate if func is None else decorate(func)


def skip_on_hw(func: _Test) -> _Test:
    """Decorator: the test is skipped where there are IPUs."""

    @functools.wraps(func)
    def run(self, *args: Any, **kwargs: Any) -> Any:
        if has_ci_ipus():
            self.skipTest("Skipping test on HW")
        return func(self, *args, **kwargs)

    return run


def skip_if_not_enough_ipus(self, num_ipus: int) -> None:
    """Skip the running test if there are fewer IPUs."""
    if get_ci_num_ipus() < num_ipus:
        self.skipTest(
            f"Requested {num_ipus} IPUs, but only {get_ci_num_ipus()} are available."
        )


def skip_with_asan(reason: str) -> Callable[[_Test], _Test]:
    """Decorator: the test is skipped under AddressSanitizer."""
    if not isinstance(reason, str):
        raise TypeError(f"'reason' should be string, got {type(reason)}")

    def decorate(test: _Test) -> _Test:
        @functools.wraps(test)
        def run(self, *args: Any, **kwargs: Any) -> Any:
            if "ASAN_OPTIONS" in os.environ:
                self.skipTest(reason)
            return test(self, *args, **kwargs)

        return run

    return decorate


# Their names look like those of tests, but they make tests.
for _maker in (test_may_use_ipus_or_model, test_uses_ipus):
    vars(_maker)["__test__"] = False
