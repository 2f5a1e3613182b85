"""The critical path of a rank beside the others of its job: its communication is split into transfer and waiting.

rank 0  |work|------ waits ------|== transfer ==|work|     alone, all of the collective is communication
rank 1  |-------- work ----------|== transfer ==|work|     of which a faster network shortens the transfer only
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from torch_tb_profiler.analyses.distributed.costs import faster_network_savings
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.distributed.steps import all_communication, exposed_communication, job_transfer
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.exposed import (
    MAX_RANKS_READ,
    CommunicationParts,
    communication_sentence,
    is_compared,
    path_communication_parts,
    unread_ranks_sentence,
)
from torch_tb_profiler.views._shared.job.members import (
    compare_members,
    count_unread,
    judge_members,
    member_costs,
    members_coverage,
)
from torch_tb_profiler.views._shared.job.odd_steps import split_odd_steps
from torch_tb_profiler.views._shared.job.verdict import coverage_sentence, verdict_headline
from torch_tb_profiler.views._shared.text import link, sentences
from torch_tb_profiler.views.critical_path import titles, words
from torch_tb_profiler.views.critical_path.payload import (
    CriticalPathParams,
    CriticalPathPayload,
    PathCategory,
    TargetRow,
    WhatIfResult,
)

_COMMUNICATION_KINDS = ("communication", "collective")
"""Kinds of what-if targets that contain waiting for other ranks."""


def build_beside_ranks(
    alone: CriticalPathPayload, worker: str, members: Members[RankSummary], params: CriticalPathParams
) -> CriticalPathPayload:
    """Split the communication on a rank's path, and let its what-ifs shorten the transfer alone.

    While other ranks are read, and where they can't tell who waits for whom, the answer is that of the rank alone;
    `beside` says why.
    """
    unread = count_unread(members)
    if len(members) > MAX_RANKS_READ and unread:
        return replace(alone, beside=unread_ranks_sentence(len(members), unread))
    on_path = next((each for each in alone.path.categories if each.name == "communication"), None)
    if unread:
        return alone
    comparison, verdict = compare_members(members), judge_members(members).verdict
    position = comparison.positions.get(worker)
    if verdict.splits_waiting and position is not None:
        alone = replace(
            alone,
            explanation=split_odd_steps(alone.explanation, comparison, position),
            odd_steps=split_odd_steps(alone.odd_steps, comparison, position),
        )
    if on_path is None:
        return alone
    if not verdict.splits_waiting or position is None:
        return replace(alone, beside=sentences(verdict_headline(members, verdict), coverage_sentence(members)))
    parts = path_communication_parts(
        on_path.time_ns, all_communication(comparison, position), exposed_communication(comparison, position)
    )
    path = replace(alone.path, categories=_split_categories(alone.path.categories, parts))
    # What ranks transfer whose files are missing is unknown, and this rank may wait for that, too: no sentence
    # says what a faster network saves. What-ifs shorten the transfers that are known.
    compared = members_coverage(members).complete and is_compared(parts)
    moved = min(max(parts.transfer_ns, job_transfer(comparison)) + parts.uncompared_ns, on_path.time_ns)
    saved = _sum_job_savings(members, alone) if compared else None
    limit = _TransferLimit(moved, parts.uncompared_ns, saved)
    targets = [_limit_target(alone, row, limit) for row in alone.targets]
    times, waits = words.times_by_part(path), verdict.reason == "absent"
    return replace(
        alone,
        headline=words.headline(
            path,
            times,
            targets,
            alone.steps_recorded,
            alone.device_type,
            explained=alone.explained,
            compared=compared,
            waits=waits,
            noun=alone.step_noun,
        ),
        explanation=sentences(
            words.explanation(
                path,
                targets,
                alone.explained,
                alone.steps_recorded,
                compared=compared,
                waits=waits,
                noun=alone.step_noun,
            ),
            alone.odd_steps,
        ),
        limits=sentences(alone.limits, words.COMPARED_LIMIT),
        path=path,
        targets=targets,
        what_if=[_limit_result(alone, result, limit) for result in alone.what_if],
        communication=parts,
        beside=sentences(
            communication_sentence(parts, what="communication on the path"),
            verdict_headline(members, verdict),
            coverage_sentence(members),
        ),
    )


def _split_categories(categories: Sequence[PathCategory], parts: CommunicationParts) -> list[PathCategory]:
    """Return the categories with communication split in two; they sum to the same."""
    return [part for each in categories for part in _build_parts_of_category(each, parts)]


def _build_parts_of_category(category: PathCategory, parts: CommunicationParts) -> Iterator[PathCategory]:
    if category.name != "communication" or not parts.waiting_ns:
        yield category
        return
    moved = category.time_ns - parts.waiting_ns
    if moved > 0:
        yield replace(category, time_ns=moved)
    title = titles.CATEGORY_TITLES["rank_wait"]
    yield PathCategory("rank_wait", title, category.group, parts.waiting_ns, link("distributed"))


def _sum_job_savings(members: Members[RankSummary], alone: CriticalPathPayload) -> dict[int, float] | None:
    """Return the ns per step that the job saves at each percent of a what-if, None if that is unknown."""
    comparison = compare_members(members)
    percents = sorted({*alone.percents, *(result.percent for result in alone.what_if)})
    saved = faster_network_savings(
        comparison.job, comparison.matching, comparison.split, member_costs(members).all_work, percents
    )
    return None if saved is None else dict(zip(percents, saved, strict=True))


class _TransferLimit(msgspec.Struct, frozen=True):
    """What faster transfers save at most, ns.

    moved       the time of the transfers
    uncompared  that of communication of which nobody knows what waits in it
    saved       what the job saves by percent of all compared transfers; None where only `moved` is known
    """

    moved: float
    uncompared: float
    saved: Mapping[int, float] | None

    def at(self, percent: int) -> float:
        """Return what that percent saves at most: as much of the time, and no more than the replayed job saves.

        Where ranks are late in turn, a rank alone would save too much: part of its time in collectives is waiting
        for the others, which no network shortens.
        """
        share = percent / 100
        of_time = self.moved * share
        if self.saved is None:
            return of_time
        return min(of_time, self.saved[percent] + self.uncompared * share)


def _limit_target(alone: CriticalPathPayload, row: TargetRow, limit: _TransferLimit) -> TargetRow:
    """Return a target whose curve saves no more than the transfer allows."""
    if row.kind not in _COMMUNICATION_KINDS:
        return row
    now = int(alone.path.duration_ns)
    curve = row.step_ns or [0] * len(alone.percents)
    limited = [_limit_step(step, now, percent, limit) for step, percent in zip(curve, alone.percents, strict=True)]
    return replace(row, step_ns=limited)


def _limit_result(alone: CriticalPathPayload, result: WhatIfResult, limit: _TransferLimit) -> WhatIfResult:
    if result.target.partition(":")[0] not in _COMMUNICATION_KINDS:
        return result
    now = int(alone.path.duration_ns)
    return replace(result, step_ns=_limit_step(result.step_ns, now, result.percent, limit))


def _limit_step(step: int, now: int, percent: int, limit: _TransferLimit) -> int:
    """Return the step time, no shorter than with that percent less transfer in the whole job."""
    return max(step, int(now - limit.at(percent)))
