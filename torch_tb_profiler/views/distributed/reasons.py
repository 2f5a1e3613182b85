"""Why fields of the distributed view are null."""

from __future__ import annotations

import numpy as np

from torch_tb_profiler.model.trace import ABSENT
from torch_tb_profiler.views.distributed.ranks import Party

_ALONE = "there is only one rank here; with the traces of the others this can be told"
_NOT_COMPARED = "no other rank recorded the same operation alike, with a time"


def reasons(who: Party) -> dict[str, str]:
    """Field -> why it is null, where some are."""
    table, arrivals = who.found.job.table, who.found.arrivals
    alone = len(who.sources) < 2
    found: dict[str, str] = {}
    if alone or not who.found.split.compared.all():
        told = _ALONE if alone else _NOT_COMPARED
        found.update(dict.fromkeys(("transfer_ns", "synchronizing_ns", "waiting_ns"), told))
        found["lower_bound"] = "the time includes waiting for other ranks, so the bandwidth is at least this"
    if alone or (arrivals.skew == ABSENT).any():
        told = _ALONE if alone else "too few of its ranks are on one clock"
        found.update(dict.fromkeys(("skew_ns", "mean_skew_ns", "max_skew_ns", "late_ns", "start_skew_ns"), told))
        found.update(dict.fromkeys(("late_worker", "late_rank", "heat_map"), told))
    elif (arrivals.last < 0).any():
        found["late_worker"] = found["late_rank"] = "the arrivals lie closer together than the error of the clocks"
    if (table.message == ABSENT).any() or np.isnan(table.bus).any():
        found["bytes"] = found["message_bytes"] = (
            "the trace does not record the size (`record_shapes=True`, or a newer PyTorch)"
        )
        found["out_bytes"] = found["bytes"]
        found["algorithm_bandwidth"] = found["bus_bandwidth"] = (
            "size, number of ranks or the device's time is not recorded, or the collective moves no data"
        )
    if (table.start == ABSENT).any():
        found["latency_ns"] = found["exposed_ns"] = "the operation's kernel is not in the trace"
    if any(group.ranks is None for group in who.found.job.groups):
        found["ranks"] = (
            "the traces do not say which ranks are in the process group; "
            "operations of several groups may appear as one"
        )
    if any(group.name is None for group in who.found.job.groups):
        found["name"] = "the trace does not say in which process group it communicates"
    if any(not source.summary.recorded_steps for source in who.sources):
        found["steps"] = "no `ProfilerStep` is recorded (call `prof.step()`): a whole recording is one step"
    if any(not source.summary.by_kernels for source in who.sources):
        found["computation_ns"] = "without kernels, computation is the host's CPU Exec"
    return found
