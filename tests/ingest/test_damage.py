"""One bad event costs one event, and the notes say which."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.traces import document, read, read_bytes
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.model.trace import ABSENT


def op(i: int) -> dict[str, object]:
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": f"op{i}",
        "pid": 1,
        "tid": 1,
        "ts": i * 10,
        "dur": 5,
        "args": {"External id": i, "Input Dims": [[1, 2]]},
    }


def with_middle(middle: bytes) -> bytes:
    before, after = (json.dumps([op(i) for i in part]).encode()[1:-1] for part in (range(3), range(4, 7)))
    return (
        b'{"schemaVersion": 1, "traceEvents": ['
        + before
        + b", "
        + middle
        + b", "
        + after
        + b'], "traceName": "t"}'
    )


def middle(name: bytes = b"op3", extra: bytes = b"5") -> bytes:
    return (
        b'{"ph": "X", "cat": "cpu_op", "name": "' + name + b'", "pid": 1, "tid": 1, "ts": 30, "dur": 5, '
        b'"args": {"External id": 3, "value": ' + extra + b"}}"
    )


@pytest.mark.parametrize(
    ("damaged", "kind", "events", "name"),
    [
        (middle(b"a\x01b"), "control_character", 7, "a\x01b"),
        (middle(b"a\nb"), "control_character", 7, "a\nb"),
        (middle(b"C:\\x\\user"), "repaired_event", 7, "C:\\x\\user"),
        (middle(b"a\xff\xfeb"), "invalid_utf8", 7, "a\ufffd\ufffdb"),
        (middle(b"\\ud800x"), None, 7, "\ufffdx"),
        (middle(extra=b"N/A"), "repaired_event", 7, "op3"),
        (middle(extra=b"nan"), "repaired_event", 7, "op3"),
        (middle(extra=b"-inf"), "repaired_event", 7, "op3"),
        (middle(extra=b"NaN"), "not_a_number", 7, "op3"),
        (middle(extra=b"-Infinity"), "not_a_number", 7, "op3"),
        (middle(b'say "hi" to'), "skipped_event", 6, "op4"),
        (b'{"ph": "X", "name": }', "skipped_event", 6, "op4"),
        (b"null", "not_an_event", 6, "op4"),
        (b"[1, 2]", "not_an_event", 6, "op4"),
    ],
)
def test_a_damaged_event_is_skipped_alone(damaged: bytes, kind: str | None, events: int, name: str) -> None:
    trace = read_bytes(with_middle(damaged))
    assert len(trace) == events
    assert trace.strings[trace.events.name[3]] == name
    assert trace.strings[trace.events.name[-1]] == "op6"
    assert trace.metadata["traceName"] == "t"
    if kind is not None:
        assert kind in [note.kind for note in trace.health]


def test_half_a_surrogate_pair_around_the_events_is_replaced() -> None:
    head = b'{"device \\ud800": ["a", {"b\\udfff": "\\ud83d\\ude00"}], "traceEvents": ['
    trace = read_bytes(head + middle() + b'], "x": "\\uDC00"}')
    assert trace.metadata == {"device \ufffd": ["a", {"b\ufffd": "\U0001f600"}], "x": "\ufffd"}


@pytest.mark.parametrize("depth", [700, 5000])
@pytest.mark.parametrize("text", [b"a", b"\\u0041"])
def test_metadata_nested_too_deeply_is_reported_and_the_events_are_read(depth: int, text: bytes) -> None:
    deep = b'{"a": ' * depth + b'"' + text + b'"' + b"}" * depth
    for content in (
        b'{"deep": ' + deep + b', "traceEvents": [' + middle() + b"]}",
        b'{"traceEvents": [' + middle() + b'], "deep": ' + deep + b"}",
    ):
        trace = read_bytes(content)
        assert len(trace) == 1
        notes = [note.message for note in trace.health]
        assert "deep" in trace.metadata or notes == ["the trace's metadata can't be read: it is nested too deeply"]


def test_notes_have_the_offset() -> None:
    content = with_middle(middle(b"C:\\x"))
    note = next(note for note in read_bytes(content).health if note.kind == "repaired_event")
    assert note.count == 1
    assert note.first_offset is not None
    assert content[note.first_offset :].startswith(b'{"ph": "X", "cat": "cpu_op", "name": "C:')


def test_a_truncated_file_keeps_the_events_before_the_cut() -> None:
    content = document([op(i) for i in range(100)])
    trace = read_bytes(content[:-200])
    assert 95 <= len(trace) < 100
    assert [note.kind for note in trace.health] == ["truncated"]
    note = trace.health[0]
    assert note.first_offset is not None
    assert len(content) - 500 < note.first_offset < len(content)


def test_a_truncated_gzip_keeps_the_events_before_the_cut() -> None:
    content = gzip.compress(document([op(i) for i in range(5000)]))
    trace = read_bytes(content[: len(content) // 2])
    assert 1000 < len(trace) < 5000
    assert {note.kind for note in trace.health} == {"gzip_damaged", "truncated"}


def test_missing_and_unusual_fields_affect_nothing_else() -> None:
    trace = read(
        [
            op(0),
            {"ph": "X"},
            {"ph": "X", "name": "no dur", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 5},
            {"ph": "X", "name": "negative", "cat": "cpu_op", "pid": -1, "tid": "stream 7", "ts": 6, "dur": -3},
            {"ph": "X", "name": "text time", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": "7.5", "dur": "2.25"},
            {"ph": "X", "name": "no time", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": "soon", "dur": 1},
            {"ph": "X", "name": ["list"], "cat": 7, "pid": True, "tid": 1.0, "ts": 8, "dur": 1},
        ]
    )
    assert len(trace) == 7
    assert trace.events.start.tolist() == [0, ABSENT, 5_000, 6_000, 7_500, ABSENT, 8_000]
    assert trace.events.duration.tolist()[2:5] == [ABSENT, -3_000, 2_250]
    kinds = {note.kind: note.count for note in trace.health}
    assert kinds["negative_duration"] == 1
    assert kinds["no_time"] == 2
    assert kinds["no_duration"] == 2


BASE = document([op(i) for i in range(60)])


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("flip"), st.integers(0, len(BASE) - 1), st.integers(0, 255)),
            st.tuples(st.just("cut"), st.integers(0, len(BASE) - 1), st.integers(1, 400)),
            st.tuples(st.just("repeat"), st.integers(0, len(BASE) - 1), st.integers(1, 400)),
            st.tuples(st.just("end"), st.integers(0, len(BASE) - 1), st.just(0)),
        ),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_mutated_files_never_crash_the_reader(changes: list[tuple[str, int, int]], packed: bool) -> None:
    content = bytearray(gzip.compress(BASE, mtime=0) if packed else BASE)
    for what, position, value in changes:
        position = min(position, max(len(content) - 1, 0))
        if what == "flip" and content:
            content[position] = value % 256
        elif what == "cut":
            del content[position : position + value]
        elif what == "repeat":
            content[position:position] = content[position : position + value]
        elif what == "end":
            del content[position:]
    try:
        trace = read_bytes(bytes(content))
    except TraceError as error:
        assert error.message
    else:
        assert len(trace) > 0


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(
                ["ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args", "s", "bp", "(category)"]
            ),
            st.one_of(
                st.none(),
                st.booleans(),
                st.integers(),
                st.floats(allow_nan=False, allow_infinity=False),
                st.text(max_size=5),
                st.sampled_from(["X", "B", "E", "i", "cpu_op", "kernel"]),
                st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=3) | st.none(), max_size=3),
                st.lists(st.integers(), max_size=2),
            ),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_any_object_becomes_an_event(events: list[dict[str, object]]) -> None:
    assert len(read(events)) == len(events)
    assert len(read(events * 3000)) == len(events) * 3000 if len(events) < 2 else True


EPOCH_US = 1_700_000_000_000_000


def test_repaired_events_keep_nanoseconds() -> None:
    """A float64 of microseconds since the epoch would be off by up to 125 ns."""
    broken = b'{"ph": "X", "name": "\\x", "pid": 1, "tid": 1, "ts": 1700000000000000.123, "dur": 1}'
    trace = read_bytes(b'{"traceEvents": [' + broken + b"]}")
    assert [note.kind for note in trace.health if note.kind == "repaired_event"]
    assert trace.trace_start_ns == EPOCH_US * 1000 + 123


def test_many_brackets_after_the_events_keep_nanoseconds() -> None:
    """Kineto's log behind the events is full of them, and the end of the list is not found at once."""
    events = [{"ph": "X", "name": "a", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 0, "dur": 1}] * 3
    text = json.dumps({"traceEvents": events, "INFO": ["[Profiler] Evaluating"] * 40})
    for i in range(3):
        text = text.replace('"ts": 0,', f'"ts": {EPOCH_US + i}.{i}23,', 1)
    trace = read_bytes(text.encode())
    assert trace.trace_start_ns == EPOCH_US * 1000 + 23
    assert trace.events.start.tolist() == [0, 1_100, 2_200]
    assert len(trace.metadata["INFO"]) == 40
