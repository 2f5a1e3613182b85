"""Pickles of plain values are read as the standard library reads them; all else is refused with a reason."""

from __future__ import annotations

import io
import os
import pickle
import struct
from collections import OrderedDict
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.ingest import plain_pickle
from torch_tb_profiler.ingest.plain_pickle import read_plain_pickle


def read(content: bytes) -> Any:
    return read_plain_pickle(io.BytesIO(content))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**127), 2**127 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.lists(inner).map(tuple),
    max_leaves=20,
)


@given(PLAIN, st.integers(0, 5))
@example(-(2**127), 0)
@settings(deadline=None)
def test_plain_values_come_back_from_every_protocol(value: Any, protocol: int) -> None:
    assert read(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", range(6))
def test_shared_and_large_values(protocol: int) -> None:
    shared = {"filename": "a.py", "line": 70_000, "name": "f" * 300}
    value = {"segments": [shared] * 300, "text": "x" * 100_000, "numbers": list(range(-300, 70_000, 7))}
    copy = read(pickle.dumps(value, protocol))
    assert copy == value and copy["segments"][0] is copy["segments"][299]


class Calls:
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/was_called",)


class State:
    def __init__(self) -> None:
        self.value = 1


class Outside(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        return "elsewhere" if obj is Calls else None


def outside() -> bytes:
    out = io.BytesIO()
    Outside(out, 4).dump([Calls])
    return out.getvalue()


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    "value",
    [Calls(), State(), os.system, OrderedDict(a=1), Decimal(1), date(2026, 1, 1), {"segments": [State()]}, print],
    ids=["reduce", "object", "function", "ordered", "decimal", "date", "inside", "builtin"],
)
def test_pickles_that_need_code_are_refused(value: Any, protocol: int) -> None:
    with pytest.raises(TraceError, match="refused: the pickle"):
        read(pickle.dumps(value, protocol))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"cos\nsystem\n(S'echo'\ntR.", "GLOBAL"),
        (b"\x80\x04\x8c\x02os\x94\x8c\x06system\x94\x93\x94.", "STACK_GLOBAL"),
        (b"(S'echo'\nios\nsystem\n.", "opcode 0x53"),
        (b"(ios\nsystem\n.", "INST"),
        (b"(NNo.", "OBJ"),
        (b"\x80\x02NN\x81.", "NEWOBJ"),
        (b"NN\x92.", "NEWOBJ_EX"),
        (b"NNR.", "REDUCE"),
        (b"}}b.", "BUILD"),
        (b"P12\n.", "PERSID"),
        (b"NQ.", "BINPERSID"),
        (b"\x82\x01.", "EXT1"),
        (b"\x83\x01\x00.", "EXT2"),
        (b"\x84\x01\x00\x00\x00.", "EXT4"),
        (b"\x97.", "NEXT_BUFFER"),
        (b"\x8f.", "opcode 0x8f"),
        (b"C\x01a.", "opcode 0x43"),
        (b"2.", "opcode 0x32"),
        (b"\x80\x06N.", "protocol 6"),
        (b"\x80\xffN.", "protocol 255"),
        (b"", "empty"),
        (b"{\"segments\": []}", "opcode 0x7b"),
        (b"\x1f\x8b\x08", "opcode 0x1f"),
        (b"PK\x03\x04", "PERSID|truncated"),
        (b".", "inside a value"),
        (b"(.", "inside a value"),
        (b"NN.", "inside a value"),
        (b"0.", "has no operand"),
        (b"e.", "has no operand"),
        (b"h\x07.", "has no operand"),
        (b"N(Ne.", "without a list"),
        (b"](Ns.", "has no operand|without a dict"),
        (b"}(Nu.", "without a dict"),
        (b"}NNs.", "not text"),
        (b"}]Ns.", "not text"),
        (b"Iabc\n.", "not a number"),
        (b"I" + b"9" * 10_000 + b"\n.", "not a number"),
        (b"\x8a\xff" + b"\x01" * 255 + b".", "number of 255 bytes"),
        (b"\x8b" + struct.pack("<I", 2**31 - 1) + b".", "number of"),
    ],
)  # fmt: skip
def test_hostile_and_broken_pickles_are_refused_with_a_reason(content: bytes, reason: str) -> None:
    with pytest.raises(TraceError, match=reason) as caught:
        read(content)
    assert caught.value.hint


@pytest.mark.parametrize(
    "content",
    [
        b"\x8d" + struct.pack("<Q", 2**62),  # a text of four exbibytes
        b"X" + struct.pack("<I", 2**32 - 1),
        b"\x95" + struct.pack("<Q", 2**63),
        b"\x80\x04\x95" + struct.pack("<Q", 2**40) + b"N.",
    ],
)
def test_sizes_beyond_the_file_allocate_nothing(content: bytes) -> None:
    with pytest.raises(TraceError, match="truncated"):
        read(content)


def test_a_key_that_would_overflow_the_stack_when_hashed_is_refused() -> None:
    with pytest.raises(TraceError, match="a key that is not text"):
        read(b"})" + b"\x85" * 300_000 + b"Ns.")


def test_a_large_memo_index_allocates_nothing() -> None:
    assert read(b"Nr\xff\xff\xff\xff0j\xff\xff\xff\xff.") is None


def test_any_truncation_is_reported() -> None:
    complete = pickle.dumps({"segments": [{"a": 1, "b": [1.5, None, True, "text"], "c": (2, 3)}] * 3}, 4)
    for length in range(1, len(complete)):
        with pytest.raises(TraceError):
            read(complete[:length])
    with pytest.raises(TraceError, match=f"truncated at byte {len(complete) - 1}"):
        read(complete[:-1])


@given(st.binary(max_size=60))
@settings(deadline=None)
def test_any_bytes_give_plain_values_or_a_reason(content: bytes) -> None:
    try:
        value = read(content)
    except TraceError as error:
        assert error.message
    else:
        assert type(value) in (type(None), bool, int, float, str, list, tuple, dict)


def test_files_and_container_counts_over_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_pickle, "MAX_BYTES", 2**20)
    with pytest.raises(TraceError, match="larger than 1 MiB"):
        read(b"N" * (2**20 + 1))
    monkeypatch.setattr(plain_pickle, "MAX_CONTAINERS", 100)
    with pytest.raises(TraceError, match="more than 100 lists"):
        read(b"]" * 101)
    assert read(pickle.dumps([[]] * 90)) == [[]] * 90
