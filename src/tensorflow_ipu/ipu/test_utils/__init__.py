"""Helps for tests of programs that use the IPU."""

from __future__ import annotations

from tensorflow.python.framework.test_util import (
    TensorFlowTestCase as _TensorFlowTestCase,
)

from .dataset_utils import (
    create_dual_increasing_dataset,
    create_multi_increasing_dataset,
    create_single_increasing_dataset,
)
from .events_utils import (
    enable_ipu_events,
    extract_all_events,
    extract_all_strings_from_event_trace,
    extract_all_types_from_event_trace,
)
from .hardware_test_utils import (
    add_hw_ci_connection_options,
    get_ci_num_ipus,
    has_ci_ipus,
    skip_if_not_enough_ipus,
    skip_on_hw,
    skip_with_asan,
    test_may_use_ipus_or_model,
    test_uses_ipus,
)
from .report_helper import (
    ReportHelper,
    ReportJSON,
    TensorMap,
    missing_whitelist_entries_in_names,
)
from .session_utils import ipu_session, move_variable_initialization_to_cpu
from .test_case_extensions import TestCaseExtensions
from .test_case_extensions import attach_to as _attach_to

__all__ = [
    "ReportHelper",
    "ReportJSON",
    "TensorMap",
    "TestCaseExtensions",
    "add_hw_ci_connection_options",
    "create_dual_increasing_dataset",
    "create_multi_increasing_dataset",
    "create_single_increasing_dataset",
    "enable_ipu_events",
    "extract_all_events",
    "extract_all_strings_from_event_trace",
    "extract_all_types_from_event_trace",
    "get_ci_num_ipus",
    "has_ci_ipus",
    "ipu_session",
    "missing_whitelist_entries_in_names",
    "move_variable_initialization_to_cpu",
    "skip_if_not_enough_ipus",
    "skip_on_hw",
    "skip_with_asan",
    "test_may_use_ipus_or_model",
    "test_uses_ipus",
]

# Tests call these as methods of any TensorFlow test case.
_attach_to(_TensorFlowTestCase)
