"""Which tracks belong together: those of a process, of a device, of the profiler itself."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from torch_tb_profiler.analyses.tracks.census import Census
from torch_tb_profiler.analyses.tracks.roles import Role
from torch_tb_profiler.model.devices import device_kind, device_name, devices
from torch_tb_profiler.model.kinds import HOST_KINDS, rows_of_kind
from torch_tb_profiler.model.thread_names import process_and_thread_names
from torch_tb_profiler.model.trace import Trace


class Group(msgspec.Struct, frozen=True):
    """Tracks that belong together: a process of the host, a device, or spans of the profiler itself."""

    kind: Literal["process", "device", "profiler"]
    name: str
    pid: str
    device: int | None


GroupKey = tuple[str, int | str | None]
"""("process", pid), ("device", number) or ("profiler", "")."""


class Grouping:
    """The groups of a trace, by what its threads hold and what the metadata events say of processes."""

    def __init__(self, trace: Trace, census: Census, device_of_thread: dict[int, int | None]) -> None:
        self._threads = trace.threads
        self._slices = census.slices.sum(1)
        self._spans = census.spans.sum(1)
        self._names = process_and_thread_names(trace)
        self._device_kind = device_kind(trace)
        self._device_names = {info.id: info.name for info in devices(trace)}
        self._device_of_thread = device_of_thread
        self._device_of_pid = {
            trace.threads[code].pid: device for code, device in device_of_thread.items() if device is not None
        }
        host_threads = np.unique(trace.events.thread[rows_of_kind(trace, *HOST_KINDS)]).tolist()
        self._host_pids = {trace.threads[code].pid for code in host_threads}

    def key(self, code: int, role: Role) -> GroupKey:
        """The group of what a thread code did in a role."""
        pid = self._threads[code].pid
        if role in (Role.DEVICE, Role.ANNOTATION, Role.SYNC) and self._device_of_thread.get(code) is not None:
            return ("device", self._device_of_thread[code])
        if self._slices[code] and self._spans[code] == self._slices[code]:
            return ("profiler", "")
        if pid in self._device_of_pid and pid not in self._host_pids:
            return ("device", self._device_of_pid[pid])
        if not self._slices[code] and pid not in self._host_pids:
            return ("profiler", "")
        return ("process", pid)

    def group(self, key: GroupKey) -> Group:
        kind, id = key
        if kind == "device":
            assert isinstance(id, int)
            name = self._device_names.get(id)
            return Group("device", device_name(self._device_kind, id) + (f" · {name}" if name else ""), "", id)
        if kind == "profiler":
            return Group("profiler", "Profiler", "", None)
        unnamed = id if isinstance(id, str) and id else f"process {id}"
        return Group("process", self._names.process.get(id) or unnamed, str(id), None)

    def order(self, key: GroupKey, group: Group) -> tuple[int, int, str]:
        """What groups are sorted by: processes, devices, the profiler."""
        kind = ("process", "device", "profiler").index(group.kind)
        index = group.device if group.device is not None else self._names.process_order.get(key[1], 0)
        return kind, index, group.pid
