"""Files that are too large, or made to break a reader: each stops at a limit, with its reason, in bounded time."""

from __future__ import annotations

import gzip
import io
import json
import sys
import threading
from types import FrameType

import numpy as np
import pytest

from tests.support.traces import document
from torch_tb_profiler.base.errors import TooLargeError, TraceError
from torch_tb_profiler.ingest import read_trace, source
from torch_tb_profiler.ingest.kineto import columns
from torch_tb_profiler.ingest.kineto import document as layout
from torch_tb_profiler.ingest.kineto.part import PartWindow
from torch_tb_profiler.ingest.kineto.read import find_start, read_part
from torch_tb_profiler.model.trace import Trace

EVENT = b'{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":5}'
MIB = 1 << 20


def read(content: bytes, limit: int = 0) -> Trace:
    return read_trace(io.BytesIO(content), size=len(content), limit=limit)


def kinds(trace: Trace) -> set[str]:
    return {note.kind for note in trace.health}


class CountingStream(io.BytesIO):
    """Counts what is read of it."""

    read_bytes = 0

    def read(self, size: int | None = -1, /) -> bytes:
        piece = super().read(size)
        self.read_bytes += len(piece)
        return piece


def test_a_plain_file_beyond_the_limit_is_refused_before_it_is_read() -> None:
    content = b'{"traceEvents":[' + EVENT + b"," * MIB + b"]}"
    stream = CountingStream(content)
    with pytest.raises(TooLargeError, match="it holds 0.0 GiB of JSON"):
        read_trace(stream, size=len(content), limit=MIB)
    assert stream.read_bytes < 1000
    assert len(read(content, limit=2 * MIB)) == 1


def test_a_compressed_file_over_the_limit_is_refused_by_its_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first part: nobody waits until the last byte to hear that it was too much."""
    monkeypatch.setattr(source, "_ESTIMATE_AFTER_BYTES", MIB)
    packed = gzip.compress(
        b'{"traceEvents":[' + b",".join([EVENT[:-1] + b',"i":%d}' % i for i in range(400_000)]) + b"]}", 1
    )
    stream = CountingStream(packed)
    with pytest.raises(TooLargeError, match="it unpacks to about"):
        read_trace(stream, size=len(packed), limit=8 * MIB)
    assert stream.read_bytes < len(packed) // 4
    assert len(read(packed, limit=64 * MIB)) == 400_000


@pytest.mark.parametrize(("share", "words"), [(1.15, "it holds more than"), (1.4, "it unpacks to about")])
def test_the_ratio_so_far_is_an_estimate(share: float, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be off by a quarter: a file that seems a little too large is read on."""
    monkeypatch.setattr(source, "_ESTIMATE_AFTER_BYTES", MIB)
    content = b'{"traceEvents":[' + b",".join([EVENT[:-1] + b',"i":%d}' % i for i in range(100_000)]) + b"]}"
    packed = gzip.compress(content, 1)
    with pytest.raises(TooLargeError, match=words):
        read_trace(io.BytesIO(packed), size=len(packed), limit=int(len(content) / share))


def test_a_compressed_file_of_unknown_size_stops_at_the_limit() -> None:
    packed = gzip.compress(b'{"traceEvents":[' + b",".join([EVENT] * 100_000) + b"]}", 1)
    with pytest.raises(TooLargeError, match="it holds more than"):
        read_trace(io.BytesIO(packed), limit=2 * MIB)


def test_a_gzip_bomb_stops_at_the_limit_in_little_memory() -> None:
    """A megabyte that unpacks to a gigabyte of blanks inside the list of events."""
    packed = gzip.compress(b'{"traceEvents":[' + EVENT + b"," + bytes(64 * MIB), 9)
    bomb = packed + gzip.compress(bytes(64 * MIB), 9) * 15
    assert len(bomb) < 2 * MIB
    stream = CountingStream(bomb)
    with pytest.raises(TooLargeError):
        read_trace(stream, size=len(bomb), limit=256 * MIB)
    assert stream.read_bytes < len(bomb) // 2


