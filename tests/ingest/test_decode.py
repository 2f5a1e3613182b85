"""The learned schema is only a faster way: it gives the columns that plain decoding gives."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torch_tb_profiler.ingest.kineto.assemble import assemble
from torch_tb_profiler.ingest.kineto.columns import EventColumns
from torch_tb_profiler.ingest.kineto.decode import BlockDecoder
from torch_tb_profiler.model.health import HealthLog
from torch_tb_profiler.model.trace import Trace

VALUES = {
    "int": st.integers(-(2**40), 2**40),
    "float": st.floats(allow_nan=False, allow_infinity=False, width=32),
    "text": st.sampled_from(["", "a", "b\n", "\u00e9"]),
    "list": st.lists(st.integers(0, 9), max_size=3),
    "huge": st.just(2**70),
    "any": st.sampled_from([1, "b", [2], None]),
    "maybe": st.sampled_from([1, None]),
}


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    event: dict[str, Any] = {
        "ph": draw(st.sampled_from("Xsf")),
        "cat": draw(st.sampled_from(["cpu_op", "kernel", "ac2g"])),
        "name": "n",
        "pid": draw(st.sampled_from([1, "p"])),
        "tid": 1,
        "ts": draw(st.integers(1, 2**42)) / 1000,
    }
    event |= dict.fromkeys(draw(st.sets(st.sampled_from(["dur", "id"]))), 5)
    for key in draw(st.sets(st.sampled_from(["bp", "extra"]))):
        event[key] = "e"
    if draw(st.booleans()):
        keys = draw(st.sets(st.sampled_from(["always", *VALUES]), max_size=4))
        event["args"] = {key: draw(VALUES.get(key, VALUES["int"])) for key in sorted(keys)}
    return event


def finish(columns: EventColumns) -> Trace:
    return assemble(columns, {}, HealthLog())


def cells(trace: Trace, key: str) -> list[tuple[int, Any]]:
    """Return (row, value) of an argument, codes looked up, numbers exact."""
    column = trace.args[key]
    values = column.values.tolist()
    if column.kind in ("text", "json"):
        values = [column.dictionary[code] for code in values]
    return list(zip(column.rows.tolist(), values, strict=True))


def assert_same(one: Trace, other: Trace) -> None:
    for name in ("phase", "start", "duration", "id"):
        assert getattr(one.events, name).tolist() == getattr(other.events, name).tolist()
    for name in ("name", "category"):
        texts = [[t.strings[code] for code in getattr(t.events, name)] for t in (one, other)]
        assert texts[0] == texts[1]
    threads = [[t.threads[code] for code in t.events.thread] for t in (one, other)]
    assert threads[0] == threads[1]
    assert one.args.keys() == other.args.keys()
    for key in one.args:
        assert one.args[key].kind == other.args[key].kind
        assert cells(one, key) == cells(other, key), key


@pytest.mark.slow
@given(st.lists(st.lists(events(), min_size=1, max_size=12), min_size=1, max_size=6))
def test_learned_blocks_equal_blocks_decoded_one_by_one(blocks: list[list[dict[str, Any]]]) -> None:
    learned, plain = EventColumns(), EventColumns()
    decoder, reference = BlockDecoder(learned), BlockDecoder(plain)
    for block in blocks:
        decoder.add(json.dumps(block).encode())
        reference.add_objects(json.loads(json.dumps(block)))
    assert_same(finish(learned), finish(plain))


def event(**args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": "n", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": args}


@pytest.mark.parametrize(
    "later",
    [
        event(size=1),  # a key that every event had is missing
        event(size=1, name="a", dims=[2], more=1),  # a new key
        event(size=1, name=None, dims=[2]),  # null is no text
        event(size="1", name="a", dims=[2]),  # another kind
        event(size=2**70, name="a", dims=[2]),  # beyond int64
        {"ph": "X", "cat": "cpu_op", "name": "n", "ts": 1},  # no args at all
        {**event(size=1, name="a", dims=[2]), "args": None},
    ],
)
def test_a_change_in_a_later_block_keeps_the_earlier_rows(later: dict[str, Any]) -> None:
    columns = EventColumns()
    decoder = BlockDecoder(columns)
    typical = [event(size=i, name="a", dims=[i]) for i in range(5)]
    for block in (typical, [*typical, later], typical):
        assert decoder.add(json.dumps(block).encode()) == 0
    trace = finish(columns)
    assert len(trace) == 16
    assert trace.arg_int("size")[[0, 4, 5, 9, 11, 15]].tolist() == [0, 4, 0, 4, 0, 4]
    codes, texts = trace.arg_codes("name")
    assert {texts[codes[row]] for row in (0, 9, 15)} == {"a"}
    codes, texts = trace.arg_codes("dims")
    assert [texts[codes[row]] for row in (0, 9, 15)] == ["[0]", "[4]", "[4]"]


@pytest.mark.parametrize(("field", "value"), [("ph", "\u00e9"), ("dur", 1.7e15 + 0.25), ("ts", 1.7e15 + 0.25)])
def test_unusual_fields_are_read_the_same_in_both_ways(field: str, value: object) -> None:
    """A phase that is no ASCII; times of which a float64 does not hold every nanosecond."""
    typical = [event(size=i, name="a", dims=[i]) for i in range(5)]
    odd = [*typical, {**event(size=1, name="a", dims=[2]), field: value}]
    learned, plain = EventColumns(), EventColumns()
    decoder = BlockDecoder(learned)
    for block in (typical, odd):
        text = json.dumps(block)
        decoder.add(text.encode())
        BlockDecoder(plain).add_objects(json.loads(text, parse_float=Decimal))
    assert_same(finish(learned), finish(plain))


@pytest.mark.parametrize("known", [[], [0], [0, "text"]])
def test_the_integer_of_the_placeholder_for_missing_is_read_as_written(known: list[object]) -> None:
    """Whether or not the key was known to hold integers: as one of these it would read as absent."""
    columns = EventColumns()
    decoder = BlockDecoder(columns)
    for value in [*known, -(2**63)]:
        decoder.add(json.dumps([{"ph": "X", "cat": "c", "name": "n", "ts": 1, "args": {"size": value}}]).encode())
    column = columns.finish_args()["size"]
    assert column.kind == "json"
    assert [column.dictionary[code] for code in column.values] == [*map(json.dumps, known), "-9223372036854775808"]
