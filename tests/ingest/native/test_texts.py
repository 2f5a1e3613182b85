"""A trace with new texts in every event: they stay in buffers, and what is read is the same."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.ingest.native.comparison import NEEDED, differences, outcome, read_in_python
from tests.ingest.native.test_equal import ODD_EVENTS, event
from tests.ingest.test_mutations import LAYOUTS
from torch_tb_profiler.base.arrays import ArrowTexts, text_array_from_bytes
from torch_tb_profiler.ingest.kineto import codes, document
from torch_tb_profiler.ingest.kineto.codes import TextCodes
from torch_tb_profiler.ingest.kineto.native import decode
from torch_tb_profiler.model.trace import Int64, Trace

ODD_TEXTS = ["", ",", '","', ",,", "[", "]", "null", "é", "\U0001f600", "a b", "tab\t", 'quote"', "back\\slash"]
ALL = pytest.mark.parametrize("many", [1, 30], ids=["all", "large ones"])


@pytest.fixture
def many() -> int:
    return 1


@pytest.fixture(autouse=True)
def buffers(monkeypatch: pytest.MonkeyPatch, many: int) -> list[int]:
    """Few texts are many; lists how many each buffer holds."""
    held: list[int] = []

    def note(lengths: Int64, content: bytes) -> Any:
        held.append(len(lengths))
        return text_array_from_bytes(lengths, content)

    monkeypatch.setattr(codes, "_MIN_BUFFERED_BYTES", many)
    monkeypatch.setattr(codes, "text_array_from_bytes", note)
    return held


def read(table: TextCodes, *batches: list[str]) -> list[str]:
    """Return the texts that the codes of all batches stand for in the end."""
    given = [table.encode_json(msgspec.json.encode(batch)) for batch in batches]
    texts, code_of = table.merge()
    assert len(set(texts)) == len(texts)
    return [texts[code] for part in given for code in code_of(part)]


@ALL
@pytest.mark.parametrize("first", [[], ["own", "c"], ODD_TEXTS], ids=["none", "own", "odd"])
def test_texts_in_buffers_equal_the_given_texts(first: list[str], many: int) -> None:
    """Also those that are in several, or had a code before, or look like the signs between them."""
    plain = [text for text in ODD_TEXTS if not set(text) & set('"\\\t')]
    batches = [["a", "b", "c"], plain, ["c", "d", "own"], [*plain[::-1], "e"], ['quote"'], ["f"] * 20]
    table = TextCodes()
    own = table.encode(first)
    assert read(table, *batches) == [text for batch in batches for text in batch]
    assert own.tolist() == list(range(len(first)))


def test_each_text_is_stored_once_and_most_in_arrow(buffers: list[int]) -> None:
    table = TextCodes()
    for batch in (b'["a","b"]', b'["b","c"]'):
        table.encode_json(batch)
    assert buffers == [2, 2]
    texts, _ = table.merge()
    assert isinstance(texts, ArrowTexts) and [*texts] == ["a", "b", "c"]


def test_half_a_surrogate_pair_keeps_its_place() -> None:
    table = TextCodes()
    assert table.encode(["\ud800", "a"]).tolist() == [0, 1]
    given = table.encode_json(b'["a","b"]')
    texts, code_of = table.merge()
    assert [*texts] == ["\ud800", "a", "b"]
    assert code_of(np.array([0, *given], np.int32)).tolist() == [0, 1, 2]


def events(count: int) -> list[dict[str, Any]]:
    """Return events with a text that is new, one that some share, an odd one, and one that becomes a number."""
    return [
        event(
            ts=i,
            args={
                "new": f"text {i}",
                "shared": f"text {i % 97}",
                "odd": ODD_TEXTS[i % len(ODD_TEXTS)] + str(i // 500),
                "mixed": f"text {i}" if i % 3 else i,
            },
        )
        for i in range(count)
    ]


@NEEDED
@ALL
@pytest.mark.parametrize("token_bytes", [1 << 12, 1 << 30], ids=["forgotten", "known"])
def test_columns_of_new_texts_are_equal(
    token_bytes: int, monkeypatch: pytest.MonkeyPatch, buffers: list[int]
) -> None:
    """Read in many jobs on several threads, with blocks between them that the plain way reads."""
    monkeypatch.setattr(document, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(document, "_EDGE", 1 << 8)
    monkeypatch.setattr(decode, "BLOCKS_PER_JOB", 2)
    monkeypatch.setattr(decode, "_MIN_TAKE_ROWS", 300)
    monkeypatch.setattr(decode, "_MAX_TOKEN_BYTES", token_bytes)
    written = [json.dumps(each, ensure_ascii=False) for each in events(3000)]
    written[1000:1000] = ODD_EVENTS.values()
    written.insert(2000, json.dumps(event(ts=7, args={"new": "\ud800", "shared": "text 5", "ts": 1})))
    content = f"[{', '.join(written)}]".encode()
    plain = read_in_python(content)
    assert isinstance(plain, Trace) and not buffers
    native = outcome(content)
    assert isinstance(native, Trace)
    assert differences(native, plain) == []
    assert len(buffers) > 10 and sum(buffers) >= 3000


@NEEDED
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_texts_of_recorded_traces_are_the_same(layout: str) -> None:
    assert differences(outcome(LAYOUTS[layout]), read_in_python(LAYOUTS[layout])) == []


@NEEDED
def test_a_dictionary_in_buffers_holds_no_python_texts() -> None:
    trace = outcome(json.dumps(events(500), ensure_ascii=False).encode())
    assert isinstance(trace, Trace)
    assert isinstance(trace.args["new"].dictionary, ArrowTexts) and len(trace.args["new"].dictionary) == 500
    assert len(trace.args["shared"].dictionary) == 97
