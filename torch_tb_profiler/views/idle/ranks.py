"""Idle time of a rank beside the others of its job: how much it waits, and whom it waits for."""

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
from torch_tb_profiler.views._shared.job.wording import verdict_headline
from torch_tb_profiler.views._shared.text import Text, text
from torch_tb_profiler.views.idle import words
from torch_tb_profiler.views.idle.payload import AwaitedRank, IdleParams, IdlePayload, IdleStep


def build(alone: IdlePayload, worker: str, members: Members[RankSummary], params: IdleParams) -> IdlePayload:
    """What the rank's own file says, with what those of all ranks say of its exposed communication.

    While other ranks are read, and where they cannot tell, the answer is that of the file alone, with the reason.
    """
    if len(members) > MAX_RANKS_READ and count_unread(members):
        return replace(alone, beside=unread_ranks_sentence(len(members), count_unread(members)))
    if count_unread(members):
        return alone
    if params.stream is not None:
        return _unknown(alone, text(words.ONE_STREAM))
    if len({stream.device for stream in alone.streams}) > 1:
        return _unknown(alone, text(words.SEVERAL_DEVICES))
    comparison, verdict = compare_members(members), judge_members(members).verdict
    position = comparison.positions.get(worker)
    if verdict.kind == "unknown" or position is None:
        return _unknown(alone, verdict_headline(members, verdict))
    exposed = exposed_steps(comparison, position)
    if exposed is None:
        return _unknown(alone, text(words.NOT_COMPARED))
    return _known(alone, comparison, exposed, params.step)


def _unknown(alone: IdlePayload, why: Text) -> IdlePayload:
    return replace(alone, reasons={**alone.reasons, "waiting_ns": why}, beside=why, limits=_limits(alone))


def _limits(alone: IdlePayload) -> Text:
    return words.limits(alone.explained, alone.clock_shift_ns, alone=False)


def _known(alone: IdlePayload, comparison: RankComparison, exposed: ExposedSteps, step: str) -> IdlePayload:
    at = {name: number for number, name in enumerate(exposed.names) if step in ("", name)}

    def mean(column: Int64) -> float:
        return sum(int(column[number]) for number in at.values()) / max(len(at), 1)

    whole = alone.exposed_communication_ns / max(alone.counted, 1)
    parts = communication_parts(whole, ExposedCommunication(mean(exposed.transfer), mean(exposed.waiting)))
    waits = _waits(
        comparison, {late: mean(column) for late, column in exposed.waiting_for.items()}, parts.waiting_ns
    )
    return replace(
        alone,
        steps=[_step(each, comparison, exposed, at) for each in alone.steps],
        communication=parts,
        waits_for=waits,
        beside=words.beside(parts, waits),
        limits=_limits(alone),
        reasons={field: why for field, why in alone.reasons.items() if field != "waiting_ns"},
    )


def _step(step: IdleStep, comparison: RankComparison, exposed: ExposedSteps, at: Mapping[str, int]) -> IdleStep:
    """A step that counts, in parts; no more than its exposed communication."""
    number = at.get(step.name)
    if number is None or not step.complete:
        return step
    waiting = min(int(exposed.waiting[number]), step.exposed_communication_ns)
    transfer = min(int(exposed.transfer[number]), step.exposed_communication_ns - waiting)
    behind = {late: float(column[number]) for late, column in exposed.waiting_for.items()}
    return replace(step, transfer_ns=transfer, waiting_ns=waiting, waits_for=_waits(comparison, behind, waiting))


def _waits(comparison: RankComparison, behind: Mapping[int, float], waiting: float) -> list[AwaitedRank]:
    """`behind`: ns by position of the rank that is waited for; together no more than all of the waiting."""
    rows = []
    for late, ns in sorted(behind.items(), key=lambda each: -each[1]):
        taken = min(ns, waiting)
        waiting -= taken
        if taken > 0:
            rows.append(AwaitedRank(comparison.sources[late].worker, comparison.sources[late].rank, taken))
    return rows
