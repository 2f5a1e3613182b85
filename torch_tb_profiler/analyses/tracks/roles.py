"""In which role an event counts on its thread, and what its threads and streams mostly do.

What one (pid, tid) pair did is split by role, so that spans that run beside each other by design (an annotation
over kernels) are not mistaken for overlap.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.analyses.tracks.events import INSTANT_PHASES, of_phase
from torch_tb_profiler.base.markers import is_step
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.kinds import DEVICE_KINDS, Kind, event_ends, event_kinds, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Trace, name_mask
from torch_tb_profiler.model.vendors.gaudi import thread_engines


class Role(IntEnum):
    """What an event is to its (pid, tid) pair."""

    HOST = 0
    DEVICE = 1
    ANNOTATION = 2
    SYNC = 3
    INSTANT = 4
    TRAINER = 5


_ROLE_OF_KIND = np.zeros(len(Kind), np.int8)
_ROLE_OF_KIND[list(DEVICE_KINDS)] = Role.DEVICE
_ROLE_OF_KIND[[Kind.DEVICE_ANNOTATION, Kind.METRICS]] = Role.ANNOTATION
_ROLE_OF_KIND[Kind.SYNC] = Role.SYNC
_ROLE_OF_KIND[Kind.TRAINER] = Role.TRAINER


@derived
def roles(trace: Trace) -> npt.NDArray[np.int8]:
    """int8[n]: the Role of every slice or instant (HOST for what is neither)."""
    role: npt.NDArray[np.int8] = _ROLE_OF_KIND[event_kinds(trace)]
    on_engine = (thread_engines(trace) >= 0)[trace.events.thread]
    role[on_engine & (role == Role.HOST)] = Role.DEVICE
    role[of_phase(trace, INSTANT_PHASES)] = Role.INSTANT
    return role


def stream_roles(trace: Trace) -> list[str]:
    """By thread code, what a stream spends most of its time on: "compute", "communication" or "copy"."""
    rows = rows_of_kind(trace, *DEVICE_KINDS)
    work = np.where(event_kinds(trace)[rows] == Kind.KERNEL, 0, 2)
    work[is_communication_kernel(trace)[rows]] = 1
    time = (event_ends(trace)[rows] - trace.events.start[rows]).astype(np.float64) + 1e-3  # empty ones count too
    key = trace.events.thread[rows].astype(np.int64) * 3 + work
    spent = np.bincount(key, time, minlength=3 * len(trace.threads)).reshape(-1, 3)
    return [("compute", "communication", "copy")[most] for most in spent.argmax(1).tolist()]


def thread_roles(trace: Trace) -> tuple[int, set[int]]:
    """(code of the main thread or NO_CODE, codes of the threads that run the backward pass).

    The main thread is the one with the most steps, else with the most operators.
    """
    operators = rows_of_kind(trace, Kind.CPU_OP, Kind.ANNOTATION)
    threads = trace.events.thread[operators]
    if len(threads) == 0:
        return NO_CODE, set()
    steps = name_mask(trace.strings, is_step)[trace.events.name[operators]]
    main = int(np.bincount(threads[steps] if steps.any() else threads).argmax())
    forward_thread = trace.arg_int("Fwd thread id", operators)
    backward = set(np.unique(threads[(forward_thread != ABSENT) & (forward_thread != 0)]).tolist())
    return main, backward - {main}
