"""Which device work a view is asked about: of a step, a device, a stream."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.analyses.shared.grouping import in_step, launch_times
from torch_tb_profiler.model.devices import device_ids, stream_ids
from torch_tb_profiler.model.trace import Int32, Trace


def chosen_work(
    trace: Trace, rows: Int32, step: str = "", device: int | None = None, stream: int | None = None
) -> Int32:
    """The rows among `rows` that were launched in the step and ran on the device and stream; "" and None are all.

    Raises NotFoundError for an unknown step.
    """
    keep = np.ones(len(rows), np.bool_)
    if step:
        keep &= in_step(trace, launch_times(trace, rows), step)
    if device is not None:
        keep &= device_ids(trace)[rows] == device
    if stream is not None:
        keep &= stream_ids(trace)[rows] == stream
    chosen: Int32 = rows[keep]
    return chosen
