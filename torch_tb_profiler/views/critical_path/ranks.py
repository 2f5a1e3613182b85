"""The critical path of a job: which ranks it runs through, and where it changes from one to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.job_path import (
    JobPath,
    PathSegment,
    RankPath,
    job_path,
    path_times_by_rank,
    reduce_path,
)
from torch_tb_profiler.analyses.distributed.late_once import has_odd_steps
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.analyses.schedule.path import PATH_CATEGORIES, category_group, group_by_bottleneck
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.base.grammar import join_words, plural
from torch_tb_profiler.base.memo import derived
from torch_tb_profiler.model.trace import NO_CODE
from torch_tb_profiler.view import Member, Members, Reduction, RunView
from torch_tb_profiler.views._shared.job.members import (
    RANK_DETAILS,
    compare_members,
    count_unread,
    judge_members,
    members_coverage,
)
from torch_tb_profiler.views._shared.job.names import job_noun
from torch_tb_profiler.views._shared.job.verdict import coverage_sentence, verdict_headline
from torch_tb_profiler.views._shared.text import Phrase, Text, link, reason_texts, sentences, text, worker_name
from torch_tb_profiler.views.critical_path import titles, words
from torch_tb_profiler.views.critical_path.payload import (
    JobPathParams,
    JobPathPayload,
    JobPathSegment,
    PathCategory,
    RankOnPath,
)

_MIN_COPIES_SHARE = 0.02
"""Copies of several ranks are named from this share of the job's path on, as those of one rank are of a step."""


def build(members: Members[RankPath], params: JobPathParams) -> JobPathPayload:
    """Build the path of the job; raise NotFoundError if `step` has no segment of it."""
    summaries, path = _collect_summaries(members), _job_path(members)
    comparison, verdict = compare_members(summaries), judge_members(summaries).verdict
    paths, ranks = _paths(members), _build_ranks(comparison, path)
    segments = [
        segment for segment in path.segments if params.step in ("", paths[segment.member].step_names[segment.step])
    ]
    if params.step and not segments:
        raise NotFoundError(f"the path has no {job_noun(comparison)} {params.step!r}")
    suspect = verdict.suspect if verdict.kind == "straggler" else None
    duration = sum(segment.end - segment.begin for segment in path.segments) / max(path.steps, 1)
    # One of several ranks has all of the path that is seen, whichever it is; so have those that wait for one that
    # is missing.
    complete = members_coverage(summaries).complete
    is_elsewhere = not complete and (len(comparison.sources) == 1 or verdict.reason in ("absent", "missing"))
    is_known, noun, vary = not (count_unread(summaries) or is_elsewhere), job_noun(comparison), None
    if has_odd_steps(comparison.job):
        vary = path.steps
    return JobPathPayload(
        headline=_headline(ranks, duration, noun, vary, complete=complete) if is_known else (),
        explanation=sentences(
            _copies_sentence(ranks, duration, noun) if is_known and vary is None else (),
            verdict_headline(summaries, verdict),
            coverage_sentence(summaries),
        ),
        duration_ns=duration,
        steps=path.steps,
        ranks=ranks,
        stays=[
            _build_segment_row(comparison, paths[segment.member], segment) for segment in segments[params.rows]
        ],
        total=len(segments),
        late_ranks=[comparison.sources[each].worker for each in suspect.members] if suspect else [],
        late_gain_ns=suspect.cost if suspect else None,
        reasons=reason_texts(_reasons(summaries, path)),
    )


@derived
def _collect_summaries(members: Members[RankPath]) -> Members[RankSummary]:
    """Return the members with the summaries that the comparison of ranks needs."""
    return Members(
        Member(
            each.worker,
            each.rank,
            each.span,
            each.state,
            each.reason,
            None if each.result is None else each.result.summary,
            each.details,
        )
        for each in members
    )


@derived
def _job_path(members: Members[RankPath]) -> JobPath:
    return job_path(compare_members(_collect_summaries(members)), _paths(members))


def _paths(members: Members[RankPath]) -> list[RankPath]:
    """Return the paths of the ranks in the order of the job's sources."""
    path_of_worker = {member.worker: member.result for member in members if member.result is not None}
    return [path_of_worker[source.worker] for source in compare_members(_collect_summaries(members)).sources]


