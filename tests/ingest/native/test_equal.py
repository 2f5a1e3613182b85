"""Whatever a file holds, the native reader and the plain way come to the same columns."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import real_traces
from tests.ingest.native.comparison import NEEDED, differences, outcome, read_in_python
from tests.ingest.test_mutations import BYTES, FIELDS, LAYOUTS, mangle
from tests.support.examples import examples
from torch_tb_profiler.ingest.kineto.decode import BlockDecoder
from torch_tb_profiler.ingest.kineto.native import decode
from torch_tb_profiler.model.trace import Trace

pytestmark = NEEDED

ROUNDS, LONG_ROUNDS = 60, 4000
"""Mutated traces per layout."""

LARGE = 300_000
"""Stored bytes of a real trace that is read twice at most in long runs."""


def handed_back(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Record the blocks that the plain way reads from now on."""
    blocks: list[bytes] = []
    add = BlockDecoder.add

    def note(self: BlockDecoder, block: bytes | memoryview) -> int:
        blocks.append(bytes(block))
        return add(self, block)

    monkeypatch.setattr(BlockDecoder, "add", note)
    return blocks


def event(**given: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2, **given}


@pytest.mark.parametrize("layout", sorted(LAYOUTS.keys() - {"ascend"}))  # which writes times as texts
def test_recorded_traces_are_read_natively(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = LAYOUTS[layout]
    plain = read_in_python(content)
    blocks = handed_back(monkeypatch)
    assert differences(outcome(content), plain) == []
    assert blocks == []


def test_rows_and_texts_are_added_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two of them comes a block that goes back, and what the reader knew is forgotten."""
    events = [
        event(
            name=f"n{i % 700}",
            tid=f"t{i % 5}",
            id=f"f{i % 40}" if i % 3 else i,
            ts=i + 0.125,
            args={"Call stack": f"s{i % 90}", "Input Dims": [[i % 13, 2]], "External id": i, "ratio": i / 8},
            **({"bp": "e"} if i % 2 else {}),
        )
        for i in range(30_000)
    ]
    events[15_000]["ts"] = "15000.25"
    content = json.dumps(events).encode()
    plain = read_in_python(content)
    monkeypatch.setattr(decode, "_MIN_TAKE_ROWS", 5_000)
    monkeypatch.setattr(decode, "_MAX_TOKEN_BYTES", 1 << 19)
    blocks = handed_back(monkeypatch)
    assert differences(outcome(content), plain) == []
    assert 0 < len(blocks) < 3


ODD_EVENTS = {
    "empty": "{}",
    "no phase": '{"name": "a", "ts": 1}',
    "long phase": '{"ph": "XX", "name": "a", "ts": 1}',
    "escaped phase": '{"ph": "\\u0058", "name": "a", "ts": 1}',
    "a key twice": '{"ph": "X", "ts": 1, "ts": 2, "args": {"k": 1, "k": 2}}',
    "no object": "17",
    "deep": '{"ph": "X", "ts": 1, "args": {"k": ' + "[" * 70 + "]" * 70 + "}}",
    "lone surrogate": '{"ph": "X", "ts": 1, "name": "\\ud800"}',
    "pair": '{"ph": "X", "ts": 1, "name": "\\ud83d\\ude00"}',
    "two spellings": '{"ph": "X", "ts": 1, "name": "A"}, {"ph": "X", "ts": 1, "name": "\\u0041"}',
    "no UTF-8 nearly": '{"ph": "X", "ts": 1, "name": "é\U0001f600", "args": {"ключ": "значение"}}',
    "large integer": '{"ph": "X", "ts": 1, "args": {"k": 18446744073709551616, "l": 1234567890123456789}}',
    "large ids": '{"ph": "s", "ts": 1, "id": 18446744073709551616, "pid": 9223372036854775808, "tid": 1.0}',
    "negative zero": '{"ph": "X", "ts": -0, "args": {"k": -0, "l": -0.0}}',
    "doubles": '{"ph": "X", "ts": 1, "args": {"a": 0.1, "b": 12.345678901234567, "c": 1e-7, "d": 2.5E+10}}',
    "endless double": '{"ph": "X", "ts": 1, "args": {"a": 0.' + "3" * 90 + ', "b": 1e400}}',
    "exponents": '{"ph": "X", "ts": 1e999999, "dur": 1E2, "args": {"a": [1e5], "b": [[1e59850]], "c": [0.5]}}',
    "null": '{"ph": "X", "cat": null, "name": null, "pid": null, "ts": null, "args": {"k": null}}',
    "no arguments": '{"ph": "X", "ts": 1, "args": null}, {"ph": "X", "ts": 1, "args": [1]}',
    "words": '{"ph": "X", "ts": 1, "args": {"k": true, "l": false, "m": [null, {"a": "b "}]}}',
    "own keys": '{"ph": "f", "ts": 1, "bp": "e", "args": {"@bp": "x"}}',
    "times": '{"ph": "X", "ts": -1.0005, "dur": 3.0025}, {"ph": "X", "ts": 1.5e3}, {"ph": "X", "ts": "7.25"}',
    "blanks": '{ "ph" :\t"X",\n"ts" : 1 , "args" : { } }',
}


@pytest.mark.parametrize("odd", ODD_EVENTS.values(), ids=ODD_EVENTS)
@pytest.mark.parametrize("position", [0, 50, 100])
def test_an_unusual_event_is_read_as_in_python(odd: str, position: int) -> None:
    events = [json.dumps(event(args={"k": i, "s": "text"})) for i in range(100)]
    events.insert(position, odd)
    content = f'{{"traceEvents": [{", ".join(events)}]}}'.encode()
    assert differences(outcome(content), read_in_python(content)) == []


USUAL = (
    '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 12, "ts": 1.500, "dur": 2, '
    '"args": {"l": ["x", "y"], "n": 7, "m": 1}}'
)
ALMOST_USUAL = {
    "a longer number": ('"tid": 12', '"tid": 123'),
    "a shorter number": ('"tid": 12', '"tid": 1'),
    "a number with decimals": ('"n": 7', '"n": 7.5'),
    "a number with an exponent": ('"n": 7', '"n": 7e2'),
    "a number after a zero": ('"n": 7', '"n": 07'),
    "a long number": ('"n": 7', '"n": 123456789012345678'),
    "a thread with decimals": ('"tid": 12', '"tid": 12.0'),
    "a thread twice": ('"tid": 12', '"tid": 12, "tid": 12'),
    "a process twice": ('"tid": 12', '"tid": 12, "pid": 1'),
    "a process without a thread": (', "tid": 12', ""),
    "an argument twice": ('"n": 7', '"n": 7, "n": 7'),
    "more blanks before a value": ('"n": 7', '"n":  7'),
    "more blanks before a text": ('"name": ', '"name": \n\t'),
    "more blanks before a list": ('"l": ', '"l":   '),
    "blanks before a comma": ("12,", "12 ,"),
    "another name of the same length": ("aten::mm", "aten::ab"),
    "a name that goes on": ("aten::mm", "aten::mm_out"),
    "a name with a quote": ("aten::mm", 'aten::mm\\" x'),
    "a name with a backslash": ("aten::mm", "aten::mm\\\\"),
    "another category": ('"cpu_op"', '"cpu_ops"'),
    "no category": ('"cat": "cpu_op"', '"cat": null'),
    "a list that goes on": ('["x", "y"]', '["x", "y", "z"]'),
    "a list with a list": ('["x", "y"]', '[["x"], "y"]'),
    "a list in a text": ('["x", "y"]', '["x], \\"n", "y"]'),
    "a list with a blank": ('["x", "y"]', '["x", "y" ]'),
    "an empty list": ('["x", "y"]', "[]"),
    "a list that does not end": ('["x", "y"]', '["x", "y"'),
    "a list that does not start": ('["x", "y"]', '"x", "y"]'),
    "a list longer than is looked ahead": ('["x", "y"]', f'["x", {"[1], " * 400}"y"]'),
    "time with two decimals": ("1.500", "1.50"),
    "time with four decimals": ("1.500", "1.5001"),
    "time with an exponent": ("1.500", "1.500e1"),
    "time with a point alone": ("1.500", "1."),
    "time below zero": ("1.500", "-1.500"),
    "time with many digits": ("1.500", "12345678901234567.5"),
    "time without decimals": ("1.500", "15"),
    "other keys": ('"n": 7', '"o": 7'),
    "one argument only": (', "n": 7, "m": 1', ""),
    "no arguments": ('{"l": ["x", "y"], "n": 7, "m": 1}', "{}"),
    "a key of its own": (
        '"args"',
        '"a key that is longer than all that is compared at once, so to say": 1, "args"',
    ),
}
"""What is usual, and what replaces it in one event."""


@pytest.mark.parametrize("case", ALMOST_USUAL)
def test_what_looks_like_the_events_before_is_read_as_in_python(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most of an event is told by comparing it with those before."""
    usual, other = ALMOST_USUAL[case]
    assert usual in USUAL
    events = [USUAL] * 5 + [USUAL.replace(usual, other)] * 2 + [USUAL] * 5
    content = f'{{"traceEvents": [{", ".join(events)}]}}'.encode()
    plain = read_in_python(content)
    blocks = handed_back(monkeypatch)
    assert differences(outcome(content), plain) == []
    if case in ("a longer number", "a shorter number") or case.startswith(
        ("more blanks", "a name", "a list with")
    ):
        assert blocks == [], "read natively"


@pytest.mark.parametrize("length", [1, 3, 7, 8, 14, 15, 30, 31, 62, 63, 64, 65, 130, 1100])
def test_texts_that_differ_in_one_place_are_told_apart(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    places = sorted({*range(min(length, 70)), length // 2, length - 1})
    texts = ["a" * place + "b" + "a" * (length - place - 1) for place in places] + ["a" * length]
    events = [event(name=text, args={"l": [text, "x"], "t": text}) for text in texts * 3]
    content = json.dumps(events).encode()
    plain = read_in_python(content)
    blocks = handed_back(monkeypatch)
    native = outcome(content)
    assert differences(native, plain) == []
    assert isinstance(native, Trace)
    assert [*native.args["t"].dictionary] == texts
    assert blocks == []


def test_numbers_in_a_mixed_column_may_be_spelled_differently() -> None:
    """The one difference that is left: natively they are numbers until a text comes; the values are equal."""
    events = [event(args={"k": 0, "s": value}) for value in ("t", 1)]
    texts = [json.dumps(each).replace('"s": 1', '"s": 1e18') for each in events]
    content = f"[{', '.join(texts)}]".encode()
    native, plain = outcome(content), read_in_python(content)
    assert isinstance(native, Trace) and isinstance(plain, Trace)
    assert (native.args["s"].kind, plain.args["s"].kind) == ("json", "json")
    assert [*native.args["s"].dictionary] == ['"t"', "1e+18"] and [*plain.args["s"].dictionary] == ['"t"', "1e18"]
    assert differences(native, plain) == []
    other = content.replace(b"1e18", b"1e17")
    assert differences(outcome(other), plain) == ["s: 1e+17 | 1e18"]


@pytest.mark.parametrize("first", ["0", "4383549797800", "8796093022208", "1652387435893212"])
def test_times_are_rounded_as_in_python(first: str) -> None:
    chance = random.Random(first)
    for _ in range(examples(300)):
        decimals = [
            "",
            ".5",
            ".125",
            ".9995",
            ".0005",
            ".1234565",
            ".00049999999999999999",
            f".{chance.random()}"[2:],
        ]
        count = chance.choice((1, 3))
        events = [
            f'{{"ph": "X", "cat": "c", "ts": {int(first) + chance.randrange(9)}{chance.choice(decimals)}, "dur": '
            f"{chance.randrange(9)}{chance.choice(decimals)}}}"
            for _ in range(count)
        ]
        content = f"[{', '.join(events)}]".encode()
        assert differences(outcome(content), read_in_python(content)) == [], content


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_damage_is_handled_as_in_python(layout: str, long: bool) -> None:
    chance = random.Random(layout)
    mutations = BYTES if layout == "gzip" else BYTES + FIELDS
    for number in range(LONG_ROUNDS if long else ROUNDS):
        content = mangle(LAYOUTS[layout], mutations, chance)
        assert differences(outcome(content), read_in_python(content)) == [], number


@pytest.mark.slow
@pytest.mark.xdist_group("corpus")
def test_real_traces_are_read_as_in_python(corpus: Path, long: bool) -> None:
    """What is read plainly is what the other tests of the corpus share; large files only with `--long`."""
    found = {}
    for path in real_traces.files(corpus):
        if path.stat().st_size > LARGE and not long:
            continue
        found[real_traces.name(path)] = differences(outcome(path.read_bytes()), real_traces.outcome(path))
    assert len(found) > 50
    assert {name: what for name, what in found.items() if what} == {}
