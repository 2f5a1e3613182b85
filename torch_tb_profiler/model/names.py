"""What metadata events ("M") say of processes and threads."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.model.trace import ABSENT, Trace, derived

GAUDI_BRIDGE_PROCESS = "Bridge Logs"
"""What Gaudi's bridge to PyTorch calls the process that it logs in: that of PyTorch, which has a name already."""


class ProcessAndThreadNames(msgspec.Struct, frozen=True):
    """Names and sort indices, of processes by pid as the file spells it, of threads by thread code."""

    process: dict[int | str | None, str]
    process_order: dict[int | str | None, int]
    thread: dict[int, str]
    thread_order: dict[int, int]


@derived
def process_and_thread_names(trace: Trace) -> ProcessAndThreadNames:
    """All names; where the file gives several, the last."""
    known = ProcessAndThreadNames({}, {}, {}, {})
    rows = np.flatnonzero(trace.events.phase == ord("M")).astype(np.int32)
    codes, dictionary = trace.arg_codes("name", rows)
    for row, text_code, index in zip(
        rows.tolist(), codes.tolist(), trace.arg_int("sort_index", rows).tolist(), strict=True
    ):
        what = trace.strings[trace.events.name[row]] if trace.events.name[row] >= 0 else ""
        code = int(trace.events.thread[row])
        pid = trace.threads[code].pid
        text = dictionary[text_code].strip('"') if text_code >= 0 else ""
        if what == "process_name":
            if text != GAUDI_BRIDGE_PROCESS or pid not in known.process:
                known.process[pid] = text
        elif what == "thread_name":
            known.thread[code] = text.removesuffix(" ()")
        elif what == "process_sort_index" and index != ABSENT:
            known.process_order[pid] = index
        elif what == "thread_sort_index" and index != ABSENT:
            known.thread_order[code] = index
    return known
