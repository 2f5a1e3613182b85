"""How long a step takes with kernels twice as fast, where their device can run them that fast."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from torch_tb_profiler.analyses.schedule.step_spans import recorded_spans
from torch_tb_profiler.analyses.schedule.what_if import parse_target, step_times_without
from torch_tb_profiler.analyses.shared.attainable import roofline_shares
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.trace import Trace

FASTER_SHARE = 0.5
"""Share of its time that a kernel twice as fast saves."""

SHAPE_KEYS = {"Input Dims", "Input dims"}


@derived
def attainable_step_ns(trace: Trace) -> int | None:
    """Return ns of the mean typical step with kernels twice as fast, but none faster than its roofline allows.

    None if all of them can be that fast, as far as is known: a kernel of unknown work counts as one that can.
    """
    if not SHAPE_KEYS & trace.args.keys() or recorded_spans(trace).end.size == 0:
        return None
    try:
        part = parse_target(trace, "device")
    except NotFoundError:
        return None
    items = schedule(trace).items
    share = np.nan_to_num(roofline_shares(trace, items.row[part.items]))
    if (share <= 1 - FASTER_SHARE).all():
        return None
    removed = np.zeros(len(items), np.int64)
    saved = np.minimum(FASTER_SHARE, 1 - share)
    removed[part.items] = (saved * part.device[part.items]).astype(np.int64)
    return int(step_times_without(trace, [replace(part, device=removed)])[0])
