"""The names and sort order of processes and threads, from metadata events ("M")."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.trace import ABSENT, Trace

GAUDI_BRIDGE_PROCESS = "Bridge Logs"
"""The second name that Gaudi's PyTorch bridge gives to the PyTorch process; the first one is better."""


class ProcessAndThreadNames(msgspec.Struct, frozen=True):
    """Names and sort indices: of processes by pid as in the file, of threads by thread code."""

    process: dict[int | str | None, str]
    process_order: dict[int | str | None, int]
    thread: dict[int, str]
    thread_order: dict[int, int]


@derived
def process_and_thread_names(trace: Trace) -> ProcessAndThreadNames:
    """Return all recorded names; of several for one process or thread, the last."""
    names = ProcessAndThreadNames({}, {}, {}, {})
    rows = np.flatnonzero(trace.events.phase == ord("M")).astype(np.int32)
    codes, dictionary = trace.arg_codes("name", rows)
    for row, text_code, index in zip(
        rows.tolist(), codes.tolist(), trace.arg_int("sort_index", rows).tolist(), strict=True
    ):
        key = trace.strings[trace.events.name[row]] if trace.events.name[row] >= 0 else ""
        code = int(trace.events.thread[row])
        pid = trace.threads[code].pid
        text = dictionary[text_code].strip('"') if text_code >= 0 else ""
        if key == "process_name":
            if text != GAUDI_BRIDGE_PROCESS or pid not in names.process:
                names.process[pid] = text
        elif key == "thread_name":
            names.thread[code] = text.removesuffix(" ()")
        elif key == "process_sort_index" and index != ABSENT:
            names.process_order[pid] = index
        elif key == "thread_sort_index" and index != ABSENT:
            names.thread_order[code] = index
    return names