def _build_ranks(comparison: RankComparison, path: JobPath) -> list[RankOnPath]:
    count, rows = max(path.steps, 1), []
    times = path_times_by_rank(path, len(comparison.sources)).tolist()
    for source, spent in zip(comparison.sources, times, strict=True):
        opens = link("trace", worker=source.worker, path="true")
        categories = [
            PathCategory(name, titles.CATEGORY_TITLES[name], category_group(name), time / count, opens)
            for name, time in zip(PATH_CATEGORIES, spent, strict=True)
            if time
        ]
        if categories:
            rows.append(RankOnPath(source.worker, source.rank, sum(spent) / count, categories))
    return sorted(rows, key=lambda row: -row.path_ns)


def _build_segment_row(comparison: RankComparison, path: RankPath, segment: PathSegment) -> JobPathSegment:
    source, collective = comparison.sources[segment.member], segment.operation
    times = group_by_bottleneck(segment.times)
    return JobPathSegment(
        worker=source.worker,
        rank=source.rank,
        step=path.step_names[segment.step],
        begin_ns=segment.begin,
        duration_ns=segment.end - segment.begin,
        host_ns=times["host"],
        device_ns=times["device"],
        communication_ns=times["communication"],
        latency_ns=times["latency"],
        collective=None if collective == NO_CODE else comparison.job.name_of(collective),
        collective_id=None if collective == NO_CODE else int(comparison.matching.instance[collective]),
        link=link("trace", worker=source.worker, path="true", at=f"{segment.begin}-{segment.end}"),
    )


def _reasons(members: Members[RankSummary], path: JobPath) -> Mapping[str, str]:
    reasons = {}
    if count_unread(members):
        reasons["ranks"] = f"{plural(count_unread(members), 'trace')} still to be read"
    if path.segments and not path.crosses_ranks:
        reasons["stays"] = (
            "no collective on a device was recorded, so the path can't change ranks where one waits for another"
        )
    return reasons


def _headline(
    ranks: Sequence[RankOnPath], duration_ns: float, noun: str, vary: int | None = None, *, complete: bool = True
) -> Text:
    """Say which rank has most of the job's path, and the largest part of that on its device and beside it.

    Of the device only where that is the larger one: what takes less isn't named in place of what takes most.

    complete  no rank's file is missing
    noun  what a step is, see `steps.step_noun`
    vary  number of steps if some of them are odd: a mean over all would speak of each
    """
    if not ranks:
        return text("No rank has a complete {noun}, so there is no critical path.", noun=noun)
    first = ranks[0]
    name = worker_name(first.rank, first.worker)
    finding = text(
        "{share} of {path} is on {name}",
        share=format_ratio(first.path_ns / duration_ns),
        path="the job's critical path" if complete else "the critical path of the ranks found",
        name=Phrase(name, link("trace", worker=first.worker, path="true")),
    )
    notable = [each for each in first.categories if each.time_ns >= words.MIN_CHANGE * duration_ns]
    shown: list[PathCategory] = []
    for each in sorted(notable, key=lambda each: -each.time_ns):
        if each.group != "device":
            shown.append(each)
            break
        if not shown:
            shown.append(each)
    if not shown:
        return text("{finding}.", finding=finding)
    parts = join_words([_path_part(each, vary or 1) for each in shown])
    if vary is not None:
        return text(
            "{finding}, including {parts} in {steps} together.",
            finding=finding,
            parts=parts,
            steps=plural(vary, noun),
        )
    return text("{finding}, including {parts} per {noun}.", finding=finding, parts=parts, noun=noun)


def _copies_sentence(ranks: Sequence[RankOnPath], duration_ns: float, noun: str) -> Text:
    """Say what copies of several ranks take of the job's path together; nothing if one's own are named.

    A stage of a pipeline waits for the copies of those before it, of which its own file shows nothing.
    """
    times = [each.time_ns for rank in ranks for each in rank.categories if each.name == "copy"]
    few = _MIN_COPIES_SHARE * duration_ns
    if sum(times) < few or max(times, default=0.0) >= few:
        return ()
    return text(
        "Copies of {ranks} take {time} of that path per {noun} together, {share}.",
        ranks=plural(len(times), "rank"),
        time=format_duration(sum(times)),
        noun=noun,
        share=format_ratio(sum(times) / duration_ns),
    )


def _path_part(category: PathCategory, steps: int) -> str:
    """Return "4.00 ms of kernels": what a category of the path takes in so many steps."""
    title = "unrecorded host code" if category.name == "unrecorded" else category.title
    return f"{format_duration(category.time_ns * steps)} of {title[:1].lower()}{title[1:]}"


JOB_PATH = RunView(
    "critical_path/ranks",
    "Critical path of the job",
    JobPathParams,
    JobPathPayload,
    build,
    Reduction("critical_path", RankPath, reduce_path, RANK_DETAILS),
)
