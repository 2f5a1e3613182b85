"""Engines of a Gaudi card: which thread of a file is which engine.

process  /device:HPU:0                   tid 7003 = engine type 7 (TPC) x 1000 + engine 3
  thread 7003  "TPC 3"   Kernel   add_fwd_bf16
  thread 14001 "NIC 1"   Runtime  SendRecv                    its network, recorded as a call
process  4242  "Bridge Logs"    Runtime  LaunchSyncTensorsGraph

Types are numbered as in `backend/profiling/trace_sources/trace_parser.cpp` of Habana's bridge to PyTorch.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.base.patterns import lazy_regex
from torch_tb_profiler.model.thread_names import process_and_thread_names
from torch_tb_profiler.model.trace import NO_CODE, Trace

ENGINE_NAMES = ("MME", "TPC", "DMA", "NIC", "other")
"""Matrix engines, vector cores, copies, network; "other" are those that control, rotate or decode."""

MME, TPC, DMA, NIC, OTHER = range(len(ENGINE_NAMES))

_CARD_PROCESS = lazy_regex(r"^/device:HPU:\d+$")
_ENGINE = lazy_regex(r"MME|TPC|DMA|NIC", re.IGNORECASE)
_ENGINE_BY_TYPE = {
    **dict.fromkeys((0, 3, 4, 5), DMA),
    **dict.fromkeys((1, 6), MME),
    **dict.fromkeys((2, 7), TPC),
    **dict.fromkeys((14, 15, 16, 17), NIC),
}
_ENGINES_PER_TYPE = 1000
"""Where threads have no names, their number is 1000 x type + engine."""


@derived
def thread_engines(trace: Trace) -> npt.NDArray[np.int8]:
    """Return int8[threads + 1]: index into ENGINE_NAMES of each thread of a card, else NO_CODE.

    The last cell, for no thread, is NO_CODE.
    """
    known = process_and_thread_names(trace)
    cards = {pid for pid, name in known.process.items() if _CARD_PROCESS.match(name)}
    engine = np.full(len(trace.threads) + 1, NO_CODE, np.int8)
    for code, thread in enumerate(trace.threads):
        if thread.pid in cards:
            engine[code] = _find_engine(known.thread.get(code, ""), thread.tid)
    return engine


def _find_engine(name: str, tid: int | str | None) -> int:
    """Return the engine by the name of the thread, else by the number of its type."""
    if match := _ENGINE.search(name):
        return ENGINE_NAMES.index(match[0].upper())
    return _ENGINE_BY_TYPE.get(tid // _ENGINES_PER_TYPE, OTHER) if isinstance(tid, int) else OTHER
