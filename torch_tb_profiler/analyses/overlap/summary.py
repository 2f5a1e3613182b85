"""The iterations of one rank: how long each stream is busy, what overlaps, and which totals the recorder wrote.

compute        [forward     ][backward        ]
allreduce                          [all_reduce       ]
                                   |- overlap ---|--|  exposed
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from torch_tb_profiler.analyses.shared.payload_values import float64_bytes
from torch_tb_profiler.base.intervals import (
    NO_INTERVALS,
    Intervals,
    covered_time,
    intersect,
    subtract,
    union,
)
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.iterations import Iterations, iterations, stream_ranges
from torch_tb_profiler.model.kinds import event_ends, event_intervals
from torch_tb_profiler.model.ranks import trace_rank
from torch_tb_profiler.model.rocm_smi import UNITS, own_gpu, parse_rocm_smi, read_quantities
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Bool, Float64, Int32, Int64, Trace, distinct_codes

COMPUTE = "compute"
"""The stream of the computation, as the recorder names it."""

STREAM = "stream "
"""Prefix of a total that is the busy time of the stream named after it."""

COLLECTIVE_STREAMS = ("allreduce", "reducescatter", "allgather")

_ALL_GATHER = "all_gather"
"""Prefix of the functions that gather; they run on a stream that also has other work."""

_RECORDED_NAMES = {
    "compute_comm": "overlap",
    "compute_allreduce": "allreduce_overlap",
    "compute_reducescatter": "reducescatter_overlap",
    "idle": "idle",
}
"""A total of the recorder -> its name here."""


class RankOverlap(msgspec.Struct, frozen=True):
    """The iterations of one rank: `columns` name -> float64[k] of its k iterations, as bytes; times in ns.

    step, begin, total   global step, its start in the trace, its recorded length
    loss, lr, grad_norm  NaN if unknown
    clock, power, temperature, memory   readings of `rocm-smi` of the rank's GPU in MHz, W, °C, %; NaN if unknown
    gpus, gpu            how many GPUs `rocm-smi` listed (0 without its output), the rank's own (NaN if unknown)
    compute, allreduce, reducescatter, allgather   how long the stream (or the gathers) is busy
    <collective>_overlap, <collective>_exposed     ... while the computation runs, and while it doesn't
    overlap              computation while an all-reduce or a reduce-scatter runs: what the recorder counts
    hidden, exposed      any of the three collectives while the computation runs, and while it doesn't
    idle                 no stream is busy, to the iteration's end
    idle_before_last     ... without the tail after the last range; all of it if there is no other
    folded               ranges that start while an earlier one of their stream runs, or as it ends
    stream <name>        how long each stream is busy
    recorded ...         the recorder's own total (`_read_recorded_times`)
    """

    rank: int | None
    columns: Mapping[str, bytes]

    def table(self) -> dict[str, Float64]:
        """Return the columns as arrays (read-only)."""
        return {name: np.frombuffer(values, "<f8") for name, values in self.columns.items()}


@derived
def summarize_overlap(trace: Trace) -> RankOverlap:
    """Summarize the iterations of a trace whose clock is `iteration`."""
    iteration, rows = iterations(trace), stream_ranges(trace)
    step = trace.arg_int("global_step", iteration.row)
    columns: dict[str, Int64 | Float64] = {
        "step": np.where(step == ABSENT, np.arange(len(step)), step),
        "begin": iteration.starts,
        "total": iteration.totals,
        **{name: trace.arg_float(name, iteration.row) for name in ("loss", "lr", "grad_norm")},
        **_read_gpu_metrics(trace, iteration.row),
        "folded": sum(
            (_count_overlapping(trace, ranges, iteration.begins) for ranges in rows.values()),
            np.zeros(len(step), np.int64),
        ),
        **_sum_busy_times(trace, iteration, rows),
        **_sum_idle_times(trace, iteration, rows),
        **{f"recorded {name}": values for name, values in _read_recorded_times(trace, iteration.row).items()},
    }
    return RankOverlap(trace_rank(trace), {name: float64_bytes(values) for name, values in columns.items()})


def _read_gpu_metrics(trace: Trace, rows: Int32) -> dict[str, Float64]:
    """Return what `rocm-smi` read of the rank's GPU after each of the iterations in `rows`."""
    codes, texts = trace.arg_codes("rocm_smi_output", rows)
    info = trace.metadata.get("distributedInfo")
    world_size = info.get("world_size") if isinstance(info, Mapping) else None
    columns = {name: np.full(len(texts) + 1, np.nan) for name in UNITS}
    gpus, own = np.zeros(len(texts) + 1), np.full(len(texts) + 1, np.nan)
    for code in distinct_codes(codes):
        readings = parse_rocm_smi(texts[code])
        listed = {each.gpu for each in readings}
        gpus[code] = len(listed)
        gpu = own_gpu(listed, trace_rank(trace), world_size)
        if gpu is not None:
            own[code] = gpu
            for name, value in read_quantities(readings, gpu).items():
                columns[name][code] = value
    return {"gpus": gpus[codes], "gpu": own[codes], **{name: values[codes] for name, values in columns.items()}}


