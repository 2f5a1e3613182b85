"""Every real trace on the timeline: drawn = parsed, and every answer holds what the file says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import real_traces
from tests.support.views import ask, column
from torch_tb_profiler.base.intervals import merge, total
from torch_tb_profiler.model.kinds import DEVICE_KINDS, event_ends, rows_of_kind
from torch_tb_profiler.model.trace import ABSENT, Trace

pytestmark = real_traces.MARKS


@pytest.fixture(scope="module")
def traces(corpus: Path) -> list[tuple[str, Trace]]:
    found = list(real_traces.recordings(corpus))
    assert len(found) > 90
    return found


def test_every_event_of_every_file_is_on_its_track(traces: list[tuple[str, Trace]]) -> None:
    for name, trace in traces:
        payload = ask(trace, "trace", python=True)
        events, counts = trace.events, payload["counts"]
        slices = (events.phase == ord("X")) | ((events.phase == ord("B")) & (events.duration != ABSENT))
        assert counts["slices"] == int(slices.sum()) == sum(track["slices"] for track in payload["tracks"]), name
        per_thread: dict[str, int] = {}
        for track in payload["tracks"]:
            if track["slices"]:
                per_thread[track["thread"]] = per_thread.get(track["thread"], 0) + track["slices"]
        spelled = [f"{thread.pid}/{thread.tid}" for thread in trace.threads]
        parsed = np.bincount(events.thread[slices], minlength=len(spelled)).tolist()
        expected: dict[str, int] = {}
        for thread, count in zip(spelled, parsed, strict=True):
            if count:
                expected[thread] = expected.get(thread, 0) + count
        assert per_thread == expected, name
        # What the tiles of the whole trace hold is what the tracks say, at a coarse and at a fine zoom.
        shown = {
            track["id"]: track["slices"] - track["untimed"] + track["instants"]
            for track in payload["tracks"]
            if track["kind"] not in ("steps", "counter", "blame")
        }
        for width in (10, 8192):
            assert count_reachable(trace, width) == {id: count for id, count in shown.items() if count}, name


def count_reachable(trace: Trace, width: int) -> dict[int, int]:
    """Return the slices and instants per track, from a tile that spans all times."""
    tile = ask(trace, "trace/tile", begin=-(2**61), end=2**61, width=width, python=True)
    counts, found = column(tile, "count", "<u4"), dict.fromkeys(tile["lane_track"], 0)
    for track, low, high in zip(tile["lane_track"], tile["lane_first"][:-1], tile["lane_first"][1:], strict=True):
        found[track] += sum(counts[low:high])
    return found


def test_busy_columns_are_exact_and_devices_are_busy_as_their_work(traces: list[tuple[str, Trace]]) -> None:
    for name, trace in traces:
        payload = ask(trace, "trace")
        begin, end = payload["begin_ns"], payload["end_ns"]
        selection = ask(trace, "trace/selection", begin=begin, end=end)
        rows = rows_of_kind(trace, *DEVICE_KINDS)
        device = {
            track["id"]: track["device"]
            for track in payload["tracks"]
            if track["role"] in ("compute", "communication", "copy")
        }
        for each in selection["devices"]:
            mine = rows[np.isin(trace.events.thread[rows], threads_of(trace, payload, device, each["device"]))]
            start, finish = (
                np.clip(trace.events.start[mine], begin, end),
                np.clip(event_ends(trace)[mine], begin, end),
            )
            assert each["busy_ns"] == total(merge(start, finish)), name
            assert each["busy_ns"] + each["idle_ns"] == end - begin, name
            assert each["overlap_ns"] <= min(each["compute_ns"], each["communication_ns"]), name
        assert sum(row["count"] for row in selection["rows"]) == selection["slices"], name
        ask(trace, "trace/counters", begin=begin, end=end)
        tile = ask(trace, "trace/tile", begin=begin, end=end)
        assert max(column(tile, "busy", "<i4"), default=0) <= 2**30, name


def threads_of(trace: Trace, payload: Any, device: dict[int, int], wanted: int) -> list[int]:
    names = {track["thread"] for track in payload["tracks"] if device.get(track["id"]) == wanted}
    return [code for code, thread in enumerate(trace.threads) if f"{thread.pid}/{thread.tid}" in names]


def test_any_event_can_be_asked_for(traces: list[tuple[str, Trace]]) -> None:
    rng = np.random.default_rng(5)
    for name, trace in traces:
        for row in {0, len(trace) - 1, *rng.integers(0, len(trace), 8).tolist()}:
            event = ask(trace, "trace/event", event=row)
            assert event["event"] == row, name
            flows = ask(trace, "trace/flows", event=row)
            assert len(flows["edges"]) <= flows["total"], name
