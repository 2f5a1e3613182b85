"""Records of rocprofv3, in any of its formats, as the events that PyTorch's profiler would have written.

    dispatch           kernel on the stream of its GPU; the grid, in work items, becomes blocks
    counter            argument of the kernel that it was measured for
    memory copy        Memcpy HtoD, on the GPU that it goes to or comes from
    HIP, HSA call      runtime and driver call, joined with the work it launched by the correlation id
    roctx range        annotation; `step 7` is a step
    RCCL call          the call of a collective on the host

Times are ns since the machine booted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.base.markers import STEP_PREFIX
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.ingest.kineto.assemble import assemble
from torch_tb_profiler.ingest.kineto.codes import distinct_rows
from torch_tb_profiler.ingest.kineto.columns import EventColumns
from torch_tb_profiler.ingest.rocprof.agents import Agents
from torch_tb_profiler.ingest.runtime import ReportStep
from torch_tb_profiler.ingest.slices import CodedTexts, TextColumn, add_name_event, append_slices, encode_texts
from torch_tb_profiler.model.counters.dispatches import COUNTER_PREFIX
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import ABSENT, ROCPROF, Float64, Int64, Trace

PROCESS_SHIFT = 2**40
"""Correlation ids count from 1 in each process; those of process n (from 0) are shifted by n times this."""

_STEP = lazy_regex(r"step\s+(\d{1,18})", re.IGNORECASE)

_COPIES = {
    "MEMORY_COPY_HOST_TO_HOST": "Memcpy HtoH (Host -> Host)",
    "MEMORY_COPY_HOST_TO_DEVICE": "Memcpy HtoD (Host -> Device)",
    "MEMORY_COPY_DEVICE_TO_HOST": "Memcpy DtoH (Device -> Host)",
    "MEMORY_COPY_DEVICE_TO_DEVICE": "Memcpy DtoD (Device -> Device)",
}

_CATEGORIES = (
    ("HIP_", "hip_runtime"),
    ("HSA_", "hip_driver"),
    ("RCCL_", "collective_comm"),
    ("MARKER_CORE", "user_annotation"),
)


@dataclass(frozen=True)
class WorkRecords:
    """k dispatches or copies of one process; int64[k], ABSENT where not recorded."""

    names: TextColumn
    start: Int64
    end: Int64
    correlation: Int64
    stream: Int64
    queue: Int64

    @property
    def lane(self) -> Int64:
        """Return the stream, or the queue in recordings from before ROCm 7."""
        return np.where(self.stream == ABSENT, self.queue, self.stream)


class RecordingBuilder:
    """Collects the records of a file, process by process."""

    def __init__(self) -> None:
        self.columns = EventColumns()
        self.devices: dict[int, dict[str, Any]] = {}
        self._process_index = -1
        self._agents = Agents(())
        self._named_lanes: set[tuple[str, Any, Any]] = set()

    def begin_process(self, pid: int | None, command: str | None, agents: Agents) -> None:
        """Start a process; the records that follow are its own."""
        self._process_index += 1
        self._agents = agents
        for properties in agents.gpu_properties():
            self.devices.setdefault(properties["id"], properties)
        if pid is not None and command:
            self._add_name("process_name", pid, None, command)

    def set_agents(self, agents: Agents) -> None:
        """Set the agents of the records that follow, if the file describes none."""
        self._agents = agents

    def add_dispatches(
        self,
        work: WorkRecords,
        agent: Int64,
        grid: Sequence[Int64] | None,
        block: Sequence[Int64] | None,
        counters: Mapping[str, Float64] | None = None,
        **more: Int64,
    ) -> None:
        """Add kernels.

        grid      work items along x, y, z
        block     work items of a block along x, y, z
        counters  float64[k] by name, NaN where a kernel has no value
        more      further numbers by the name of the argument
        """
        shape: dict[str, Any] = {}
        if grid is not None and block is not None:
            blocks = [
                np.where((items > 0) & (size > 0), -(-items // np.maximum(size, 1)), ABSENT)
                for items, size in zip(grid, block, strict=True)
            ]
            shape = {"grid": ("json", _coded_triples(blocks)), "block": ("json", _coded_triples(block))}
        self._add_device_work(
            "kernel",
            work,
            self._agents.indices(agent),
            {
                **shape,
                **_integer_args(more),
                **{COUNTER_PREFIX + name: ("float", values) for name, values in (counters or {}).items()},
            },
        )

    def add_copies(self, work: WorkRecords, source: Int64, target: Int64, size: Int64) -> None:
        """Add copies between agents; each lies on the GPU that it goes to, or else the one that it comes from."""
        device = self._agents.indices(np.where(self._agents.are_gpus(target), target, source))
        names = encode_texts(work.names).map(lambda name: _COPIES.get(name, name))
        moved = WorkRecords(names, work.start, work.end, work.correlation, work.stream, work.queue)
        self._add_device_work("gpu_memcpy", moved, device, _integer_args({"bytes": size}))

    def add_calls(
        self,
        domains: TextColumn,
        names: TextColumn,
        messages: TextColumn,
        pids: Int64,
        tids: Int64,
        start: Int64,
        end: Int64,
        correlation: Int64,
    ) -> None:
        """Add calls on the host.

        domains   APIs: "HIP_RUNTIME_API"
        messages  texts of markers
        """
        domain, name, message = encode_texts(domains), encode_texts(names), encode_texts(messages)
        has_message = np.array([text is not None for text in message.texts], np.bool_)[message.index]
        distinct, index = distinct_rows(domain.index, name.index, np.where(has_message, message.index, -1))
        call_names = [
            _call_name(name.texts[n] if m < 0 else message.texts[m], domain.texts[d]) for d, n, m in distinct
        ]
        append_slices(
            self.columns,
            domain.map(_category),
            CodedTexts(call_names, index),
            pids,
            tids,
            start,
            end,
            {"correlation": ("int", self._unique_ids(correlation)), "message": ("text", message)},
        )

    def _add_device_work(self, category: str, work: WorkRecords, device: Int64, args: Mapping[str, Any]) -> None:
        for lane in distinct_rows(device, work.lane)[0]:
            pid, tid = (None if id == ABSENT else id for id in lane)
            self._add_name("process_name", pid, None, f"GPU {pid}")
            self._add_name(
                "thread_name", pid, tid, f"stream {tid}" if (work.stream != ABSENT).all() else f"queue {tid}"
            )
        append_slices(
            self.columns,
            category,
            encode_texts(work.names),
            device,
            work.lane,
            work.start,
            work.end,
            {
                "device": ("int", device),
                "stream": ("int", work.lane),
                "correlation": ("int", self._unique_ids(work.correlation)),
                **args,
            },
        )

    def _unique_ids(self, correlation: Int64) -> Int64:
        # The tool writes 0 for an unknown id.
        return np.where(correlation > 0, correlation + max(self._process_index, 0) * PROCESS_SHIFT, ABSENT)

    def _add_name(self, what: str, pid: Any, tid: Any, name: str) -> None:
        if (what, pid, tid) not in self._named_lanes:
            self._named_lanes.add((what, pid, tid))
            add_name_event(self.columns, what, pid, tid, name)


def _category(domain: str) -> str:
    return next((category for prefix, category in _CATEGORIES if domain.startswith(prefix)), domain.lower())


def _call_name(text: str | None, domain: str | None) -> str | None:
    """Return the name of a call; a marker `step 7` is named as PyTorch marks steps."""
    if text is None or not (domain or "").startswith("MARKER_") or not (match := _STEP.fullmatch(text.strip())):
        return text
    return f"{STEP_PREFIX}{int(match[1])}"


def _coded_triples(along: Sequence[Int64]) -> CodedTexts:
    """Return sizes along x, y, z as JSON, coded because kernels are launched many times with the same sizes."""
    distinct, index = distinct_rows(*along)
    return CodedTexts([None if ABSENT in size else b"[%d,%d,%d]" % size for size in distinct], index)


def _integer_args(values_by_name: Mapping[str, Int64]) -> dict[str, tuple[Any, Int64]]:
    return {
        key.replace("_", " ") if key != "bytes" else key: ("int", values) for key, values in values_by_name.items()
    }


def build_trace(
    recording: RecordingBuilder,
    health: HealthLog,
    environment: Mapping[str, Any],
    step: ReportStep,
    base_ns: int | None = None,
) -> Trace:
    """Return the trace of all collected records; raise TraceError if there are none.

    environment  variables of the process: launchers (torchrun, accelerate, DeepSpeed) put its rank into RANK
    base_ns      epoch time when the machine booted, or None if the file doesn't have it
    """
    metadata: dict[str, Any] = {
        "rocprofiler": ROCPROF,
        "deviceProperties": [recording.devices[index] for index in sorted(recording.devices)],
    }
    rank, world_size = _parse_number(environment.get("RANK")), _parse_number(environment.get("WORLD_SIZE"))
    if rank is not None:
        metadata["distributedInfo"] = {"backend": None, "rank": rank, "world_size": world_size}
    if base_ns is not None:
        metadata["baseTimeNanoseconds"] = base_ns
    trace = assemble(recording.columns, metadata, health, step)
    return replace(trace, producer=ROCPROF, clock="boot" if base_ns is None else "epoch")


def _parse_number(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 10 else None
