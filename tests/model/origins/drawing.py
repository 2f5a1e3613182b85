"""Draws captures, replays and compiled calls, and reads their origins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from tests.support.traces import read
from torch_tb_profiler.model.origin_records import CaptureSet, OriginRecords, join_captures
from torch_tb_profiler.model.origins.captures import find_captures
from torch_tb_profiler.model.origins.origins import ORIGIN_SOURCES, origins
from torch_tb_profiler.model.trace import Trace

Event = dict[str, Any]
Launch = tuple[str, str, str]
"""An operator, the module that calls it, and its kernel."""

LAYERS: tuple[Launch, ...] = (
    ("aten::native_layer_norm", "Norm_0", "layer_norm_kernel"),
    ("aten::mm", "Linear_0", "gemm"),
    ("aten::mm", "Linear_1", "gemm"),
    ("aten::add", "Block_0", "add_kernel"),
)


def host(category: str, name: str, ts: float, dur: float, **args: Any) -> Event:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


def capture(
    launches: Sequence[Launch] = LAYERS,
    at: float = 0,
    *,
    names: bool = True,
    size: int | None = None,
    forked: bool = False,
) -> list[Event]:
    """Return a capture, as AMD records it, or NVIDIA (without `names` of kernels)."""
    length = 20.0 * len(launches) + 10
    events = [host("cuda_runtime", "hipStreamBeginCapture", at + 1, 1)]
    if size is not None:
        events.append(host("user_annotation", f"capture_{size}_DECODE", at, length))
    if forked:
        events.append(host("cuda_runtime", "hipStreamWaitEvent", at + 3, 1))
    for number, (operator, module, kernel) in enumerate(launches):
        begin = at + 5 + 20 * number
        shape = {"Input Dims": [[size or 1, number]]}
        events += [
            host("python_function", f"nn.Module: {module}", begin, 18),
            host("python_function", f"model.py({10 + number}): forward", begin + 1, 16),
            host("cpu_op", operator, begin + 2, 14, **shape),
            host("cuda_runtime", "hipLaunchKernel", begin + 3, 2, **({"kernel": kernel} if names else {})),
        ]
    return [*events, host("cuda_runtime", "hipStreamEndCapture", at + length - 1, 1)]


def replay(
    kernels: Sequence[str],
    at: float = 10_000,
    *,
    nodes: Sequence[int] | None = None,
    streams: Sequence[int] | None = None,
    around: str | None = None,
) -> list[Event]:
    """Return a graph launch and its kernels, one after the other."""
    correlation = int(at)
    events = [host("cuda_runtime", "hipGraphLaunch", at, 5, correlation=correlation)]
    if around is not None:
        events.append(host("user_annotation", around, at - 1, 10))
    for number, kernel in enumerate(kernels):
        stream = streams[number] if streams else 7
        args: Event = {"device": 0, "stream": stream, "correlation": correlation}
        if nodes is not None:
            args |= {"graph id": 3, "graph node id": nodes[number]}
        begin = at + 10 + 10 * number
        event = host("kernel", kernel, begin, 8, **args)
        events.append(event | {"pid": 0, "tid": stream})
    return events


def captures_of(*captures: list[Event]) -> CaptureSet:
    """Return what is found in one file for each of these captures."""
    return join_captures([find_captures(read(events), f"file {n}") for n, events in enumerate(captures)])


def kernel_origins(events: list[Event], captures: CaptureSet | None = None, **records: Any) -> list[Event]:
    """Return the origins of all rows, in order of time."""
    trace = replace(read(events), origin_records=OriginRecords(captures or CaptureSet(), **records))
    return sorted(origin_rows(trace), key=lambda row: row["start"])


def origin_rows(trace: Trace) -> list[Event]:
    found = origins(trace)
    columns = ("operator", "modules", "lines", "shapes", "nodes", "region", "compile_id", "reason")
    return [
        {
            "name": trace.strings[int(trace.events.name[row])],
            "start": int(trace.events.start[row]),
            "how": ORIGIN_SOURCES[found.how[index]] if found.how[index] >= 0 else None,
            "backward": int(found.backward[index]),
            **{name: found.value(name, index) for name in columns},
        }
        for index, row in enumerate(found.rows.tolist())
    ]


def column(rows: list[Event], name: str) -> list[Any]:
    return [row[name] for row in rows]
