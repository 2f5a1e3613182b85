"""What rocprofv3 records, in whatever file, as the events that PyTorch's profiler would have written of it.

    dispatch           kernel on the stream of its GPU; a grid counts work items, here blocks as everywhere
    counter            argument of the kernel that it was counted for
    memory copy        Memcpy HtoD, on the GPU it goes to or comes from
    HIP, HSA call      runtime and driver call, joined with the work it launched by the correlation id
    roctx range        annotation; `step 7` is a step
    RCCL call          the call of a collective on the host

Times are ns since the machine booted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from torch_tb_profiler.base.markers import STEP_PREFIX
from torch_tb_profiler.ingest.kineto.codes import distinct_rows
from torch_tb_profiler.ingest.kineto.columns import EventColumns
from torch_tb_profiler.ingest.slices import CodedTexts, Texts, add_name_event, add_slices, code_texts
from torch_tb_profiler.model.counters.dispatches import COUNTER_PREFIX
from torch_tb_profiler.model.trace import ABSENT, Float64, Int64

PROCESS_SHIFT = 2**40
"""Correlation ids count from 1 in each process: those of the n-th further one are moved by n times this."""

_STEP = re.compile(r"step\s+(\d{1,18})", re.IGNORECASE)

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
class Agent:
    """A processor that the file describes.

    id     as its records name it
    index  among all agents of the machine, as the tool's own pictures number them: "AGENT [4]"
    """

    id: int
    index: int
    gpu: bool
    name: str | None = None
    memory_bytes: int | None = None
    compute_units: int | None = None
    wave_size: int | None = None

    def properties(self) -> dict[str, Any]:
        """As `deviceProperties` lists a device."""
        properties = {
            "name": self.name,
            "totalGlobalMem": self.memory_bytes,
            "numSms": self.compute_units,
            "warpSize": self.wave_size,
        }
        return {"id": self.index, **{key: value for key, value in properties.items() if value}}


class Agents:
    """The agents of one process; records name them by id."""

    def __init__(self, agents: Iterable[Agent]) -> None:
        self._by_id = {agent.id: agent for agent in agents}

    def index(self, ids: Int64) -> Int64:
        """int64[k]: indices of the agents with these ids; an id that is not described stays itself."""
        return self._map(ids, lambda agent, id: agent.index if agent else id)

    def is_gpu(self, ids: Int64) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """bool[k]"""
        return self._map(ids, lambda agent, _: int(agent is not None and agent.gpu)).astype(np.bool_)

    def gpus(self) -> list[dict[str, Any]]:
        """The GPUs, as `deviceProperties` lists devices."""
        gpus = sorted((agent for agent in self._by_id.values() if agent.gpu), key=lambda agent: agent.index)
        return [agent.properties() for agent in gpus]

    def _map(self, ids: Int64, value: Any) -> Int64:
        distinct, where = np.unique(ids, return_inverse=True)
        values = [value(self._by_id.get(id), id) for id in distinct.tolist()]
        mapped: Int64 = np.array(values, np.int64)[where.ravel()]
        return mapped


@dataclass(frozen=True)
class Work:
    """k dispatches or copies of one process; int64[k], ABSENT where not recorded."""

    names: Texts
    start: Int64
    end: Int64
    correlation: Int64
    stream: Int64
    queue: Int64

    @property
    def lane(self) -> Int64:
        """The stream; before ROCm 7 the tool recorded queues only."""
        return np.where(self.stream == ABSENT, self.queue, self.stream)


class Recording:
    """Collects the records of a file, process by process."""

    def __init__(self) -> None:
        self.columns = EventColumns()
        self.devices: dict[int, dict[str, Any]] = {}
        self._processes = -1
        self._agents = Agents(())
        self._named: set[tuple[str, Any, Any]] = set()

    def begin_process(self, pid: int | None, command: str | None, agents: Agents) -> None:
        """What follows is of this process."""
        self._processes += 1
        self._agents = agents
        for properties in agents.gpus():
            self.devices.setdefault(properties["id"], properties)
        if pid is not None and command:
            self._name("process_name", pid, None, command)

    def know(self, agents: Agents) -> None:
        """The agents of the records that follow, where the file describes none."""
        self._agents = agents

    def dispatches(
        self,
        work: Work,
        agent: Int64,
        grid: Sequence[Int64] | None,
        block: Sequence[Int64] | None,
        counters: Mapping[str, Float64] | None = None,
        **more: Int64,
    ) -> None:
        """Kernels; `grid` in work items and `block` along x, y, z; `more` numbers by the name of the argument.

        counters  name -> float64[k], NaN where a kernel lacks it
        """
        shape: dict[str, Any] = {}
        if grid is not None and block is not None:
            blocks = [
                np.where((items > 0) & (size > 0), -(-items // np.maximum(size, 1)), ABSENT)
                for items, size in zip(grid, block, strict=True)
            ]
            shape = {"grid": ("json", _triples(blocks)), "block": ("json", _triples(block))}
        self._device_work(
            "kernel",
            work,
            self._agents.index(agent),
            {
                **shape,
                **_numbers(more),
                **{COUNTER_PREFIX + name: ("float", values) for name, values in (counters or {}).items()},
            },
        )

    def copies(self, work: Work, source: Int64, target: Int64, size: Int64) -> None:
        """Copies between agents; one lies on the GPU that it goes to, else on the one that it comes from."""
        device = self._agents.index(np.where(self._agents.is_gpu(target), target, source))
        names = code_texts(work.names).map(lambda name: _COPIES.get(name, name))
        moved = Work(names, work.start, work.end, work.correlation, work.stream, work.queue)
        self._device_work("gpu_memcpy", moved, device, _numbers({"bytes": size}))

    def calls(
        self,
        domains: Texts,
        names: Texts,
        messages: Texts,
        pids: Int64,
        tids: Int64,
        start: Int64,
        end: Int64,
        correlation: Int64,
    ) -> None:
        """Calls of the host; `domains` ("HIP_RUNTIME_API") say of what, `messages` what a marker says."""
        domain, name, message = code_texts(domains), code_texts(names), code_texts(messages)
        worded = np.array([text is not None for text in message.texts], np.bool_)[message.of]
        distinct, of = distinct_rows(domain.of, name.of, np.where(worded, message.of, -1))
        steps = [_step_name(name.texts[n] if m < 0 else message.texts[m], domain.texts[d]) for d, n, m in distinct]
        add_slices(
            self.columns,
            domain.map(_category),
            CodedTexts(steps, of),
            pids,
            tids,
            start,
            end,
            {"correlation": ("int", self._own(correlation)), "message": ("text", message)},
        )

    def _device_work(self, category: str, work: Work, device: Int64, args: Mapping[str, Any]) -> None:
        for place in distinct_rows(device, work.lane)[0]:
            pid, tid = (None if id == ABSENT else id for id in place)
            self._name("process_name", pid, None, f"GPU {pid}")
            self._name(
                "thread_name", pid, tid, f"stream {tid}" if (work.stream != ABSENT).all() else f"queue {tid}"
            )
        add_slices(
            self.columns,
            category,
            code_texts(work.names),
            device,
            work.lane,
            work.start,
            work.end,
            {
                "device": ("int", device),
                "stream": ("int", work.lane),
                "correlation": ("int", self._own(work.correlation)),
                **args,
            },
        )

    def _own(self, correlation: Int64) -> Int64:
        # 0: the tool does not know it.
        return np.where(correlation > 0, correlation + max(self._processes, 0) * PROCESS_SHIFT, ABSENT)

    def _name(self, what: str, pid: Any, tid: Any, name: str) -> None:
        if (what, pid, tid) not in self._named:
            self._named.add((what, pid, tid))
            add_name_event(self.columns, what, pid, tid, name)


def _category(domain: str) -> str:
    return next((category for prefix, category in _CATEGORIES if domain.startswith(prefix)), domain.lower())


def _step_name(text: str | None, domain: str | None) -> str | None:
    """The name of a call; `step 7` of a marker as PyTorch marks steps."""
    if text is None or not (domain or "").startswith("MARKER_") or not (match := _STEP.fullmatch(text.strip())):
        return text
    return f"{STEP_PREFIX}{int(match[1])}"


def _triples(along: Sequence[Int64]) -> CodedTexts:
    """As JSON; kernels are launched again and again with the same sizes."""
    distinct, of = distinct_rows(*along)
    return CodedTexts([None if ABSENT in size else b"[%d,%d,%d]" % size for size in distinct], of)


def _numbers(named: Mapping[str, Int64]) -> dict[str, tuple[Any, Int64]]:
    return {key.replace("_", " ") if key != "bytes" else key: ("int", values) for key, values in named.items()}
