"""What the host does while no operator, call or work of a device is recorded."""

from __future__ import annotations

from torch_tb_profiler.analyses.overview.idle import Covering, covering, step_windows
from torch_tb_profiler.analyses.shared.breakdown import role_intervals
from torch_tb_profiler.base.intervals import subtract, total, union
from torch_tb_profiler.model.trace import Trace, derived


@derived
def unrecorded(trace: Trace) -> Covering | None:
    """The frame under which half of that time or more passes, None if there is none."""
    rest = subtract(step_windows(trace), union(*role_intervals(trace).values()))
    found = covering(trace, rest)
    return found[0] if found and 2 * total(found[0].during) >= total(rest) else None
