"""Reports and trace events in tests."""

from __future__ import annotations

import collections
import fnmatch
import json
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorflow.compiler.plugin.poplar.driver.trace_pb2 import IpuTraceEvent
from tensorflow.compiler.plugin.poplar.ops import gen_ipu_ops
from tensorflow.python.framework import ops

from tensorflow_ipu._types import Message

_TO_DEVICE = IpuTraceEvent.HOST_TO_DEVICE_TRANSFER
_TO_HOST = IpuTraceEvent.DEVICE_TO_HOST_TRANSFER


def missing_whitelist_entries_in_names(
    names: Iterable[str], whitelist: Iterable[str]
) -> list[str]:
    """The patterns, each with stars around it, that no name matches."""
    patterns = [f"*{entry}*" for entry in whitelist]
    return [pattern for pattern in patterns if not _matching(names, pattern)]


def _matching(names: Iterable[str], pattern: str) -> list[str]:
    return [name for name in names if fnmatch.fnmatch(name, pattern)]


class ReportHelper:
    """A temporary directory for the reports of a test, gone with this object."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="tf_"))
        weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)

    def set_autoreport_options(
        self,
        cfg: Any,
        *,
        output_graph_profile: bool = True,
        output_execution_profile: bool = False,
        max_execution_reports: int = 1000,
    ) -> None:
        """Let programs under this configuration write their reports here."""
        cfg.compilation_poplar_options = {
            "autoReport.directory": str(self._directory),
            "autoReport.outputGraphProfile": str(output_graph_profile).lower(),
            "autoReport.outputExecutionProfile": str(output_execution_profile).lower(),
            "autoReport.executionProfileProgramRunCount": str(max_execution_reports),
        }

    def find_reports(self) -> list[str]:
        """The report files, oldest first; each directory must have one."""
        found = list[Path]()
        for directory in self._directory.glob("tf_report_*/"):
            files = list(directory.glob("*.pop"))
            if len(files) != 1:
                raise OSError(f"{directory} has {len(files)} reports instead of 1.")
            found += files
        return [str(path) for path in sorted(found, key=lambda p: p.stat().st_ctime)]

    def find_report(self) -> str:
        """The report file; there must be one."""
        reports = self.find_reports()
        assert len(reports) == 1, f"Expected 1 report but found {len(reports)}"
        return reports[0]

    def clear_reports(self) -> None:
        """Remove all reports."""
        shutil.rmtree(self._directory)
        self._directory.mkdir()


class TensorMap:
    """Which tiles hold which tensors, by computation."""

    @dataclass(frozen=True)
    class Tile:
        """How much of a tensor one tile holds."""

        tile: int
        num_elements: int

    @dataclass(frozen=True)
    class Tensor:
        """One output of an instruction, and where it lies."""

        inst: str
        index: int
        shape: Any
        dtype: str
        has_constant: bool
        has_aliases: bool
        num_elements: int
        tiles: tuple[TensorMap.Tile, ...]
        name: str

        @property
        def id(self) -> str:
            """Instruction and number of the output."""
            return f"{self.inst},{self.index}"

        def tile_ids(self) -> list[int]:
            """The tiles that hold a part of it."""
            return sorted({tile.tile for tile in self.tiles})

    def __init__(self, tensor_map: Mapping[str, Any]) -> None:
        self.mappings = {
            computation: [_make_tensor(entry) for entry in entries]
            for computation, entries in tensor_map["mappings"].items()
        }

    def all_tensors(self) -> Iterator[Tensor]:
        """Those of all computations."""
        for tensors in self.mappings.values():
            yield from tensors

    def computation_names(self) -> list[str]:
        """The computations that have tensors."""
        return list(self.mappings)

    def tile_ids(self, computation: str | list[str] | None = None) -> set[int]:
        """The tiles that one, some or all computations use."""
        names = [computation] if isinstance(computation, str) else computation
        chosen = names or list(self.mappings)
        tensors = (tensor for name in chosen for tensor in self.mappings[name])
        return {tile for tensor in tensors for tile in tensor.tile_ids()}

    def tensor_inst_name_mappings(self) -> dict[str, str]:
        """The name of each tensor, by its id."""
        return {tensor.id: tensor.name for tensor in self.all_tensors()}


def _make_tensor(entry: Sequence[Any]) -> TensorMap.Tensor:
    inst, index, shape, dtype, has_constant, has_aliases, num_elements = entry[:7]
    return TensorMap.Tensor(
        inst,
        index,
        shape,
        dtype,
        bool(has_constant),
        bool(has_aliases),
        num_elements,
        tiles=tuple(TensorMap.Tile(*tile) for tile in entry[7]),
        name=entry[8],
    )


class ReportJSON:
    """The trace events of a test, fetched and taken apart.

    With a session, or in eager mode, the events are fetched; otherwise the test hands
    them over.
    """

    def __init__(self, test: Any, sess: Any = None, eager_mode: bool = False) -> None:
        assert not (sess and eager_mode), "There are no sessions in eager mode."
        self.test = test
        self.sess = sess
        self.eager_mode = eager_mode
        self.report: Any = None
        self.num_events = 0
        self.tensor_map: Any = None
        self.instruction_info: Any = {}
        self.events: dict[int, list[Any]] = {}
        if sess:
            self.create_ipu_event_trace()

    def create_ipu_event_trace(self) -> None:
        """Make the operator that fetches events; in eager mode, fetch them."""
        with ops.device("cpu"):
            self.report = gen_ipu_ops.ipu_event_trace()

    def reset(self) -> None:
        """Forget the events so far."""
        self.get_event_trace()

    def get_event_trace(self, session: Any = None) -> Any:
        """The events since the last time, serialised."""
        if self.eager_mode:
            self.create_ipu_event_trace()
            return self.report.numpy()
        chosen = session or self.sess
        assert chosen, "There is no session to fetch the events with."
        return chosen.run(self.report)

    def get_events_from_log(self, log: Iterable[Any]) -> tuple[Any, list[Any]]:
        """How many events of each type there are, and the events."""
        texts = (e.numpy() if isinstance(e, ops.EagerTensor) else e for e in log)
        events = [IpuTraceEvent.FromString(text) for text in texts]
        counts: Any = collections.defaultdict(int)
        for event in events:
            counts[event.type] += 1
        return counts, events

    def get_ipu_events(self, session: Any = None) -> tuple[Any, list[Any]]:
        """Fetch: how many events of each type there are, and the events."""
        return self.get_events_from_log(self.get_event_trace(session))

    def parse_log(
        self, assert_len: int | None = None, assert_msg: str = "", session: Any = None
    ) -> Any:
        """Fetch the events and take them apart; how many there are of each type."""
        return self.parse_events(self.get_event_trace(session), assert_len, assert_msg)

    def parse_events(
        self, events: Any, assert_len: int | None = None, assert_msg: str = ""
    ) -> Any:
        """Take events apart; how many there are of each type."""
        self.num_events = len(events)
        if assert_len:
            self.assert_num_events(assert_len, assert_msg)
        counts, messages = self.get_events_from_log(events)
        self.tensor_map, self.instruction_info, self.events = None, {}, {}
        for message in messages:
            self._take_apart(message)
        return counts

    def _take_apart(self, event: Message) -> None:
        if event.type in (_TO_DEVICE, _TO_HOST) and event.data_transfer.data_transfer:
            data = json.loads(event.data_transfer.data_transfer)
            self.events.setdefault(event.type, []).append(data)
        if event.type == IpuTraceEvent.EXECUTE:
            self.events.setdefault(event.type, [])
        if event.type == IpuTraceEvent.COMPILE_END and event.compile_end.tensor_map:
            self.tensor_map = TensorMap(json.loads(event.compile_end.tensor_map))
            self.instruction_info = json.loads(event.compile_end.instruction_info)

    def get_tensor_map(self) -> Any:
        """Where the tensors of the compiled program lie."""
        return self.tensor_map

    def get_instruction_info(self) -> Any:
        """What the compiler says about instructions."""
        return self.instruction_info

    def get_ml_type_counts(self) -> list[int]:
        """Instructions of inference, forward, backward and update, in this order."""
        counts = collections.Counter(self.instruction_info["ml_types"].values())
        return [counts[kind] for kind in (1, 2, 3, 4)]

    def get_host_to_device_event_names(self, event_idx: int = 0) -> list[str]:
        """Names of the tensors of a transfer to the device."""
        return _names_of(self.events[_TO_DEVICE][event_idx])

    def get_device_to_host_event_names(self, event_idx: int = 0) -> list[str]:
        """Names of the tensors of a transfer to the host."""
        return _names_of(self.events[_TO_HOST][event_idx])

    def assert_num_events(self, num_expected: int, assert_msg: str = "") -> None:
        """There are that many events."""
        assert num_expected == self.num_events, assert_msg

    def assert_no_event(self, msg: str = "") -> None:
        """There are no new events."""
        assert not self.get_ipu_events()[0], msg

    def assert_host_to_device_event_names(
        self, names: Sequence[str], msg: str | None = None, event_idx: int = 0
    ) -> None:
        """A transfer to the device has these tensors and no others."""
        self._assert_transfer(_TO_DEVICE, names, msg, event_idx)

    def assert_device_to_host_event_names(
        self, names: Sequence[str], msg: str | None = None, event_idx: int = 0
    ) -> None:
        """A transfer to the host has these tensors and no others."""
        self._assert_transfer(_TO_HOST, names, msg, event_idx)

    def _assert_transfer(
        self, kind: int, names: Sequence[str], msg: str | None, event_idx: int
    ) -> None:
        if not names:
            return
        transfers = self.events.get(kind, [])
        assert len(transfers) > event_idx, msg
        found = _names_of(transfers[event_idx])
        assert len(names) == len(found), msg
        for name in names:
            assert len(_matching(found, name)) == 1, msg

    def assert_contains_host_to_device_transfer_event(self) -> None:
        """Something was sent to the device."""
        assert _TO_DEVICE in self.events

    def assert_contains_device_to_host_transfer_event(self) -> None:
        """Something was sent to the host."""
        assert _TO_HOST in self.events

    def assert_num_host_to_device_transfer_events(self, num: int) -> None:
        """There were that many transfers to the device."""
        assert len(self.events[_TO_DEVICE]) == num

    def assert_num_device_to_host_transfer_events(self, num: int) -> None:
        """There were that many transfers to the host."""
        assert len(self.events[_TO_HOST]) == num

    def assert_tensor_inst_name_mappings(self, expected_mappings: Any) -> None:
        """Each of these instructions has a tensor of the given name."""
        mappings = self.tensor_map.tensor_inst_name_mappings()
        for inst, expected in expected_mappings.items():
            ids = _matching(mappings, inst + "*")
            assert len(ids) == 1, f"Not one match for {inst}: {ids}"
            assert fnmatch.fnmatch(mappings[ids[0]], expected)

    def assert_tensor_input_names(self, *expected_inputs: str) -> None:
        """The arguments of the compiled program have these names."""
        mappings = self.tensor_map.tensor_inst_name_mappings()
        for number, expected in enumerate(expected_inputs):
            (id,) = _matching(mappings, f"arg{number}.*")
            name = re.sub(r"^XLA_Args/(_arg_)?|_0_0/_\d+$", "", mappings[id])
            assert fnmatch.fnmatch(name, expected), f"{name}: {expected}"

    def assert_pipeline_stages_on_expected_ipu(
        self, expected_ipus: Sequence[Any], tile_per_ipu: int
    ) -> None:
        """Each stage uses the tiles of one IPU; -1 and lists stand for any."""
        names = self.tensor_map.computation_names()
        beyond = _matching(names, f"*_stage_{len(expected_ipus) + 1}_*")
        assert not beyond, "There are more stages than expected."
        for stage, expected in enumerate(expected_ipus):
            if isinstance(expected, list) or expected == -1:
                continue
            computations = _matching(names, f"*_stage_{stage}_*")
            assert computations, f"There is no stage {stage}."
            tiles = self.tensor_map.tile_ids(computations)
            ipus = {tile // tile_per_ipu for tile in tiles}
            assert ipus in (set(), {expected}), f"Stage {stage}"


def _names_of(transfer: Mapping[str, Any]) -> list[str]:
    return [tensor["name"] for tensor in transfer.get("tensors", ())]
