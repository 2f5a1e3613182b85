"""Random jobs with planted causes: nothing that is said of them is false, and the causes are named.

`python -m tests.support.random_jobs --jobs 1000` judges more of them; with `--jobs 1 --first SEED --show` it draws
one again and prints what every surface says of it.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from tests.support.examples import examples
from tests.support.random_jobs.__main__ import MIN_FOUND_SHARE
from tests.support.random_jobs.diff_rules import judge_comparison
from tests.support.random_jobs.judge import judge_job, judge_sentence, split_sentences
from tests.support.random_jobs.plan import SHARED_OPERATOR, JobPlan
from tests.support.random_jobs.rules import Context
from tests.support.random_jobs.surfaces import JobSurfaces
from tests.support.random_jobs.truth import JobTruth
from tests.support.random_jobs.variants import KINDS, draw_job
from tests.support.simulation.simulator import (
    Call,
    Collective,
    Delay,
    Host,
    SimulatedKernel,
    Simulation,
    Sync,
    ddp,
    pipeline,
)
from torch_tb_profiler.analyses.distributed import causes, costs, late_once, significance, suspects
from torch_tb_profiler.analyses.distributed.comparison import compare_ranks
from torch_tb_profiler.analyses.distributed.waiting import WaitingSplit
from torch_tb_profiler.analyses.overview import advice, dominant_frames, host_rules
from torch_tb_profiler.analyses.overview.gains import estimate_gains
from torch_tb_profiler.analyses.schedule.what_if import what_if_curves
from torch_tb_profiler.model.hardware import peaks
from torch_tb_profiler.views._shared.job import members
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.critical_path import build as path_build
from torch_tb_profiler.views.diff import words as diff_words
from torch_tb_profiler.views.idle import ranks as idle_ranks

SEEDS = (
    *range(88), 123, 260, 341, 389, 472, 612, 733, 1055, 1111, 1126,
    1146, 1157, 2044, 2199, 3139, 4014, 4128, 4351, 4420, 4661,
    5002, 5076, 5145, 5329, 5425, 5641, 6039, 6372, 6888, 7211, 20030, 20152, 45084, 45427, 45455, 45120, 45890,
    45886, 46869, 46043, 47743, 48600, 47325, 52412, 48094, 48443, 49093, 50109, 51120,
)  # fmt: skip
"""A hundred jobs; of the last ones something was said that no rule knew, or that was false."""

BATCH = 20


@pytest.mark.parametrize("first", range(0, len(SEEDS), BATCH))
def test_nothing_said_of_a_random_job_is_false_and_its_causes_are_named(first: int) -> None:
    judged = [judge_job(seed) for seed in SEEDS[first : first + examples(BATCH)]]
    false = [str(claim) for judgment in judged for claim in judgment.false]
    assert not false, "\n".join(false)
    planted = [judgment for judgment in judged if judgment.found is not None]
    found = sum(bool(judgment.found) for judgment in planted)
    assert found >= MIN_FOUND_SHARE * len(planted), [judgment.missed for judgment in planted if judgment.missed]


def test_the_jobs_have_every_cause_and_trouble() -> None:
    plans = [draw_job(seed) for seed in SEEDS]
    kinds = {cause.kind for plan in plans for cause in plan.causes}
    assert kinds == {"host", "frame", "loading", "work", "device", "larger", "rows"}
    further = {"evaluation", "accumulation", "checkpoint", "rows", "network", *KINDS}
    assert {plan.kind for plan in plans} == {"rank", "half", "in turn", "stall", "devices"} | further
    assert {plan.shared[0] for plan in plans if plan.shared} == {"loading", "host", "allocator", "copies"}
    assert (
        min(sum(map(bool, column)) for column in zip(*((p.odd, p.missing, p.ahead) for p in plans), strict=True))
        > 9
    )
    assert draw_job(7) == draw_job(7) != draw_job(8)


def test_sentences_end_at_a_full_stop_before_the_next() -> None:
    assert split_sentences("It takes 1.5 ms. 3 of 4 were compared; Rank 1 is late. So.") == [
        "It takes 1.5 ms.",
        "3 of 4 were compared; Rank 1 is late.",
        "So.",
    ]


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("Operators on the host are the largest part of an average step: 100%, most of it in aten::addmm.", None),
        ("Operators on the host are the largest part of an average step: 100%, most of it in aten::mm.", "only"),
        ("Operators on the host are the largest part of an average step: 60%, most of it in aten::addmm.", "not"),
    ],
)
def test_a_rule_checks_in_which_operator_most_of_a_step_is(sentence: str, reason: str | None) -> None:
    why = judge_sentence(sentence, Context(JobTruth.of(draw_job(612)), 0))
    assert why is None if reason is None else why is not None and reason in why


@pytest.mark.parametrize(("cost", "is_true"), [("3.37 ms", True), ("6.88 ms", False), ("1.00 ms", False)])
def test_a_rule_checks_what_a_rank_costs_whose_delays_a_missing_one_has_in_other_steps(
    cost: str, is_true: bool
) -> None:
    """Without the delays of rank 2 in every second of six steps, these are 6.9 ms shorter."""
    sentence = f"Rank 2 costs the others most: {cost} per step."
    assert (judge_sentence(sentence, Context(JobTruth.of(draw_job(4661)), 0)) is None) == is_true


@pytest.mark.parametrize(
    ("rank", "words", "is_true"),
    [
        (1, "3.00 ms, 22% on this rank alone", True),
        (1, "2.00 ms, 15% on this rank alone", False),
        (0, "4.00 ms, 29% on this rank alone", True),
        (0, "3.00 ms, 22% on this rank alone", False),
        (1, "3.00 ms, 22%", False),  # the job saves all of it
        (1, "4.00 ms, 29%", True),
    ],
)
def test_a_rule_checks_what_a_stage_saves_whose_device_works_meanwhile(
    rank: int, words: str, is_true: bool
) -> None:
    """Both stages load for 4 ms first; meanwhile the device of the second one works for 1 ms."""
    programs = [[Host(SHARED_OPERATOR, 4000), *program] for program in pipeline(2)]
    simulation = Simulation(programs, delays=[Delay("work", 1, us=1000)], syncs=True)
    shared = ("host", 4000.0)
    plan = JobPlan(0, simulation, "rank", tuple(simulation.delays), shared, None, (0, 1), {})
    sentence = f"Look into {SHARED_OPERATOR}: saves up to {words} (what-if)"
    assert (judge_sentence(sentence, Context(JobTruth.of(plan), rank)) is None) == is_true


@pytest.mark.parametrize(
    ("saved", "is_true"),
    [("500 µs", True), ("400 µs", True), ("900 µs", False), ("at most 500 µs", True), ("at most 400 µs", False)],
)
def test_a_rule_checks_that_kernels_save_at_most_what_is_said(saved: str, is_true: bool) -> None:
    simulation = Simulation([[SimulatedKernel("gemm", 1000), Sync()]], syncs=True)
    plan = JobPlan(0, simulation, "rank", (), None, None, (0,), {})
    sentence = f"Kernels twice as fast would save {saved}."
    assert (judge_sentence(sentence, Context(JobTruth.of(plan), 0)) is None) == is_true


@pytest.mark.parametrize(("then", "is_true"), [("1.0 ms", True), ("1.3 ms", False), ("0.5 ms", False)])
def test_a_rule_checks_what_no_calls_of_the_allocator_save(then: str, is_true: bool) -> None:
    """A step computes for 1 ms, then frees for 0.5 ms."""
    calls = Call("cudaFree", 500, waits=True)
    simulation = Simulation([[SimulatedKernel("gemm", 1000), calls, Sync()]], syncs=True)
    plan = JobPlan(0, simulation, "allocator", (), ("allocator", 500.0), None, (0,), {})
    sentence = f"Removing the allocator's calls, with their waits for the device, would cut the step to {then}."
    assert (judge_sentence(sentence, Context(JobTruth.of(plan), 0)) is None) == is_true


@pytest.mark.parametrize(("saved", "is_true"), [("500 µs", True), ("300 µs", False), ("700 µs", False)])
def test_a_rule_checks_what_is_saved_at_least(saved: str, is_true: bool) -> None:
    """A step computes for 1 ms, then frees for 0.5 ms."""
    calls = Call("cudaFree", 500, waits=True)
    simulation = Simulation([[SimulatedKernel("gemm", 1000), calls, Sync()]], syncs=True)
    plan = JobPlan(0, simulation, "allocator", (), ("allocator", 500.0), None, (0,), {})
    sentence = f"Stop cudaMalloc/cudaFree during training: saves at least {saved}, 33% (what-if)"
    assert (judge_sentence(sentence, Context(JobTruth.of(plan), 0)) is None) == is_true


def test_a_stage_alone_doesnt_tell_a_slow_link_from_a_neighbor() -> None:
    """Each message takes 3 ms to transfer, which is more than its size explains, and little of that is waiting."""
    programs = [
        [replace(each, us=3000.0) if isinstance(each, Collective) else each for each in program]
        for program in pipeline(2, 2)
    ]
    simulation = Simulation(programs, syncs=True)
    plan = JobPlan(0, simulation, "network", (), None, None, (1,), {})
    truth = JobTruth.of(plan)
    surfaces = JobSurfaces(truth)
    advice = surfaces.answer("overview", surfaces.workers[0]).recommendations
    text = plain(next(each for each in advice if each.id == "pipeline_waits").text)
    said = split_sentences(text)
    assert [judge_sentence(each, Context(truth, 1)) for each in said] == [None] * len(said)


@pytest.mark.parametrize(("rank", "steps"), [(0, 4), (1, 2)])
def test_a_rule_checks_how_many_steps_a_recording_has_of_each_rank(rank: int, steps: int) -> None:
    """It begins and ends in the first and the last step of rank 0, and in the fourth of six of rank 1."""
    context = Context(JobTruth.of(_cut_plan()), rank)
    us = 1.0 + 0.4 * rank
    for said in range(1, 7):
        why = judge_sentence(f"{said} steps of about {us:.2f} ms.", context)
        assert (why is None) == (said == steps), why


def _cut_plan() -> JobPlan:
    simulation = Simulation([[Host("forward", us)] for us in (1000, 1400)], steps=6)
    return JobPlan(0, simulation, "cut", (), None, None, (0, 1), {}, cut=(0.5, 0.5))


@pytest.mark.parametrize(
    ("sentence", "is_true"),
    [
        ("2 operator calls in the base are outside the compared steps.", True),
        ("1 operator call in the base is outside the compared steps.", False),
        ("3 operator calls in the candidate are outside the compared steps.", True),
        ("0 operator calls in the candidate are outside the compared steps.", False),
    ],
)
def test_a_rule_counts_the_operators_outside_of_the_steps_that_are_compared(sentence: str, is_true: bool) -> None:
    """An evaluation and the odd third step of the base, whose two others have an operator each."""
    plan = replace(_cut_plan(), cut=None)
    base = replace(plan, simulation=replace(plan.simulation, steps=3, between=(2, 300.0)))
    changed = replace(base, simulation=replace(base.simulation, between=(1, 300.0)))
    sides = (Context(JobTruth.of(each), 0, frozenset({2})) for each in (base, changed))
    change = SimpleNamespace(**dict(zip(("before", "after"), sides, strict=True)))
    assert (judge_comparison(sentence, change) is None) == is_true


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("Work is uneven: rank 2 computes 1.50 × as long as the median rank, because gemm runs on {more}.", None),
        (
            "Work is uneven: rank 1 computes 1.50 × as long as the median rank, because gemm runs on {more}.",
            "as many",
        ),
        (
            "Work is uneven: rank 2 computes 2.00 × as long as the median rank, because gemm runs on {more}.",
            "1.50",
        ),
        (
            "Work is uneven: rank 2 computes 1.50 × as long as the median rank, because gemm runs on {most}.",
            "rows",
        ),
        ("No rank is a straggler, but work is uneven: rank 2 has more than the others.", "every step"),
        ("No rank found is a straggler, but work is uneven: rank 1 has more than the others.", "more work"),
    ],
)
def test_a_rule_checks_who_has_more_rows_and_that_it_is_late(sentence: str, reason: str | None) -> None:
    rows = Delay("rows", 2, factor=1.5)
    plan = JobPlan(0, Simulation(ddp(3), delays=[rows]), "rows", (rows,), None, None, (0, 1, 2), {})
    said = sentence.format(more="[1500,1,1] instead of [1000,1,1]", most="[1900,1,1] instead of [1000,1,1]")
    why = judge_sentence(said, Context(JobTruth.of(plan), 0))
    assert why is None if reason is None else why is not None and reason in why


@pytest.mark.parametrize(("gain", "is_true"), [("3.34 ms", True), ("3.96 ms", False), ("2.50 ms", False)])
def test_a_rule_checks_that_a_step_takes_as_long_as_its_copies(gain: str, is_true: bool) -> None:
    """They take 3.92 of 7.25 ms; without them, 3.96 ms would be saved."""
    sentence = f"Use non-blocking copies: saves up to {gain}, 46% on this rank alone (what-if)"
    assert (judge_sentence(sentence, Context(JobTruth.of(draw_job(5076)), 0)) is None) == is_true


@pytest.mark.parametrize(("seed", "is_true"), [(5425, True), (5002, True), (4014, False)])
def test_a_rule_checks_that_a_late_rank_is_called_unclear_only_where_that_may_be_chance(
    seed: int, is_true: bool
) -> None:
    """In 5425 a rank costs 2.6% of steps that vary by 2%; in 5002 none is late in every step."""
    context = Context(JobTruth.of(draw_job(seed)), 0)
    assert (judge_sentence("No rank is a clear straggler.", context) is None) == is_true


@pytest.mark.parametrize(
    ("count", "wait", "time", "is_true"),
    [
        ("2", "17.8 ms", "5.08 ms", True),
        ("3", "17.8 ms", "5.08 ms", False),
        ("2", "8.9 ms", "5.08 ms", False),
        ("2", "17.8 ms", "3.9 ms", False),
    ],
)
def test_a_rule_checks_how_long_few_steps_wait_for_data(count: str, wait: str, time: str, is_true: bool) -> None:
    sentence = (
        f"In {count} steps, training waits {wait} for the next batch (median), but hardly in the others: {time} "
        "per step, averaged over all steps but the first."
    )
    context = Context(JobTruth.of(draw_job(7211)), 0, frozenset({3, 7}))
    assert (judge_sentence(sentence, context) is None) == is_true


@pytest.mark.parametrize(("gain", "is_true"), [("5.09 ms", True), ("2.50 ms", False), ("8.00 ms", False)])
def test_a_rule_checks_what_no_stalls_of_the_loader_save(gain: str, is_true: bool) -> None:
    context = Context(JobTruth.of(draw_job(7211)), 0, frozenset({3, 7}))
    sentence = f"Keep more batches ready: saves up to {gain}, 25.9% on this rank alone (measured share)"
    assert (judge_sentence(sentence, context) is None) == is_true


_FEW = "bout {} steps per side would settle it."


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("A" + _FEW.format(10), None),
        ("A" + _FEW.format(4), "steps per side are recorded"),
        ("A" + _FEW.format(900), "steps would do"),
        ("More than 10,000 steps per side would be needed to settle it.", "steps would do"),
        ("Whether the change exceeds the 2% that matters is unclear: a" + _FEW.format(10), None),
    ],
)
def test_a_rule_checks_how_many_steps_settle_a_comparison(sentence: str, reason: str | None) -> None:
    """Steps vary by 2% of one before, and by less after; the change is nearly of 2.5%."""
    change = _Change([1000, 1020, 980, 1000, 1010], [1025, 1030, 1018, 1027, 1024])
    why = judge_comparison(sentence, change)
    assert why is None if reason is None else why is not None and reason in why


@pytest.mark.parametrize(
    ("before", "is_true"), [((990, 995, 1000, 1005, 1010), True), ((990, 1010, 995, 1005, 1000), False)]
)
def test_a_rule_allows_more_steps_where_they_resemble_the_one_before(
    before: tuple[int, ...], is_true: bool
) -> None:
    change = _Change([*before], [*before])
    assert (judge_comparison("A" + _FEW.format(25), change) is None) == is_true


@pytest.mark.parametrize(
    ("verb", "after", "reason"),
    [
        ("are", (1000, 1010, 995, 1005, 990, 1002), "as independent ones have"),
        ("may be", (1000, 1010, 995, 1005, 990, 1002), None),
        ("are", (990, 992, 997, 1004, 1008, 1009), None),
    ],
)
def test_a_rule_checks_that_steps_show_a_correlation(
    verb: str, after: tuple[int, ...], reason: str | None
) -> None:
    sentence = f"Consecutive steps {verb} correlated (autocorrelation 0.80), so they count as fewer steps."
    why = judge_comparison(sentence, _Change([990, 992, 997, 1004, 1008, 1009], [*after]))
    assert why is None if reason is None else why is not None and reason in why


def test_a_rule_checks_that_a_change_is_near_what_matters() -> None:
    change = _Change([1000, 1001, 999, 1000], [1200, 1201, 1199, 1200])
    why = judge_comparison("Whether the change exceeds the 2% that matters is unclear: a" + _FEW.format(9), change)
    assert why is not None and "clearly" in why


class _Change:
    def __init__(self, before: list[float], after: list[float]) -> None:
        self.before, self.after = (SimpleNamespace(usual_steps=steps) for steps in (before, after))


def _no_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count all waiting as transfer."""
    original = compare_ranks

    def compare(sources: Any) -> Any:
        comparison = original(sources)
        split = comparison.split
        latency = np.where(split.compared, split.transfer + split.waiting, split.transfer)
        changed = WaitingSplit(split.compared, split.complete, latency, np.where(split.compared, 0, split.waiting))
        return structs.replace(comparison, split=changed)

    monkeypatch.setattr(members, "compare_ranks", compare)


