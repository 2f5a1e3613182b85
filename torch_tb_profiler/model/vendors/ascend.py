"""The processes of a file that Ascend's profiler for PyTorch (`torch_npu`) writes: device work has no category.

process "Python"           cpu_op, enqueue, dequeue
process "CANN"             calls of the runtime      from here on pid << 10 | layer << 5 | device
process "Ascend Hardware"  tasks of streams, by their argument "Task Type"
process "Communication"    "Group 0 Communication": collectives; "Plane 0": the tasks that one is made of
process "Overlap Analysis" derived from all these: never summed
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.model.names import process_and_thread_names
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int64, Trace, derived

CANN, HARDWARE, GROUP, OTHER = range(4)
"""Calls of the runtime, tasks, collectives, and what is drawn but counted as nothing."""

_MARK = "Ascend Hardware"
_PROCESSES = {"CANN": CANN, _MARK: HARDWARE, "Communication": OTHER, "HCCL": OTHER, "Overlap Analysis": OTHER}
_GROUP = re.compile(r"^Group\b.*Communication$")
_DEVICE_BITS = 31

COPY, WAIT = re.compile(r"MEMCPY|DMA"), re.compile(r"EVENT|NOTIFY|WAIT|RECORD|WRITE_VALUE|PROFILER|PLACE_HOLDER")
"""What a `Task Type` is that is no computation: `SDMA`, `PCIE_DMA_SQE`; `EVENT_WAIT`, `NOTIFY_RECORD_SQE`."""


@derived
def lanes(trace: Trace) -> npt.NDArray[np.int8]:
    """int8[threads + 1]: CANN, HARDWARE, GROUP or OTHER of each thread of such processes, NO_CODE of every other
    and of no thread; of all in a file without "Ascend Hardware"."""
    known = process_and_thread_names(trace)
    lane = np.full(len(trace.threads) + 1, NO_CODE, np.int8)
    if _MARK not in known.process.values():
        return lane
    for code, thread in enumerate(trace.threads):
        kind = _PROCESSES.get(known.process.get(thread.pid, ""))
        if kind is not None:
            named = known.process[thread.pid] in ("Communication", "HCCL")
            lane[code] = GROUP if named and _GROUP.match(known.thread.get(code, "")) else kind
    return lane


def is_ascend(trace: Trace) -> bool:
    """Whether the file has such processes."""
    return bool((lanes(trace) >= 0).any())


def device_numbers(trace: Trace) -> Int64:
    """int64[threads + 1]: the device in the pid of each thread with device work, ABSENT of every other."""
    number = np.full(len(trace.threads) + 1, ABSENT, np.int64)
    for code in np.flatnonzero(np.isin(lanes(trace), (HARDWARE, GROUP))).tolist():
        pid = trace.threads[code].pid
        if isinstance(pid, int) and 0 <= pid < 2**63:
            number[code] = pid & _DEVICE_BITS
    return number
