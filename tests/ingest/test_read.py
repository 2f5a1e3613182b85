from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from tests.support.traces import document, read, read_bytes
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.model.trace import ABSENT, FIRST_TEXT_ID


def x(name: str, ts: object, dur: object, cat: str = "cpu_op", **more: object) -> dict[str, object]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, **more}


def many(count: int) -> list[dict[str, object]]:
    return [
        x(f"op{i % 7}", i * 10 + 0.125, 5.5, args={"External id": i, "Input Dims": [[i % 3, 4], []]})
        for i in range(count)
    ]


def test_every_event_is_a_row_in_file_order() -> None:
    events = many(20_000)  # several blocks
    trace = read(events)
    assert len(trace) == 20_000
    assert [trace.strings[code] for code in trace.events.name[:9]] == [e["name"] for e in events[:9]]
    assert trace.events.start.tolist() == [i * 10_000 for i in range(20_000)]
    assert set(trace.events.duration.tolist()) == {5_500}
    assert trace.arg_int("External id").tolist() == list(range(20_000))
    codes, texts = trace.arg_codes("Input Dims")
    assert [texts[code] for code in codes[:4]] == ["[[0,4],[]]", "[[1,4],[]]", "[[2,4],[]]", "[[0,4],[]]"]


def test_layouts_give_the_same_columns() -> None:
    events = many(6_000)
    plain = document(events)
    layouts = {
        "gzip": gzip.compress(plain),
        "two gzip members": gzip.compress(plain[:5000]) + gzip.compress(plain[5000:]),
        "pretty": json.dumps({"schemaVersion": 1, "traceEvents": events}, indent=2).encode(),
        "bare list": json.dumps(events).encode(),
        "bare list without its end": json.dumps(events).encode()[:-1],
        "byte order mark": b"\xef\xbb\xbf" + plain,
    }
    wanted = read_bytes(plain)
    for name, content in layouts.items():
        trace = read_bytes(content)
        assert len(trace) == len(wanted), name
        assert (trace.events.start == wanted.events.start).all(), name
        assert (trace.arg_int("External id") == wanted.arg_int("External id")).all(), name


def test_metadata_before_and_after_the_events_is_kept() -> None:
    content = b'{"schemaVersion": 1, "traceEvents": [' + json.dumps(x("a", 1, 2)).encode()
    content += b'], "traceName": "a]b},{\\"ph\\": 1", "distributedInfo": {"rank": 3}}'
    trace = read_bytes(content)
    assert trace.metadata == {"schemaVersion": 1, "traceName": 'a]b},{"ph": 1', "distributedInfo": {"rank": 3}}


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0.001", 1),
        ("1700000000000000.123", 1700000000000000123),  # beyond float64
        ("8589934592.999", 8589934592999),
        ('"1700000000000000.123"', 1700000000000000123),
        ("1623142623460016", 1623142623460016000),
    ],
)
def test_times_are_exact(text: str, ns: int) -> None:
    line = '{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":' + text + ',"dur":1.001}'
    content = f'{{"traceEvents":[{line},{line}]}}'.encode()
    trace = read_bytes(content)
    assert trace.trace_start_ns == ns
    assert trace.events.start.tolist() == [0, 0]
    assert trace.events.duration.tolist() == [1001, 1001]


def test_exact_times_hold_in_every_block() -> None:
    events = [
        f'{{"ph":"X","cat":"cpu_op","name":"a","ts":{1712195495406000 + i}.{i % 1000:03d},"dur":1}}'
        for i in range(20_000)
    ]
    trace = read_bytes(b'{"traceEvents":[' + ",".join(events).encode() + b"]}")
    assert trace.events.start.tolist() == [i * 1000 + i % 1000 for i in range(20_000)]


def test_unknown_categories_phases_and_args_survive() -> None:
    trace = read(
        [
            x("a", 1, 2, cat="something_new", args={"depth": 3, "why": "x", "share": 0.5, "list": [1, {"a": 2}]}),
            {"ph": "Q", "name": "odd", "pid": "p", "tid": None, "ts": 5, "extra": "kept", "args": {"n": 2**70}},
        ]
    )
    assert trace.strings[trace.events.category[0]] == "something_new"
    assert chr(trace.events.phase[1]) == "Q"
    assert trace.arg_int("depth").tolist() == [3, ABSENT]
    assert trace.arg_float("share")[0] == 0.5
    codes, texts = trace.arg_codes("list")
    assert texts[codes[0]] == '[1,{"a":2}]'
    codes, texts = trace.arg_codes("@extra")
    assert texts[codes[1]] == "kept"
    codes, texts = trace.arg_codes("n")
    assert texts[codes[1]] == str(2**70)


def test_an_argument_may_change_its_kind_between_blocks() -> None:
    events = many(5_000) + [x("b", 60_000, 1, args={"External id": "seven"})] + many(9_000)
    trace = read(events)
    assert trace.args["External id"].kind == "json"
    ids = trace.arg_int("External id")
    assert ids[:3].tolist() == [0, 1, 2]
    assert ids[5_000] == ABSENT
    assert ids[-1] == 8_999
    codes, texts = trace.arg_codes("External id")
    assert texts[codes[5_000]] == '"seven"'


