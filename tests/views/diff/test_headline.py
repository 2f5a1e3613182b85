"""The headline and the notes of the diff, and what each sentence needs to be true."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from tests.support.claims import repeat
from tests.support.diffs import compare, noise
from tests.support.recordings import Op, record, write_recording
from tests.support.traces import read
from torch_tb_profiler.analyses.diff.changes import Change, Verdict
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.diff.gate import run_checks
from torch_tb_profiler.views.diff.notes import build_notes
from torch_tb_profiler.views.diff.payload import DiffOddStep, DiffSide
from torch_tb_profiler.views.diff.words import headline

MS = 1_000_000
SIDE = DiffSide(0, "CUDA", ["V100"], [2], ["1", "2"], [1, 1], 1.0, None, None, 0, [], [], True, 0, 0, 0)
NO_CHANGE = Change(MS, MS, 0.0, 0.0, -1.0, 1.0, 1.0, "unchanged")


def change(
    verdict: Verdict, candidate: float, interval: tuple[float, float] | None = None, needed: int | None = None
) -> Change:
    """Return a change from a step of 10 ms; times in ms."""
    delta = (candidate - 10) * MS
    low, high = (None, None) if interval is None else (interval[0] * MS, interval[1] * MS)
    return Change(10 * MS, candidate * MS, delta, delta / 10 / MS, low, high, None, verdict, needed)


def headline_text(step: Change, one_run: bool = False, base: DiffSide = SIDE, candidate: DiffSide = SIDE) -> str:
    sides = (
        replace(base, typical_ns=step.base_ns or 0.0),
        replace(candidate, typical_ns=step.candidate_ns or 0.0),
    )
    return plain(headline(step, *sides, 0.02, one_run))


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        (change("slower", 12, (1, 3)), "The step is 2.00 ms (20%) slower: 10.0 ms before, 12.0 ms now."),
        (change("faster", 9, (-2, -0.5)), "The step is 1.00 ms (10%) faster: 10.0 ms before, 9.00 ms now."),
        (
            change("slower", 10.02, (0.01, 0.03)),
            "The step is 20.0 µs (0.2%) slower: 10.00 ms before, 10.02 ms now.",
        ),
        (change("equal", 10), "Step time is the same on both sides: 10.0 ms."),
        (
            change("unchanged", 10.1, (-0.05, 0.15)),
            "No change in step time: 10.0 ms before, 10.1 ms now. Any difference is under 2% "
            "(95% interval −50.0 µs to +150 µs).",
        ),
        (
            change("cannot_tell", 11, (-1, 3), 14),
            "Inconclusive: 10.0 ms before, 11.0 ms now (+10%, 95% interval −1.00 ms to +3.00 ms). "
            "About 14 steps per side would settle it.",
        ),
        (
            change("cannot_tell", 10.001, (-1, 1), 14),
            "Inconclusive: 10.0 ms before, 10.0 ms now (<0.1%, 95% interval −1.00 ms to +1.00 ms). "
            "About 14 steps per side would settle it.",
        ),
        (
            change("cannot_tell", 10.3, (0.1, 0.5), None),
            "The step is 300 µs (3%) slower: 10.0 ms before, 10.3 ms now (95% interval +100 µs to +500 µs). "
            "Whether the change exceeds the 2% that matters is unclear: more than 10,000 steps per side would be "
            "needed to settle it.",
        ),
        (
            change("cannot_tell", 12),
            "Inconclusive: 10.0 ms before, 12.0 ms now (+20%). At least one side has a single step, so there's no "
            "significance test.",
        ),
    ],
)
def test_the_headline_states_the_change_and_whether_it_is_proven(step: Change, sentence: str) -> None:
    assert headline_text(step) == sentence


def test_one_recording_per_side_of_the_same_run_may_be_noise() -> None:
    step = change("cannot_tell", 9, (-1.2, -0.8))
    assert headline_text(step, one_run=True) == (
        "In this recording, the step is 1.00 ms (10%) faster: 10.0 ms before, 9.00 ms now. "
        "Both sides ran the same program: record each several times to rule out noise."
    )


def test_several_recordings_per_side_need_more_recordings() -> None:
    several = replace(SIDE, recordings=[2, 2])
    answer = headline_text(change("cannot_tell", 11, (-1, 3), 6), one_run=True, base=several)
    assert answer.endswith("About 6 recordings per side would settle it.")


@pytest.mark.parametrize(
    ("base", "candidate", "sides"),
    [([], ["1"], "the base has"), (["1"], [], "the candidate has"), ([], [], "the base and the candidate have")],
)
def test_without_a_complete_step_nothing_is_compared(base: list[str], candidate: list[str], sides: str) -> None:
    answer = plain(
        headline(change("cannot_tell", 10), replace(SIDE, steps=base), replace(SIDE, steps=candidate), 0.02, False)
    )
    assert answer == f"Can't compare step times: {sides} no complete step."


@pytest.mark.parametrize("others", [["1"], ["1", "2"]])
def test_a_trace_without_marks_is_not_compared_with_one_of_many_steps(others: list[str]) -> None:
    """One marked step may be as much as a trace without marks."""
    unmarked, marked = replace(SIDE, steps=["1"], steps_recorded=False), replace(SIDE, steps=others)
    for sides, name in (((unmarked, marked), "base"), ((marked, unmarked), "candidate")):
        answer = plain(headline(change("cannot_tell", 100), *sides, 0.02, False))
        refused = f"Can't compare step times: no steps are marked in the {name}, so all of it counts as one."
        assert (answer == refused) == (len(others) > 1)


def test_what_marked_steps_do_is_not_explained_against_a_whole_trace() -> None:
    work, small = [Op("aten::mm", 30, kernel=500)], noise(1, 0.002, 0.001)
    marked = record(work, 6, small)
    events = json.loads(write_recording(work, 6, small))["traceEvents"]
    whole = read([each for each in events if "ProfilerStep" not in each["name"]])
    payload = compare(marked, whole)
    assert plain(payload.headline).startswith("Can't compare step times") and payload.explanation == []
    (check,) = run_checks(payload, 0.05, None)
    assert (check.passed, check.comparable) == (None, False)
    assert check.message == "not comparable per step: no steps are marked in the candidate"


def note_texts(
    step: Change = NO_CHANGE,
    base: DiffSide = SIDE,
    candidate: DiffSide = SIDE,
    batch_sizes: tuple[int, int] | None = None,
    autocorrelation: float = 0.0,
    one_run: bool = True,
) -> list[str]:
    return [plain(line) for line in build_notes(step, base, candidate, batch_sizes, autocorrelation, one_run)]


def test_notes_say_how_the_recordings_differ() -> None:
    base = replace(SIDE, steps=["1"], left_out=2, outside_calls=1234)
    candidate = replace(SIDE, devices=["H100"], rank=3, steps_recorded=False)
    assert note_texts(change("cannot_tell", 11), base, candidate, (4, 8)) == [
        "1 step in the base, 2 in the candidate. All numbers are per step.",
        "2 steps of the base are left out: device work is missing.",
        "1,234 operator calls in the base are outside the compared steps.",
        "No steps in the candidate trace, so it counts as one. Call `prof.step()` once per iteration.",
        "At least one side has fewer than two steps, so there's no significance test. Record several steps "
        "(`schedule(active=...)`).",
        "Different hardware: V100 in the base, H100 in the candidate.",
        "Different ranks: 0 in the base, 3 in the candidate.",
        "The first dimension of the inputs (often the batch size) is 4 in the base and 8 in the candidate.",
    ]
    assert note_texts() == []


def test_notes_mention_warm_up_and_correlated_steps() -> None:
    base = replace(SIDE, warm_up_ns=[160 * MS], typical_ns=100.0 * MS)
    assert note_texts(base=base, autocorrelation=0.6) == [
        "The first step of the base (160 ms) is left out, as it may be warm-up: a typical one takes 100 ms.",
        "Consecutive steps may be correlated (autocorrelation 0.60), so they count as fewer steps and the "
        "intervals are wider.",
    ]
    assert note_texts(autocorrelation=0.1) == []


def test_steps_are_correlated_where_there_are_enough_to_show_it() -> None:
    def said(steps: int) -> str:
        side = replace(SIDE, recordings=[steps])
        return note_texts(base=side, candidate=side, autocorrelation=0.6)[-1]

    assert said(12).startswith("Consecutive steps are correlated (autocorrelation 0.60), so")
    assert said(6).startswith("Consecutive steps may be correlated (autocorrelation 0.60), so")


def test_a_note_names_each_odd_step_and_its_cause() -> None:
    odd = [DiffOddStep("4", 290.0 * MS, "save_checkpoint"), DiffOddStep("7", -5.0 * MS, "")]
    assert note_texts(candidate=replace(SIDE, odd_steps=odd)) == [
        "Step 4 of the candidate is left out: it takes 290 ms more than a typical step, mostly in "
        "save_checkpoint.",
        "Step 7 of the candidate is left out: it takes 5.00 ms less than a typical step.",
    ]
    four = [DiffOddStep(str(number), MS, "") for number in range(5)]
    assert note_texts(base=replace(SIDE, odd_steps=four))[3:] == ["2 more steps of the base are left out as well."]


def test_a_note_warns_of_a_single_recording_per_side() -> None:
    assert note_texts(one_run=False) == [
        "One recording per side, so run-to-run noise is unknown. Record each side two or three times."
    ]
    assert note_texts(base=replace(SIDE, recordings=[2, 2]), one_run=False) == []


def test_unnamed_devices_and_unknown_ranks_are_not_called_different() -> None:
    unnamed = replace(SIDE, devices=["CUDA 0"], rank=None)
    assert note_texts(candidate=unnamed) == []
    assert len(note_texts(base=replace(SIDE, device_type="ROCm"))) == 1


def test_a_single_step_that_takes_as_long_as_the_other_has_no_sign() -> None:
    one, several = repeat("host cpu_op aten::sort 0 900", steps=1), repeat("host cpu_op aten::sort 0 900", steps=6)
    for pair in ((one, several), (several, one)):
        assert plain(compare(*pair).headline).startswith("Inconclusive: 10.0 ms before, 10.0 ms now (0%).")
