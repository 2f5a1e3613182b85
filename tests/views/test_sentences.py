"""What the views say of the real runs, as it was read and approved: `sentences.tsv` has every sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.views.figures import numbers, unheld
from tests.views.sentences import Row, read_table, sentences
from torch_tb_profiler.base.format import parse_duration

NOUNS = "step|kernel|call|operator|collective|allocation|rank|slice|module|copy|trace|recording|worker|launch"


@pytest.mark.slow
@pytest.mark.xdist_group("corpus")
def test_every_sentence_is_the_one_that_was_read(corpus: Path) -> None:
    """After a change of words: `python -m tests.views.sentences`, and read what differs."""
    beyond: list[Row] = []
    found, read = list(sentences(corpus, beyond)), read_table()
    assert [row for row in found if row not in set(read)] == []
    assert found == read
    assert [row for row in beyond if not any(re.search(where, " ".join(row[1:])) for where in ELSEWHERE)] == []


ELSEWHERE = {
    r"^overview recommendations\.text ": "what a rule measures; *Show it* opens the rows",
    r"^overview (?:headline|spent) .* idle for ": "the sum of the categories in which every device is idle",
    r"^overview explanation .* The model processes": "the time of iterations is in Roofline",
    r"^memory (?:devices\.)?headline .* allocated ": "what allocated the peak is in `memory/live` at its instant",
    r"^memory (?:devices\.)?headline .* before the trace started": "what `memory/live` has outside of the trace",
    r" than a typical step ": "the difference of an odd step and the typical one",
    r"^idle headline .* of a typical step ": "the sums over the typical steps, by their number",
    r"^critical_path explanation .*(?:Halving|Kernels (?:and copies )?(?:up to )?twice)": (
        "the curve at half the kernels, a part of its own"
    ),
    r"^roofline headline .* At its roof": "the time of a row less what it would save",
    r"^distributed stragglers\.why ": "the difference of two rows",
    r"^distributed headline .* differences between the ranks cost ": "what the job with equal ranks takes less",
    r"^diff headline ": "the difference of the two steps that are named",
    r"^lightning details ": "the sum of the hooks",
}
"""Sentences with times or sizes that are no number of their payload: where these are from."""


def test_a_figure_that_its_payload_does_not_hold_is_noticed() -> None:
    held = numbers({"steps": 4, "busy_ns": 1_234_567, "total_ns": [2_000_000, -5 * 2**20]})
    assert list(unheld(held, "1.23 ms of 2.00 ms, 500 µs a step, 5.00 MiB; 309 µs a step")) == []
    assert list(unheld(held, "1.24 ms, 5.01 MiB, 1 s")) == ["1.24 ms", "5.01 MiB", "1 s"]
    assert list(unheld(held, "up to 1.24 ms, no more than 1.24 ms, at least 1.23 ms")) == []
    assert list(unheld(held, "up to 1.23 ms, at least 1.24 ms")) == ["1.23 ms", "1.24 ms"]


def one_and_many(sentence: str) -> bool:
    many = re.search(rf"(?<![\d.,])1 (?:[a-z]+ )?(?:{NOUNS})(?:e?s)\b(?! is)", sentence)
    one = re.search(rf"(?<![\d.,#])(?:[2-9]|\d[\d,]*\d) (?:{NOUNS})\b(?! calls)", sentence)
    return many is None and one is None


def no_share_above_the_whole(sentence: str) -> bool:
    """Return whether no share exceeds the whole; changes of Diff have a sign, or what they mean behind them."""
    shares = re.findall(r"(?<![+\d,.])([\d,.]+)%(?!\) (?:slower|faster))", sentence)
    return all(float(share.replace(",", "")) <= 100 for share in shares)


def no_accident(sentence: str) -> bool:
    """Find accidents of templates and numbers."""
    return not re.search(
        r"  | [.,;:)]|\.\.|\{|\}|\bNone\b(?! of)|\bnan\b|\binf\b|^[a-z]+ $|^$", sentence.replace("...", "…")
    )


def verbs_agree(sentence: str) -> bool:
    """Check that the verb agrees with a plural that begins a sentence."""
    return not re.search(
        r"(?:^|\. )(?:[A-Z]\w* )?(?:calls|kernels|copies|modules|ranks) (?:is|takes|has)\b", sentence
    )


def launch_bound_is_slower_to_launch_than_to_run(sentence: str) -> bool:
    pace = re.search(
        r"the host launches one kernel every ([\d,.]+ \S+); the \w+ finishes one in ([\d,.]+ \S+)", sentence
    )
    return pace is None or parse_duration(pace[1].replace(",", "")) > parse_duration(pace[2].replace(",", ""))


@pytest.mark.parametrize(
    ("law", "against"),
    [
        (one_and_many, "1 steps vary."),
        (one_and_many, "3 step vary."),
        (no_share_above_the_whole, "163% of the step."),
        (no_accident, "It takes {time}."),
        (no_accident, "It takes 3 ms ."),
        (verbs_agree, "Allocator calls is 99.3 ms of the critical path."),
        (
            launch_bound_is_slower_to_launch_than_to_run,
            "Launch-bound: the host launches one kernel every 9.17 µs; the GPU finishes one in 422 µs (medians).",
        ),
    ],
)
def test_the_laws_of_sentences(law: Callable[[str], bool], against: str) -> None:
    assert [row for row in read_table() if not law(row[3])] == []
    assert not law(against)


def test_one_step_is_not_called_every_step() -> None:
    """The Overview says how many steps there are."""
    rows = read_table()
    alone = {run for run, view, field, text in rows if view == "overview" and "1 complete step" in text}
    assert alone
    plural = re.compile(r"\b(?:each|every|average) step\b|\d [nµm]?s a step\b")
    # What is advised is about the loop, of which one step is recorded.
    claims = [(run, view, text) for run, view, _, text in rows]
    assert [row for row in claims if row[0] in alone and row[1] != "diff" and plural.search(row[2])] == []


def test_nothing_is_said_of_a_device_that_did_nothing() -> None:
    rows = read_table()
    hosts = {run for run, view, field, text in rows if view == "trace" and "no GPU work" in text}
    assert hosts
    claims = re.compile(
        r"\b(?:GPU|device) (?:\d+ )?(?:is busy|is idle|waits)|Tensor Cores|of (?:the )?kernel time"
    )
    assert [row for row in rows if row[0] in hosts and claims.search(row[3])] == []


def test_the_overview_and_idle_time_say_alike_who_is_late() -> None:
    """Where the device has its next work for most of its waiting, what the host does meanwhile is not why."""
    rows = read_table()
    submitted = re.compile(
        r"with work (?:already )?submitted|launched before the recording|already submitted|between queued kernels"
    )
    first = {(run, view): text for run, view, field, text in reversed(rows) if field == "headline"}
    late = [run for (run, view), text in first.items() if view == "idle" and submitted.search(text)]
    waits = [first[run, "overview"] for run in late if " idle for " in first[run, "overview"]]
    assert len(waits) >= 2
    assert [text for text in waits if "its next work already submitted" not in text] == []
