"""Memory of real traces: curve and peaks against raw events, the live set replayed, the predecessor's tables."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import real_traces
from torch_tb_profiler.model.memory.events import memory_records
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.availability import memory_reason as unavailable
from torch_tb_profiler.views.memory.build import build
from torch_tb_profiler.views.memory.curve import MemoryCurveParams, build_curve
from torch_tb_profiler.views.memory.tables import (
    EventsParams,
    LiveParams,
    MemoryOperatorsParams,
    build_events,
    build_live,
    build_operators,
)

pytestmark = real_traces.MARKS

SET_ASIDE = re.compile(r"^(ProfilerStep#|nn\.Module: ).* \(aten::empty\)$")

NAMES = {0: "CPU", 1: "GPU", 6: "GPU"}


@pytest.fixture(scope="module")
def traces(corpus: Path) -> dict[str, Trace]:
    """Traces with memory events."""
    recorded = {name: trace for name, trace in real_traces.whole_files(corpus) if not unavailable(trace)}
    assert len(recorded) > 25
    return recorded


@cache
def raw(corpus: Path, name: str) -> dict[str, list[dict[str, Any]]]:
    """Return the memory events of a file by device, by time; read by the standard library alone."""
    written = real_traces.written(corpus / "traces" / name)
    assert written is not None, name
    by_device: dict[str, list[dict[str, Any]]] = {}
    for event in sorted(written.memory, key=lambda event: float(event["ts"])):
        args = event["args"]
        id = "" if args["Device Type"] == 0 else f" {args['Device Id']}"
        by_device.setdefault(f"{NAMES[args['Device Type']]}{id}", []).append(args)
    return by_device


def sound(traces: dict[str, Trace]) -> dict[str, Trace]:
    return {name: trace for name, trace in traces.items() if not name.startswith("malformed")}


def test_curve_and_peaks_are_the_raw_events(corpus: Path, traces: dict[str, Trace]) -> None:
    compared = 0
    for name, trace in sound(traces).items():
        payload = build(trace, NoParams())
        recorded = raw(corpus, name)
        assert {device.name for device in payload.devices} == recorded.keys(), name
        for device in payload.devices:
            events = recorded[device.name]
            curve = build_curve(trace, MemoryCurveParams(device.name, points=20_000))
            assert curve.exact and curve.events == len(events) == device.events, name
            if device.relative:
                changes = np.cumsum([args["Bytes"] for args in events])
                assert np.frombuffer(curve.allocated_last).tolist() == changes.tolist(), name
                assert not any("Total Allocated" in args for args in events), name
                continue
            allocated = [args["Total Allocated"] for args in events]
            reserved = [args["Total Reserved"] for args in events]
            assert np.frombuffer(curve.allocated_last).tolist() == allocated, name
            assert np.frombuffer(curve.reserved_last).tolist() == reserved, name
            assert device.peak_allocated is not None and device.peak_reserved is not None
            assert (device.peak_allocated.bytes, device.peak_reserved.bytes) == (max(allocated), max(reserved))
            few = build_curve(trace, MemoryCurveParams(device.name, points=7))
            assert np.nanmax(np.frombuffer(few.allocated_max)) == max(allocated), name
            compared += 1
    assert compared > 30


def test_the_live_set_is_allocations_minus_releases(corpus: Path, traces: dict[str, Trace]) -> None:
    for name, trace in sound(traces).items():
        records = memory_records(trace)
        for code, device in enumerate(records.devices):
            if "Addr" not in trace.args:
                continue
            events = raw(corpus, name)[device.name]
            times = records.time[records.device == code]
            for share in (0.0, 0.1, 0.37, 0.5, 0.9, 1.0):
                at = int(times[int(share * (len(times) - 1))])
                open_: dict[int, int] = {}
                for args, time in zip(events, times.tolist(), strict=True):
                    if time <= at and args["Bytes"] > 0:
                        open_[args["Addr"]] = args["Bytes"]
                    elif time <= at:
                        open_.pop(args["Addr"], None)
                live = build_live(trace, LiveParams(device.name, at=at))
                assert (live.blocks, live.known_bytes) == (len(open_), sum(open_.values())), (name, device.name)
                assert live.older_bytes is not None and live.allocated_bytes is not None
                assert live.known_bytes + live.older_bytes == live.allocated_bytes


def answers(corpus: Path, traces: dict[str, Trace], key: str) -> Any:
    for path in sorted((corpus / "oracle").glob("*.json.gz")):
        answer = json.loads(gzip.decompress(path.read_bytes()))
        for worker in answer["workers"]:
            name = f"{answer['run']}/{worker.get('file')}"
            table = (worker.get("data") or {}).get(key)
            if name in sound(traces) and isinstance(table, dict) and table.get("rows"):
                yield name, traces[name], table


def test_statistics_are_those_of_the_predecessor(corpus: Path, traces: dict[str, Trace]) -> None:
    """All columns but Calls: it does not look into operators without memory events, so calls inside are lost."""
    compared, more_calls = 0, 0
    for name, trace, table in answers(corpus, traces, "memory_stats"):
        for device, rows in table["rows"].items():
            ours = {row.name: row for row in build_operators(trace, MemoryOperatorsParams(device)).rows}
            assert ours.keys() == {row[0] for row in rows}, (name, device)
            for operator, calls, *columns in rows:
                mine = ours[operator]
                sizes = (
                    mine.size_increase_bytes / 1024, mine.self_size_increase_bytes / 1024, mine.allocation_count,
                    mine.self_allocation_count, mine.allocation_size_bytes / 1024,
                    mine.self_allocation_size_bytes / 1024,
                )  # fmt: skip
                assert sizes == pytest.approx(columns, abs=0.006), (name, device, operator)
                assert mine.calls >= calls, (name, device, operator)
                more_calls += mine.calls > calls
                compared += 1
    assert compared > 900 and more_calls < 0.05 * compared


def test_blocks_are_those_of_the_predecessor(corpus: Path, traces: dict[str, Trace]) -> None:
    """It also names steps and modules as parents: "ProfilerStep#6 (aten::empty)"."""
    compared = 0
    for name, trace, table in answers(corpus, traces, "memory_events"):
        for device, rows in table["rows"].items():
            ours = build_events(trace, EventsParams(device)).rows
            mine = Counter((row.operator or "<unknown>", round_up(row.size_bytes / 1024)) for row in ours)
            theirs = Counter(
                (SET_ASIDE.sub("aten::empty", operator), round_up(size)) for operator, size, *_ in rows
            )
            assert mine == theirs, (name, device)
            assert sum(row.released_ns is not None and row.allocated_ns is not None for row in ours) == sum(
                row[4] is not None for row in rows
            )
            compared += len(rows)
    assert compared > 15_000


def round_up(size: float) -> float:
    return round(size, 1)


def test_a_damaged_size_costs_one_event(traces: dict[str, Trace]) -> None:
    (trace,) = (each for name, each in traces.items() if name.startswith("malformed_nan_dev/"))
    payload = build(trace, NoParams())
    gpu = payload.devices[1]
    assert gpu.allocations + gpu.releases < gpu.events == 120
    assert gpu.peak_allocated is not None
