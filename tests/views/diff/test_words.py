"""The sentences that explain a change, and what each of them needs to be true."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from msgspec.structs import replace

from tests.support.diffs import WORK, compare, noise
from tests.support.recordings import Op, record
from torch_tb_profiler import views
from torch_tb_profiler.analyses.diff.changes import ZERO_CHANGE, Change, Verdict
from torch_tb_profiler.analyses.diff.name_tables import CallsPerStep
from torch_tb_profiler.views._shared.text import Text, plain
from torch_tb_profiler.views.diff import words
from torch_tb_profiler.views.diff.payload import (
    DiffBar,
    DiffLevel,
    DiffOperator,
    DiffPart,
    DiffPayload,
    DiffWaterfall,
    Status,
)

MS = 1_000_000
CALLS = CallsPerStep(1, 1, 0)
ROOT = DiffPart(
    "", "step", None, "step", None, "step", "matched", 1, CALLS, ZERO_CHANGE, ZERO_CHANGE, None, None, None, None
)


def change(base: float, candidate: float, verdict: Verdict) -> Change:
    delta = candidate - base
    return Change(base, candidate, delta, delta / base if base else None, None, None, None, verdict)


def level(*operators: DiffOperator, loader_parts: int = 1) -> DiffLevel:
    loader = replace(ROOT, path="3", kind="dataloader", parts=loader_parts)
    return DiffLevel("", [], ROOT, [loader], list(operators), {})


def operator(name: str, delta: float, verdict: Verdict = "slower", status: Status = "matched") -> DiffOperator:
    host = change(MS, MS + delta, verdict)
    return DiffOperator(
        name, "other" if status == "renamed" else None, status, CALLS, host, host, ZERO_CHANGE, ZERO_CHANGE
    )


def explanation_texts(verdict: Verdict, **bars: tuple[int, Verdict]) -> list[str]:
    rows = [
        DiffBar(name, MS, MS + delta, delta, 0, None, None, None, of_bar) for name, (delta, of_bar) in bars.items()
    ]
    delta = sum(delta for delta, _ in bars.values())
    waterfall = DiffWaterfall("category", 10 * MS, 10 * MS + delta, delta, rows)
    return [*map(plain, words.explanation(change(10 * MS, 10 * MS + delta, verdict), waterfall, level()))]


def links(sentences: list[Text]) -> dict[str, str]:
    return {phrase.text: phrase.link for sentence in sentences for phrase in sentence if phrase.link is not None}


def test_the_category_that_explains_the_change() -> None:
    assert explanation_texts("slower", kernel=(9 * MS, "slower"), runtime=(MS, "cannot_tell")) == [
        "Nearly all of the change comes from kernels (+9.00 ms)."
    ]
    assert explanation_texts("slower", kernel=(6 * MS, "slower"), memset=(4 * MS, "slower")) == [
        "The largest part of the change, 60%, comes from kernels (+6.00 ms).",
        "Also significant: memset (+4.00 ms).",
    ]
    assert explanation_texts("faster", dataloader=(-6 * MS, "faster"), memcpy=(MS, "slower")) == [
        "More than the entire change comes from data loading (−6.00 ms); other categories offset part of it.",
        "Also significant: memcpy (+1.00 ms).",
    ]


def test_a_cause_that_is_not_significant_says_so() -> None:
    assert explanation_texts("slower", kernel=(9 * MS, "cannot_tell"), runtime=(MS, "cannot_tell")) == [
        "Nearly all of the change comes from kernels (+9.00 ms), which isn't significant by itself."
    ]


def test_without_a_change_there_is_no_cause() -> None:
    assert explanation_texts("unchanged", kernel=(MS, "cannot_tell")) == []
    assert explanation_texts("equal", kernel=(0, "equal")) == []
    assert explanation_texts(
        "unchanged", kernel=(MS, "slower"), runtime=(-MS, "faster"), other=(1, "cannot_tell")
    ) == ["Significant changes within the step: kernels (+1.00 ms), runtime calls (−1.00 ms)."]


def test_the_operators_that_changed_most() -> None:
    rows = [
        operator("a", 3 * MS),
        operator("b", -2 * MS, "faster", "removed"),
        operator("noisy", 9 * MS, "cannot_tell"),
        operator("c", MS, "slower", "renamed"),
        operator("d", MS, "slower", "added"),
        operator("e", MS),
    ]
    none = DiffWaterfall("category", MS, MS, 0, [])
    (sentence,) = words.explanation(change(MS, MS, "equal"), none, level(*rows))
    assert plain(sentence) == (
        "Operators that changed most: a (+3.00 ms), b (−2.00 ms, removed), c (+1.00 ms, now other) and 2 more."
    )
    assert links([sentence]) == {
        "a": "diff?q=a",
        "b": "diff?q=b",
        "c": "diff?q=c",
        "2 more": "diff?only=1",
    }
    assert words.explanation(change(MS, MS, "equal"), none, level(operator("noisy", MS, "cannot_tell"))) == []


def test_device_time_is_given_where_it_changed_more() -> None:
    row = replace(operator("a", 1, "cannot_tell"), device_self=change(MS, 3 * MS, "slower"))
    none = DiffWaterfall("category", MS, MS, 0, [])
    (sentence,) = words.explanation(change(MS, MS, "equal"), none, level(row))
    assert plain(sentence) == "Operators that changed most: a (+2.00 ms)."
    assert links([sentence]) == {"a": "diff?metric=device_self&q=a"}


@pytest.mark.parametrize(("parts", "target"), [(2, "diff?part=3"), (0, "trace")])
def test_data_loading_opens_its_part(parts: int, target: str) -> None:
    bar = DiffBar("dataloader", 0, MS, MS, MS, None, None, None, "slower")
    fall = DiffWaterfall("category", MS, 2 * MS, MS, [bar])
    sentences = words.explanation(change(MS, 2 * MS, "slower"), fall, level(loader_parts=parts))
    assert links(sentences) == {"data loading": target}


def sentences_of(payload: DiffPayload) -> list[Text]:
    return [payload.headline, *payload.explanation, *payload.notes]


def test_each_link_opens_something() -> None:
    slow = [Op("aten::data", 900), Op("aten::mm", 300), *WORK[1:]]
    answer = compare(record(WORK, 6, noise(1)), record(slow, 6, noise(2)))
    targets = links(sentences_of(answer))
    assert len(targets) >= 4
    for target in targets.values():
        tab, _, query = target.partition("?")
        assert tab in views.SLUGS
        assert {name for name, _ in parse_qsl(query)} <= {"table", "metric", "q", "only", "part"}


def test_names_in_a_trace_are_not_read_as_templates() -> None:
    hostile = "{evil} <b>"
    slow = [*WORK, Op(hostile, 4000)]
    answer = compare(record(WORK, 6, noise(1)), record(slow, 6, noise(2)))
    assert hostile in plain(answer.explanation[-1])
