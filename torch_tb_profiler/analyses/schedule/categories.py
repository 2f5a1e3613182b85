"""The path by what happens on it, per step."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from torch_tb_profiler.analyses.schedule.host_time import HOST_CATEGORIES, host_pieces
from torch_tb_profiler.analyses.schedule.path import PieceKind, critical_path
from torch_tb_profiler.analyses.schedule.step_ends import recorded_spans
from torch_tb_profiler.model.communication.events import communication_kernels
from torch_tb_profiler.model.kinds import Kind, event_kinds
from torch_tb_profiler.model.schedule.schedule import schedule
from torch_tb_profiler.model.trace import NO_CODE, Int8, Int32, Int64, Trace, derived

DEVICE_CATEGORIES = ("kernel", "communication", "copy")

LATENCIES = {
    PieceKind.LAUNCH_LATENCY: "launch_latency",
    PieceKind.KERNEL_GAP: "kernel_gap",
    PieceKind.STREAM_WAIT: "stream_wait",
    PieceKind.WAKE_UP: "wake_up",
    PieceKind.HAND_OFF: "hand_off",
    PieceKind.BEFORE: "before_recording",
}

CATEGORIES = (*HOST_CATEGORIES, *DEVICE_CATEGORIES, *LATENCIES.values())
"""Of the host, of the device, and between them."""


def group_of(category: str) -> str:
    """host, device or latency."""
    if category in HOST_CATEGORIES:
        return "host"
    return "device" if category in DEVICE_CATEGORIES else "latency"


BOUNDS = ("host", "device", "communication", "latency")
"""What can bound a step: communication is a part of the device's work of its own."""


class PathPieces(msgspec.Struct, frozen=True):
    """The path in order of time, host pieces cut at the borders of slices; columns of length k.

    category    int8   index into CATEGORIES
    row         int32  the slice, item or call, NO_CODE where nothing is recorded
    begin, end  int64  ns on the host's clock
    step        int64  number among the complete steps
    """

    category: Int8
    row: Int32
    begin: Int64
    end: Int64
    step: Int64


@derived
def path_pieces(trace: Trace) -> PathPieces:
    """All pieces of the path with their category and evidence."""
    path, host = critical_path(trace), host_pieces(trace)
    other = np.flatnonzero(path.kind != PieceKind.HOST)
    kind, ref = path.kind[other], path.ref[other]
    table = np.array([CATEGORIES.index(LATENCIES.get(each, "kernel")) for each in PieceKind])
    category, row = table[kind], np.full(len(other), NO_CODE, np.int32)
    of_item = np.isin(kind, (PieceKind.WAKE_UP, PieceKind.HAND_OFF), invert=True)
    row[of_item] = schedule(trace).items.row[ref[of_item]]
    row[kind == PieceKind.WAKE_UP] = ref[kind == PieceKind.WAKE_UP]
    working = kind == PieceKind.DEVICE
    category[working & (event_kinds(trace)[row] != Kind.KERNEL)] = CATEGORIES.index("copy")
    category[working & communication_kernels(trace)[row]] = CATEGORIES.index("communication")
    begin = np.append(host.begin, path.begin[other])
    order = np.argsort(begin, kind="stable")
    return PathPieces(
        category=np.append(host.category, category).astype(np.int8)[order],
        row=np.append(host.row, row).astype(np.int32)[order],
        begin=begin[order],
        end=np.append(host.end, path.end[other])[order],
        step=np.append(host.step, path.step[other])[order],
    )


@derived
def path_times(trace: Trace) -> Int64:
    """int64[complete steps, len(CATEGORIES)]: ns of the path by step and category; a step's sum is the step."""
    pieces, count = path_pieces(trace), recorded_spans(trace).begin.shape[1]
    times = np.zeros((count, len(CATEGORIES)), np.int64)
    np.add.at(times, (pieces.step, pieces.category), pieces.end - pieces.begin)
    return times


@derived
def bound_times(trace: Trace) -> dict[str, int]:
    """ns of the path through all complete steps by BOUNDS."""
    return by_bound(path_times(trace).sum(axis=0).tolist())


def by_bound(times: Sequence[int]) -> dict[str, int]:
    """Times by CATEGORIES as times by BOUNDS."""
    sums = dict.fromkeys(BOUNDS, 0)
    for category, spent in zip(CATEGORIES, times, strict=True):
        sums[category if category in BOUNDS else group_of(category)] += spent
    return sums
