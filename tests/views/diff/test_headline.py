"""What is said of the step, and what each word needs to be true."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from torch_tb_profiler.analyses.diff.changes import Change, Verdict
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.diff.notes import notes
from torch_tb_profiler.views.diff.payload import DiffSide
from torch_tb_profiler.views.diff.verdicts import headline

MS = 1_000_000
SIDE = DiffSide(0, "CUDA", ["V100"], [2], ["1", "2"], [1, 1], 1.0, None, None, 0, [], True, 0, 0, 0)
NO_CHANGE = Change(MS, MS, 0.0, 0.0, -1.0, 1.0, 1.0, "unchanged")


def change(
    verdict: Verdict, candidate: float, interval: tuple[float, float] | None = None, needed: int | None = None
) -> Change:
    """From a step of 10 ms; times in ms."""
    delta = (candidate - 10) * MS
    low, high = (None, None) if interval is None else (interval[0] * MS, interval[1] * MS)
    return Change(10 * MS, candidate * MS, delta, delta / 10 / MS, low, high, None, verdict, needed)


def said(step: Change, one_run: bool = False, base: DiffSide = SIDE, candidate: DiffSide = SIDE) -> str:
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
        (change("equal", 10), "Step time is the same on both sides: 10.0 ms."),
        (
            change("unchanged", 10.1, (-0.05, 0.15)),
            "Step time is unchanged: 10.0 ms before, 10.1 ms now. Any change is below 2% "
            "(95% interval −50.0 µs to +150 µs).",
        ),
        (
            change("cannot_tell", 11, (-1, 3), 14),
            "Cannot tell whether the step is slower or faster: 10.0 ms before, 11.0 ms now (+10%, "
            "95% interval −1.00 ms to +3.00 ms). About 14 steps of each side would tell.",
        ),
        (
            change("cannot_tell", 10.001, (-1, 1), 14),
            "Cannot tell whether the step is slower or faster: 10.0 ms before, 10.0 ms now (<0.1%, "
            "95% interval −1.00 ms to +1.00 ms). About 14 steps of each side would tell.",
        ),
        (
            change("cannot_tell", 10.3, (0.1, 0.5), None),
            "The step is 300 µs (3%) slower: 10.0 ms before, 10.3 ms now (95% interval +100 µs to +500 µs). "
            "Cannot tell whether by the 2% that matter. More than 10,000 steps of each side would be needed.",
        ),
        (
            change("cannot_tell", 12),
            "Cannot tell whether the step is slower or faster: 10.0 ms before, 12.0 ms now (+20%). "
            "A side has fewer than two steps, so this may be chance.",
        ),
    ],
)
def test_the_step(step: Change, sentence: str) -> None:
    assert said(step) == sentence


def test_two_recordings_of_one_run_are_no_two_programs() -> None:
    step = change("cannot_tell", 9, (-1.2, -0.8))
    assert said(step, one_run=True) == (
        "The step is 1.00 ms (10%) faster in this recording of the run: 10.0 ms before, 9.00 ms now. Both ran the "
        "same program, so this may be how far its recordings differ; compare several of each."
    )


def test_of_several_recordings_more_recordings_tell() -> None:
    several = replace(SIDE, recordings=[2, 2])
    answer = said(change("cannot_tell", 11, (-1, 3), 6), one_run=True, base=several)
    assert answer.endswith("About 6 recordings of each side would tell.")


@pytest.mark.parametrize(
    ("base", "candidate", "sides"),
    [([], ["1"], "base"), (["1"], [], "candidate"), ([], [], "base or the candidate")],
)
def test_without_a_complete_step_nothing_is_compared(base: list[str], candidate: list[str], sides: str) -> None:
    answer = plain(
        headline(change("cannot_tell", 10), replace(SIDE, steps=base), replace(SIDE, steps=candidate), 0.02, False)
    )
    assert answer == f"Step times cannot be compared: there is no complete step in the {sides}."


def noted(
    step: Change = NO_CHANGE,
    base: DiffSide = SIDE,
    candidate: DiffSide = SIDE,
    batch_sizes: tuple[int, int] | None = None,
    autocorrelation: float = 0.0,
    one_run: bool = True,
) -> list[str]:
    return [plain(line) for line in notes(step, base, candidate, batch_sizes, autocorrelation, one_run)]


def test_notes_tell_how_the_recordings_differ() -> None:
    base = replace(SIDE, steps=["1"], left_out=2, outside_calls=1234)
    candidate = replace(SIDE, devices=["H100"], rank=3, steps_recorded=False)
    assert noted(change("cannot_tell", 11), base, candidate, (4, 8)) == [
        "Steps: 1 in the base, 2 in the candidate. All numbers are per step.",
        "Steps of the base not counted because their device work is missing: 2.",
        "Operator calls of the base outside the counted steps: 1,234.",
        "The candidate has no ProfilerStep: the whole trace counts as one step.",
        "A side has fewer than two steps, so changes cannot be told from chance. Record several steps "
        "(`schedule(active=...)`).",
        "Different hardware: V100 in the base, H100 in the candidate.",
        "Different ranks: 0 in the base, 3 in the candidate.",
        "The first dimension of inputs (often the batch) is 4 in the base and 8 in the candidate.",
    ]
    assert noted() == []


def test_what_was_left_out_and_what_widens_the_interval_is_said() -> None:
    assert noted(base=replace(SIDE, warm_up_ns=[160 * MS]), autocorrelation=0.6) == [
        "The first step of the base (160 ms) is left out as warm-up: it takes more than 1.2 times the median of "
        "the others.",
        "Steps resemble the one before (autocorrelation 0.60), so they count as fewer and the intervals are "
        "wider.",
    ]
    assert noted(autocorrelation=0.1) == []


def test_a_mean_that_a_long_step_moves_is_said() -> None:
    typical = replace(SIDE, typical_ns=float(MS))
    step = replace(NO_CHANGE, candidate_ns=1.5 * MS, delta_ns=0.5 * MS)
    assert noted(step, typical, typical) == [
        "A few steps are much longer or shorter than the others. The verdict is about typical steps, without the "
        "longest and the shortest fifth; means over all steps are 1.00 ms and 1.50 ms."
    ]


def test_one_recording_of_each_of_two_runs_is_said_to_be_one() -> None:
    assert [line[:27] for line in noted(one_run=False)] == ["One recording of each side:"]
    assert noted(base=replace(SIDE, recordings=[2, 2]), one_run=False) == []


def test_unnamed_devices_and_unknown_ranks_are_not_called_different() -> None:
    unnamed = replace(SIDE, devices=["CUDA 0"], rank=None)
    assert noted(candidate=unnamed) == []
    assert len(noted(base=replace(SIDE, device_type="ROCm"))) == 1