@pytest.mark.parametrize("filler", [b" ", b"\0", b"a", b"{", b"[", b"1,"])
def test_an_endless_event_ends_the_file(filler: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_MAX_EVENT_BYTES", 4 * MIB)
    trace = read(b'{"traceEvents":[' + EVENT + b"," + filler * (8 * MIB // len(filler)) + b"]}")
    assert len(trace) == 1
    assert "endless_event" in kinds(trace)


def test_deep_nesting_costs_only_its_event() -> None:
    deep = b'{"ph":"X","name":"deep","ts":2,"args":{"x":' + b"[" * 5000 + b"]" * 5000 + b"}}"
    trace = read(b'{"traceEvents":[' + b",".join([EVENT, deep, EVENT]) + b"]}")
    assert len(trace) >= 2
    assert [trace.strings[code] for code in trace.events.name[[0, -1]]] == ["a", "a"]


def test_arguments_beyond_the_key_limit_are_counted_and_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_ARGUMENT_KEYS", 100)
    events = [{"ph": "X", "cat": "c", "name": "n", "ts": i, "dur": 1, "args": {f"k{i}": i}} for i in range(300)]
    trace = read(document(events))
    assert len(trace) == 300
    assert len(trace.args) == 100
    assert next(note.count for note in trace.health if note.kind == "too_many_arguments") == 200


def test_events_with_unusual_spelling_are_cut() -> None:
    """Twenty megabytes whose events begin with a key that no profiler writes first, objects nested in them."""
    event = b'{"zz":[{"a":1},{"b":2}],"ph":"X","cat":"c","name":"n","pid":1,"tid":1,"ts":1,"dur":5}'
    count = 20 * MIB // len(event)
    assert len(read(b'{"traceEvents":[' + b",".join([event] * count) + b"]}")) == count


def test_signals_of_a_sampling_profiler_change_nothing() -> None:
    """Another thread that keeps frames of this one alive, as the workers of a cluster have: nothing may depend on
    the moment at which a block's values go."""
    plain = {"ph": "X", "cat": "c", "name": "n", "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    content = document([{**plain, "args": {"Input Dims": [[i % 7, 2], [3]]}} for i in range(60_000)])
    frames: list[object] = []
    stop = threading.Event()

    def sample() -> None:
        while not stop.wait(0.0005):
            frames.append([_and_callers(frame) for frame in sys._current_frames().values()])
            del frames[:-20]

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        assert len(read(content)) == 60_000
    finally:
        stop.set()
        sampler.join()


def _and_callers(frame: FrameType | None) -> list[dict[str, object]]:
    found = []
    while frame is not None:
        found.append(dict(frame.f_locals))
        frame = frame.f_back
    return found


def test_an_endless_head_is_refused() -> None:
    with pytest.raises(TraceError):
        read(b'{"x":"' + b"a" * (80 * MIB))


# ---- parts ----------------------------------------------------------------------------------------------


def sample() -> tuple[bytes, Trace]:
    """Return slices of two categories, a flow, begin and end, names, a marker and an absurd time."""
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "ts": 0, "args": {"name": "python"}},
        {"ph": "i", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "ts": 50.0, "s": "g"},
        {"ph": "X", "cat": "cpu_op", "name": "lost", "pid": 1, "tid": 1, "ts": -(10.0**12), "dur": 1},
    ]
    for i in range(2000):
        category = "kernel" if i % 2 else "cpu_op"
        event = {"ph": "X", "cat": category, "name": f"n{i % 5}", "pid": 1, "tid": i % 3}
        events.append({**event, "ts": 100 + i * 10, "dur": i % 20, "args": {"i": i, "text": f"t{i % 7}"}})
    events += [{"ph": "B", "cat": "cpu_op", "name": "long", "pid": 1, "tid": 9, "ts": 150}]
    events += [{"ph": "E", "cat": "cpu_op", "name": "long", "pid": 1, "tid": 9, "ts": 19000}]
    events += [{"ph": "s", "cat": "f", "name": "f", "id": 7, "pid": 1, "tid": 1, "ts": 5000}]
    events += [{"ph": "f", "cat": "f", "name": "f", "id": 7, "pid": 1, "tid": 1, "ts": 19500}]
    content = document(events)
    return content, read(content)


def test_the_start_is_found_without_storing_rows() -> None:
    content, trace = sample()
    assert find_start(io.BytesIO(content)) == trace.trace_start_ns == 100_000
    with pytest.raises(TraceError):
        find_start(io.BytesIO(document([{"ph": "X", "name": "a"}])))


def test_an_excerpt_has_the_events_that_touch_its_window() -> None:
    content, trace = sample()
    window = PartWindow(1_100_000, 2_100_000, frozenset({"kernel"}), 5000)
    part = read_part(io.BytesIO(content), window, max_events=1000)
    start, end = trace.events.start + trace.trace_start_ns, trace.events.start + trace.events.duration
    end = end + trace.trace_start_ns
    kernel = np.array([trace.strings[code] == "kernel" for code in trace.events.category])
    wanted = kernel & (start < 2_100_000) & ((end > 1_100_000) | (start >= 1_100_000))
    wanted &= trace.events.duration >= 5000
    got = part.events.phase == ord("X")
    assert (part.events.start[got] + part.trace_start_ns).tolist() == start[wanted].tolist()
    rows = part.args["i"].rows
    assert (
        part.args["i"].values.tolist() == ((part.events.start[rows] + part.trace_start_ns) // 10_000 - 10).tolist()
    )
    assert {chr(phase) for phase in part.events.phase} == {"M", "X", "B", "E", "s", "f"}


def test_an_excerpt_over_the_limit_is_refused() -> None:
    content, _ = sample()
    with pytest.raises(TooLargeError, match="more than 100 events"):
        read_part(io.BytesIO(content), PartWindow(), max_events=100)


def test_a_trace_survives_its_own_json() -> None:
    assert json.loads(sample()[0])["traceEvents"]
