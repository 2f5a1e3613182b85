"""Roles of the threads in files of Ascend's profiler for PyTorch (`torch_npu`), whose device work has no category.

process "Python"           cpu_op, enqueue, dequeue
process "CANN"             runtime calls                 from here on pid << 10 | layer << 5 | device
process "Ascend Hardware"  tasks of streams, by their argument "Task Type"
process "Communication"    "Group 0 Communication": collectives; "Plane 0": the tasks that one consists of
process "Overlap Analysis" derived from all of these: never summed
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.thread_names import process_and_thread_names
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Int64, Trace

CANN, HARDWARE, GROUP, OTHER = range(4)
"""Roles of threads: runtime calls, tasks, collectives, and slices that are shown but not counted."""

_HARDWARE_PROCESS = "Ascend Hardware"
_PROCESS_ROLES = {
    "CANN": CANN,
    _HARDWARE_PROCESS: HARDWARE,
    "Communication": OTHER,
    "HCCL": OTHER,
    "Overlap Analysis": OTHER,
}
_GROUP_THREAD = lazy_regex(r"^Group\b.*Communication$")
_DEVICE_BITS = 31
"""Mask of the bits of a pid that hold the device."""

COPY_TASK = lazy_regex(r"MEMCPY|DMA")
"""Task types that are copies, such as `SDMA` and `PCIE_DMA_SQE`."""

WAIT_TASK = lazy_regex(r"EVENT|NOTIFY|WAIT|RECORD|WRITE_VALUE|PROFILER|PLACE_HOLDER")
"""Task types that are neither computation nor copy, such as `EVENT_WAIT` and `NOTIFY_RECORD_SQE`."""


@derived
def ascend_roles(trace: Trace) -> npt.NDArray[np.int8]:
    """Return int8[threads + 1]: CANN, HARDWARE, GROUP or OTHER of each thread of an Ascend process, else NO_CODE.

    The last cell, for no thread, is NO_CODE; so are all in a file without a process "Ascend Hardware".
    """
    known = process_and_thread_names(trace)
    role = np.full(len(trace.threads) + 1, NO_CODE, np.int8)
    if _HARDWARE_PROCESS not in known.process.values():
        return role
    for code, thread in enumerate(trace.threads):
        process_role = _PROCESS_ROLES.get(known.process.get(thread.pid, ""))
        if process_role is not None:
            communicates = known.process[thread.pid] in ("Communication", "HCCL")
            is_group = communicates and _GROUP_THREAD.match(known.thread.get(code, ""))
            role[code] = GROUP if is_group else process_role
    return role


def is_ascend(trace: Trace) -> bool:
    """Return whether the file was written by Ascend's profiler for PyTorch."""
    return bool((ascend_roles(trace) >= 0).any())


def device_numbers(trace: Trace) -> Int64:
    """Return int64[threads + 1]: the device in the pid of each thread with device work, else ABSENT."""
    number = np.full(len(trace.threads) + 1, ABSENT, np.int64)
    for code in np.flatnonzero(np.isin(ascend_roles(trace), (HARDWARE, GROUP))).tolist():
        pid = trace.threads[code].pid
        if isinstance(pid, int) and 0 <= pid < 2**63:
            number[code] = pid & _DEVICE_BITS
    return number
