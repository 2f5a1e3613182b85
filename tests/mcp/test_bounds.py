"""Answers that fit: what is left out is said, and can be asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_tb_profiler.base.errors import NotFoundError, UsageError
from torch_tb_profiler.mcp.bounds import MAX_BYTES, as_text


def test_what_fits_is_whole() -> None:
    payload = {"rows": [{"name": "aten::mm", "ns": 2**62}], "none": None}
    assert json.loads(as_text(payload)) == {"answer": payload}


def test_pages_hold_all_items_once() -> None:
    rows = [{"name": f"kernel {number}", "ns": number} for number in range(3000)]
    seen: list[Any] = []
    while len(seen) < len(rows):
        text = as_text({"other": 1, "rows": rows}, "/rows", len(seen))
        assert len(text.encode()) <= MAX_BYTES
        page = json.loads(text)
        assert page["left_out"] == [
            {"field": "/rows", "first": len(seen), "shown": len(page["answer"]), "of": len(rows)}
        ]
        assert len(text.encode()) > MAX_BYTES / 2 or len(seen) + len(page["answer"]) == len(rows)
        seen += page["answer"]
    assert seen == rows


def test_lists_in_items_are_noted_once_with_the_longest() -> None:
    rows = [{"a/b": [*range(size)]} for size in (100, 9000, 10)]
    answer = json.loads(as_text({"rows": rows}))
    (note,) = answer["left_out"]
    assert (note["field"], note["of"]) == ("/rows/*/a~1b", 9000)
    inner = json.loads(as_text({"rows": rows}, "/rows/1/a~1b", 8990))
    assert inner["answer"] == [*range(8990, 9000)]


def test_texts_are_shortened_and_continued() -> None:
    name = "é" * 50_000
    answer = json.loads(as_text({"name": name}))
    assert answer["left_out"] == [
        {"field": "/name", "first": 0, "shown": len(answer["answer"]["name"]), "of": 50_000}
    ]
    assert json.loads(as_text({"name": name}, "/name", 49_990))["answer"] == "é" * 10


_JSON = st.recursive(
    st.none() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


@settings(max_examples=15)
@given(_JSON, st.integers(0, 1000))
def test_no_answer_is_larger(value: Any, times: int) -> None:
    for payload in ([value] * times, {"a": [[value] * 20] * 20, "n" * times * 10: value}):
        text = as_text(payload)
        assert len(text.encode()) <= MAX_BYTES
        answer = json.loads(text)
        assert ("left_out" in answer) != (answer["answer"] == payload)


def test_what_cannot_be_is_refused_with_a_hint() -> None:
    payload = {"rows": [1, 2], "n": 3}
    for field, hint in (("/row", "rows, n"), ("/rows/2", "below 2"), ("/rows/x", "below 2"), ("/n/a", "nothing")):
        with pytest.raises(NotFoundError) as failure:
            as_text(payload, field)
        assert hint in str(failure.value.hint)
    for field, first in (("rows", 0), ("/n", 1), ("/rows", -1)):
        with pytest.raises(UsageError):
            as_text(payload, field, first)
