"""Idle time of a rank compared with the others of its job: how long it waits, and for which ranks."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.steps import ExposedCommunication, ExposedSteps, exposed_steps
from torch_tb_profiler.model.trace import Int64
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.exposed import MAX_RANKS_READ, communication_parts, unread_ranks_sentence
from torch_tb_profiler.views._shared.job.members import compare_members, count_unread, judge_members
from torch_tb_profiler.views._shared.job.odd_steps import split_odd_steps
from torch_tb_profiler.views._shared.job.verdict import coverage_sentence, verdict_headline
from torch_tb_profiler.views._shared.text import Text, sentences, text
from torch_tb_profiler.views.idle import words
from torch_tb_profiler.views.idle.payload import AwaitedRank, IdleParams, IdlePayload, IdleStep


def build_with_ranks(
    alone: IdlePayload, worker: str, members: Members[RankSummary], params: IdleParams
) -> IdlePayload:
    """Add to a rank's own payload what the traces of all ranks say about its exposed communication.

    The payload stays as it is while other ranks are read; if they can't tell, it gets the reason.
    """
    if len(members) > MAX_RANKS_READ and count_unread(members):
        return replace(alone, beside=unread_ranks_sentence(len(members), count_unread(members)))
    if count_unread(members):
        return alone
    if params.stream is not None:
        return _with_reason(alone, text(words.ONE_STREAM))
    if len({stream.device for stream in alone.streams}) > 1:
        return _with_reason(alone, text(words.SEVERAL_DEVICES))
    comparison, verdict = compare_members(members), judge_members(members).verdict
    position = comparison.positions.get(worker)
    if not verdict.splits_waiting or position is None:
        return _with_reason(alone, sentences(verdict_headline(members, verdict), coverage_sentence(members)))
    alone = replace(alone, explanation=split_odd_steps(alone.explanation, comparison, position))
    exposed = exposed_steps(comparison, position, params.step)
    if exposed is None:
        # Gradients may be reduced in few steps, all of which are odd.
        reason = words.NOT_COMPARED if alone.exposed_communication_ns else words.NOT_EXPOSED
        return _with_reason(alone, text(reason))
    compared = _with_waits(alone, comparison, exposed, params.step)
    return replace(compared, beside=sentences(compared.beside, coverage_sentence(members)))


def _with_reason(alone: IdlePayload, reason: Text) -> IdlePayload:
    return replace(alone, reasons={**alone.reasons, "waiting_ns": reason}, beside=reason, limits=_limits(alone))


def _limits(alone: IdlePayload) -> Text:
    return words.limits(alone.explained, alone.clock_shift_ns, alone.steps_recorded, alone.step_noun, alone=False)


def _with_waits(alone: IdlePayload, comparison: RankComparison, exposed: ExposedSteps, step: str) -> IdlePayload:
    numbers = {name: number for number, name in enumerate(exposed.names) if step in ("", name)}

    def mean(column: Int64) -> float:
        return sum(int(column[number]) for number in numbers.values()) / max(len(numbers), 1)

    total = alone.exposed_communication_ns / max(alone.counted, 1)
    parts = communication_parts(
        total, ExposedCommunication(mean(exposed.transfer), mean(exposed.waiting), exposed.bounded)
    )
    waiting_for = {late: mean(column) for late, column in exposed.waiting_for.items()}
    awaited = _build_awaited_ranks(comparison, waiting_for, parts.waiting_ns)
    return replace(
        alone,
        steps=[_build_step_with_waits(each, comparison, exposed, numbers) for each in alone.steps],
        communication=parts,
        waits_for=awaited,
        beside=words.waiting_explanation(parts, awaited),
        limits=_limits(alone),
        reasons={field: reason for field, reason in alone.reasons.items() if field != "waiting_ns"},
    )


def _build_step_with_waits(
    step: IdleStep, comparison: RankComparison, exposed: ExposedSteps, numbers: Mapping[str, int]
) -> IdleStep:
    """Split a counted step's exposed communication into transfer and waiting, which together don't exceed it."""
    number = numbers.get(step.name)
    if number is None or not step.complete:
        return step
    waiting = min(int(exposed.waiting[number]), step.exposed_communication_ns)
    transfer = min(int(exposed.transfer[number]), step.exposed_communication_ns - waiting)
    waiting_for = {late: float(column[number]) for late, column in exposed.waiting_for.items()}
    awaited = _build_awaited_ranks(comparison, waiting_for, waiting)
    return replace(step, transfer_ns=transfer, waiting_ns=waiting, waits_for=awaited)


def _build_awaited_ranks(
    comparison: RankComparison, waiting_for: Mapping[int, float], waiting: float
) -> list[AwaitedRank]:
    """Return the ranks that are waited for, largest first.

    waiting_for  ns by position of the awaited rank
    waiting      all of the waiting, which the rows together don't exceed
    """
    rows = []
    for late, ns in sorted(waiting_for.items(), key=lambda each: -each[1]):
        waited_ns = min(ns, waiting)
        waiting -= waited_ns
        if waited_ns > 0:
            rows.append(AwaitedRank(comparison.sources[late].worker, comparison.sources[late].rank, waited_ns))
    return rows
