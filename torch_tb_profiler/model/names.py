"""What metadata events ("M") say of processes and threads."""

from __future__ import annotations

import msgspec
import numpy as np

from torch_tb_profiler.model.trace import ABSENT, Trace, derived


class Names(msgspec.Struct, frozen=True):
    """Names and sort indices, of processes by pid as the file spells it, of threads by thread code."""

    process: dict[int | str | None, str]
    process_order: dict[int | str | None, int]
    thread: dict[int, str]
    thread_order: dict[int, int]


@derived
def names(trace: Trace) -> Names:
    """All names; where the file gives several, the last."""
    found = Names({}, {}, {}, {})
    texts, dictionary = trace.arg_codes("name")
    index = trace.arg_int("sort_index")
    for row in np.flatnonzero(trace.events.phase == ord("M")).tolist():
        what = trace.strings[trace.events.name[row]] if trace.events.name[row] >= 0 else ""
        code = int(trace.events.thread[row])
        pid = trace.threads[code].pid
        text = dictionary[texts[row]].strip('"') if texts[row] >= 0 else ""
        if what == "process_name":
            found.process[pid] = text
        elif what == "thread_name":
            found.thread[code] = text.removesuffix(" ()")
        elif what == "process_sort_index" and index[row] != ABSENT:
            found.process_order[pid] = int(index[row])
        elif what == "thread_sort_index" and index[row] != ABSENT:
            found.thread_order[code] = int(index[row])
    return found