def _all_present(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take missing ranks for absent ones."""
    monkeypatch.setattr(
        members, "rank_coverage", lambda comparison, known, unknown: _Coverage(len(comparison.sources))
    )


class _Coverage:
    complete, missing, untimed = True, (), ()

    def __init__(self, count: int) -> None:
        self.compared = self.expected = count


def _anybody_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat any cost as significant and worth naming."""
    monkeypatch.setattr(suspects, "MIN_COST_SHARE", 1e-6)
    monkeypatch.setattr(suspects, "is_significant", lambda *_: True)


def _half_the_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    original = costs._cost_to_others
    monkeypatch.setattr(costs, "_cost_to_others", lambda earlier, members: original(earlier, members) / 2)


def _devices_are_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    """Say of whoever computes longer that its device is slower."""
    monkeypatch.setattr(causes, "_compare_kernel_speed", lambda job, member: causes._KernelSpeed(1.5, True))


def _rows_swap_waiting_and_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the table of one view wrong, but not its sentence."""
    original = idle_ranks._with_waits

    def swap(*arguments: Any) -> Any:
        answer = original(*arguments)
        parts = answer.communication
        assert parts is not None
        moved = structs.replace(parts, waiting_ns=parts.transfer_ns, transfer_ns=parts.waiting_ns)
        return structs.replace(answer, communication=moved)

    monkeypatch.setattr(idle_ranks, "_with_waits", swap)


def _rows_save_half(monkeypatch: pytest.MonkeyPatch) -> None:
    original = what_if_curves
    monkeypatch.setattr(
        path_build, "what_if_curves", lambda *arguments: (original(*arguments) + original(*arguments)[:, :1]) // 2
    )


@pytest.mark.parametrize(
    "mutate", [_rows_swap_waiting_and_transfer, _rows_save_half], ids=lambda each: each.__name__
)
def test_a_row_that_is_wrong_is_noticed(mutate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    judged = (judge_job(seed) for seed in range(25))
    assert any(claim.surface.endswith(" row") for judgment in judged for claim in judgment.false)


def _advice_gains_half(monkeypatch: pytest.MonkeyPatch) -> None:
    original = estimate_gains
    monkeypatch.setattr(
        advice,
        "estimate_gains",
        lambda *arguments: [structs.replace(each, ns=each.ns / 2) for each in original(*arguments)],
    )


def _peaks_are_of_half_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    original = peaks._build_entry_rates
    monkeypatch.setattr(peaks, "_build_entry_rates", lambda entry, share, how: original(entry, share / 2, how))


def _before_is_after(monkeypatch: pytest.MonkeyPatch) -> None:
    original = diff_words._change
    monkeypatch.setattr(diff_words, "_change", lambda before, now: original(now, before))


def _parts_are_whole_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count steps in whose middle a recording begins or ends in means over steps."""
    original = late_once.typical_job_steps

    def count_parts(job: Any) -> Any:
        counted = original(job)
        counted[-1] = True
        return counted

    for module in (costs, late_once, significance):
        monkeypatch.setattr(module, "typical_job_steps", count_parts)


def _stretches_are_of_what_covers_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attribute all of an idle stretch to the operator that covers half of it."""
    original = dominant_frames.dominant_frames

    def credit(trace: Any, stretches: Any) -> Any:
        with monkeypatch.context() as patched:
            patched.setattr(dominant_frames, "intersect", lambda inside, slices: inside)
            return original(trace, stretches)

    monkeypatch.setattr(host_rules, "dominant_frames", credit)


@pytest.mark.parametrize(
    ("mutate", "seed"),
    [
        (_parts_are_whole_steps, 341),
        (_stretches_are_of_what_covers_half, 389),
        (_stretches_are_of_what_covers_half, 472),
        (_advice_gains_half, 7),
        (_advice_gains_half, 12),
        (_advice_gains_half, 123),
        (_peaks_are_of_half_a_device, 19),
        (_before_is_after, 7),
    ],
    ids=lambda each: each.__name__.strip("_") if callable(each) else str(each),
)
def test_what_is_wrong_of_one_kind_of_job_is_noticed(
    mutate: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    assert judge_job(seed).false


@pytest.mark.parametrize(
    "mutate",
    [_no_split, _all_present, _anybody_is_late, _half_the_cost, _devices_are_slower],
    ids=lambda each: each.__name__.strip("_"),
)
def test_a_rule_that_is_wrong_is_noticed(mutate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    judged = (judge_job(seed) for seed in range(25))
    assert any(judgment.false or judgment.missed for judgment in judged)