def _sum_busy_times(trace: Trace, iteration: Iterations, rows: Mapping[str, Int32]) -> dict[str, Int64]:
    bounds = np.append(iteration.begins[1:], np.iinfo(np.int64).max)

    def per_iteration(busy: Intervals) -> Int64:
        return covered_time(busy, iteration.begins, bounds)

    streams = {name: event_intervals(trace, ranges) for name, ranges in rows.items()}
    compute = streams.get(COMPUTE, NO_INTERVALS)
    communication = {
        "allreduce": streams.get("allreduce", NO_INTERVALS),
        "reducescatter": streams.get("reducescatter", NO_INTERVALS),
        "allgather": event_intervals(trace, _find_gathers(trace, rows)),
    }
    reductions = union(communication["allreduce"], communication["reducescatter"])
    collectives = union(*communication.values())
    times = {f"{STREAM}{name}": per_iteration(busy) for name, busy in streams.items()}
    times[COMPUTE] = per_iteration(compute)
    for name, busy in communication.items():
        times[name] = per_iteration(busy)
        times[f"{name}_overlap"] = per_iteration(intersect(busy, compute))
        times[f"{name}_exposed"] = per_iteration(subtract(busy, compute))
    times["overlap"] = per_iteration(intersect(reductions, compute))
    times["hidden"] = per_iteration(intersect(collectives, compute))
    times["exposed"] = per_iteration(subtract(collectives, compute))
    return times


def _sum_idle_times(trace: Trace, iteration: Iterations, rows: Mapping[str, Int32]) -> dict[str, Int64]:
    active = union(*(event_intervals(trace, ranges) for ranges in rows.values()))
    last = _find_last_ends(trace, rows, iteration)
    gaps = last - iteration.starts - covered_time(active, iteration.starts, last)
    idle = iteration.totals - covered_time(active, iteration.starts, iteration.starts + iteration.totals)
    bounds = np.append(iteration.begins[1:], np.iinfo(np.int64).max)
    rest = np.maximum(iteration.totals - covered_time(active, iteration.begins, bounds), 0)
    return {"idle": idle, "idle_before_last": np.where(gaps > 0, gaps, rest)}


def _find_gathers(trace: Trace, rows: Mapping[str, Int32]) -> Int32:
    """Return the ranges whose function gathers, of all streams but the computation's."""
    chosen = np.concatenate([np.empty(0, np.int32), *(ranges for name, ranges in rows.items() if name != COMPUTE)])
    codes, texts = trace.arg_codes("function", chosen)
    gathers: Bool = np.array([*(text.startswith(_ALL_GATHER) for text in texts), False])
    gathering: Int32 = chosen[gathers[codes]].astype(np.int32)
    return gathering


def _find_last_ends(trace: Trace, rows: Mapping[str, Int32], iteration: Iterations) -> Int64:
    """Return int64[k]: when the last range of each iteration ends; its start if it has none."""
    last: Int64 = iteration.starts.copy()
    for ranges in rows.values():
        index = np.searchsorted(iteration.begins, trace.events.start[ranges], "right") - 1
        np.maximum.at(last, index, event_ends(trace)[ranges])
    return last


def _count_overlapping(trace: Trace, rows: Int32, begins: Int64) -> Int64:
    """Return int64[k]: how many ranges of one stream start while an earlier one runs, or just as it ends."""
    start, finish = trace.events.start[rows], event_ends(trace)[rows]
    order = np.lexsort((finish, start))
    start, finish = start[order], finish[order]
    reach = np.maximum.accumulate(finish)
    inside = start[1:] <= reach[:-1]
    index = np.searchsorted(begins, start[1:][inside], "right") - 1
    return np.bincount(index, minlength=len(begins)).astype(np.int64)


def _read_recorded_times(trace: Trace, rows: Int32) -> dict[str, Float64]:
    """Return the recorder's totals of the iterations in `rows`: name -> float64[k] ns; NaN if it wrote none.

    The recorder leaves out what is 0, so a name that is missing beside others counts as 0.
    """
    streams, present = _read_recorded_totals(trace, "per_stream_ms", rows)
    overlaps, _ = _read_recorded_totals(trace, "overlap_ms", rows)
    named = {f"{STREAM}{name}": values for name, values in streams.items()}
    zeros = np.zeros(len(rows))
    named |= {name: overlaps.get(recorded, zeros) for recorded, name in _RECORDED_NAMES.items()}
    return {name: np.where(present, values, np.nan) for name, values in named.items()}


def _read_recorded_totals(trace: Trace, key: str, rows: Int32) -> tuple[dict[str, Float64], Bool]:
    codes, texts = trace.arg_codes(key, rows)
    totals = [msgspec.json.decode(text, type=dict[str, float]) for text in texts]
    names = sorted({name for total in totals for name in total})
    table = {name: np.array([*(total.get(name, 0.0) for total in totals), np.nan]) * 1e6 for name in names}
    return {name: values[codes] for name, values in table.items()}, codes != NO_CODE