def test_brackets_in_logged_messages_are_no_ends_of_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    def salvage(*arguments: object, **options: object) -> None:
        raise AssertionError("events that are well-formed are read one by one")

    monkeypatch.setattr("torch_tb_profiler.ingest.kineto.repair.EventSalvage", salvage)
    messages = [f"INFO: CuptiActivityProfiler.cpp:{line}] Processed" for line in range(100)]
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"grid": [1]}}
    trace = read_bytes(json.dumps({"traceEvents": [event], "INFO": messages, "traceName": "t"}).encode())
    assert len(trace) == 1
    assert trace.metadata == {"INFO": messages, "traceName": "t"}
    assert not trace.health


def test_begin_and_end_pairs_become_slices() -> None:
    def b(ph: str, ts: int, name: str = "") -> dict[str, object]:
        return {"ph": ph, "name": name, "pid": 1, "tid": 1, "ts": ts, "cat": "event"}

    trace = read([b("B", 0, "outer"), b("B", 10, "inner"), b("E", 30), b("E", 50), b("B", 60, "open")])
    assert trace.events.duration.tolist() == [50_000, 20_000, ABSENT, ABSENT, ABSENT]
    assert [(note.kind, note.count) for note in trace.health] == [("unmatched_begin_end", 1)]


def test_the_trace_starts_with_its_first_real_event() -> None:
    trace = read(
        [
            {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 1, "args": {"name": "x"}},
            {"ph": "i", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "tid": "t", "ts": 2},
            x("absurd", 0, 1),
            x("first", 2_000_000_000_000, 1),
            x("second", 2_000_000_000_010, 1),
            x("third", 2_000_000_000_020, 1),
        ]
    )
    assert trace.trace_start_ns == 2_000_000_000_000_000
    assert trace.events.start[3:].tolist() == [0, 10_000, 20_000]
    assert ("absurd_time", 1) in [(note.kind, note.count) for note in trace.health]


@pytest.mark.parametrize("count", [1, 2, 30])
def test_the_trace_does_not_start_with_markers_of_any_name(count: int) -> None:
    markers = [{"ph": "i", "name": f"Iteration Start: {i}", "pid": 1, "tid": 1, "ts": i} for i in range(count)]
    trace = read([*markers, x("first", 100, 1), x("second", 110, 1)])
    assert trace.trace_start_ns == 100_000


def test_slices_without_a_duration_and_negative_ones_are_counted_apart() -> None:
    trace = read(
        [
            *(x("a", 0, 1) for _ in range(5)),
            *({"ph": "X", "name": "open", "pid": 1, "tid": 1, "ts": 1, "cat": "c"} for _ in range(2)),
            *(x("negative", 3, -1) for _ in range(3)),
            {"ph": "i", "name": "instant", "pid": 1, "tid": 1, "ts": 1, "cat": "c"},
        ]
    )
    notes = {note.kind: note.count for note in trace.health}
    assert notes == {"no_duration": 2, "negative_duration": 3}


def test_flow_ids_may_be_text() -> None:
    flow = {"ph": "s", "cat": "ac2g", "name": "ac2g", "pid": 1, "tid": 1, "ts": 1}
    trace = read([{**flow, "id": 5}, {**flow, "id": "abc"}, {**flow, "id": "abc"}, x("a", 2, 1)])
    assert trace.events.id.tolist() == [5, FIRST_TEXT_ID, FIRST_TEXT_ID, ABSENT]
    assert trace.text_ids == ["abc"]


@pytest.mark.parametrize(
    ("content", "messages"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"hello", "not JSON"),
        (b'{"a": 1}', "has no `traceEvents`"),
        (b'{"traceEvents": {"a": 1}}', "`traceEvents` is an object, not a list"),
        (b'{"traceEvents": null, "a": [', "`traceEvents` is null, not a list"),
        (b'{"traceEvents": 12}', "`traceEvents` is a number, not a list"),
        (b'{"traceEvents":', "ends before"),
        (b'{"schemaVersion": 1, "devicePr', "ends before"),
        (b'{"traceEvents": []}', "no events"),
        (b'{"traceEvents": [{"ph": "X", "na', "truncated inside its first event"),
        (gzip.compress(b"", mtime=0), "empty"),
    ],
)
def test_a_file_that_is_not_a_trace_is_refused_with_a_reason(content: bytes, messages: str) -> None:
    with pytest.raises(TraceError, match=messages) as caught:
        read_bytes(content)
    assert caught.value.hint


def test_progress_counts_stored_bytes() -> None:
    import io

    from torch_tb_profiler.ingest import Progress, read_trace

    content = gzip.compress(document(many(20_000)))
    reports: list[Progress] = []
    read_trace(io.BytesIO(content), size=len(content), report=reports.append)
    done = [progress.bytes_done for progress in reports if progress.stage == "reading"]
    assert done == sorted(done)
    assert done[-1] == len(content)
    assert reports[-1].stage == "arranging"
    assert reports[-1].events == 20_000


def test_columns_are_small() -> None:
    trace = read(many(2_000))
    per_event = sum(getattr(trace.events, name).itemsize for name in trace.events.__struct_fields__)
    assert per_event <= 40
    assert trace.args["Input Dims"].values.dtype == np.int32
