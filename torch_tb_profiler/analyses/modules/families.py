"""What sort of device work each module launched: time by family of kernels."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.calls.links import device_links
from torch_tb_profiler.model.families import family_codes
from torch_tb_profiler.model.kernels.families import FAMILIES
from torch_tb_profiler.model.kinds import event_ends
from torch_tb_profiler.model.modules.modules import Modules
from torch_tb_profiler.model.trace import Int64, Trace


def family_times(trace: Trace, model: Modules) -> Int64:
    """int64[m, f] ns: device time of each place by family, in order of FAMILIES, without the places inside.

    Forward and backward; a row sums to `forward_self + backward_self` of `module_times`.
    """
    rows = device_links(trace).rows
    rows = rows[model.code[rows] >= 0]
    times = np.zeros((len(model.names), len(FAMILIES)), np.int64)
    np.add.at(times, (model.code[rows], family_codes(trace)[rows]), (event_ends(trace) - trace.events.start)[rows])
    return times


def by_family(times: Int64) -> dict[str, int]:
    """Of one place or sum of places, int64[f]: the families that took time, largest first."""
    order = np.argsort(-times, kind="stable")
    return {FAMILIES[at]: int(times[at]) for at in order.tolist() if times[at] > 0}
