"""Plurals, articles, agreement and lists of generated sentences."""

from __future__ import annotations

import pytest

from torch_tb_profiler.base.grammar import (
    agree,
    all_of,
    capitalize,
    join_words,
    list_options,
    per_step,
    plural,
    share_base,
    with_article,
)


def test_a_count_agrees_with_its_noun() -> None:
    assert [plural(count, "block") for count in (0, 1, 1200)] == ["0 blocks", "1 block", "1,200 blocks"]
    assert [agree(count, "is", "are") for count in (0, 1, 2)] == ["are", "is", "are"]


@pytest.mark.parametrize(
    ("noun", "several"),
    [
        ("memory copy", "memory copies"),
        ("process", "processes"),
        ("batch", "batches"),
        ("matrix box", "matrix boxes"),
        ("GPU", "GPUs"),
        ("array", "arrays"),
        ("launch", "launches"),
    ],
)
def test_nouns_take_their_regular_plural(noun: str, several: str) -> None:
    assert plural(2, noun) == f"2 {several}"
    assert plural(1, noun) == f"1 {noun}"


@pytest.mark.parametrize(
    "phrase",
    [
        "a step",
        "an operator",
        "an average step",
        "an NPU",
        "an HPU",
        "an XPU",
        "an MTIA device",
        "a GPU",
        "a CPU thread",
        "an H100",
        "a unit",
        "a user annotation",
        "an unlinked kernel",
        "a one-step trace",
        "an 8 GiB device",
        "an 11 ms gap",
        "a 112 ms step",
        "an 80 GiB device",
        "a 100 ms gap",
        "an hour",
        "a host",
        "an Ascend device",
        "a Gaudi device",
    ],
)
def test_the_article_follows_the_sound(phrase: str) -> None:
    assert with_article(phrase.partition(" ")[2]) == phrase


def test_words_are_joined_with_commas_and_one_and() -> None:
    assert [join_words(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_two_are_both_and_one_is_the_one() -> None:
    assert [all_of(count, "rank") for count in (1, 2, 1200)] == ["the rank", "both ranks", "all 1,200 ranks"]


def test_only_the_first_letter_becomes_a_capital() -> None:
    assert [capitalize(text) for text in ("", "rank 0 of NVLink", "µs")] == ["", "Rank 0 of NVLink", "Μs"]


@pytest.mark.parametrize(
    ("steps", "recorded", "base"),
    [(1, True, "the step"), (2, True, "an average step"), (0, True, "an average step"), (1, False, "the trace")],
)
def test_shares_refer_to_a_step_or_the_trace(steps: int, recorded: bool, base: str) -> None:
    assert share_base(steps, recorded) == base


def test_times_refer_to_a_step_or_the_trace() -> None:
    assert (per_step(True), per_step(False)) == ("per step", "in the recording")


@pytest.mark.parametrize(
    ("count", "last"), [(1, "0"), (20, "19"), (21, "19 and 1 more"), (1220, "19 and 1,200 more")]
)
def test_a_long_list_of_options_says_how_many_more_there_are(count: int, last: str) -> None:
    said = list_options("steps", map(str, range(count)))
    assert said.startswith("steps: 0") and said.endswith(last)
