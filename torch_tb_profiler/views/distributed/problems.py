"""What is missing, broken, duplicated, or can't be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from torch_tb_profiler.analyses.distributed.comparison import RankComparison, find_exclusions
from torch_tb_profiler.analyses.distributed.groups import expected_ranks, world_sizes
from torch_tb_profiler.analyses.distributed.job import RankSource
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.base.grammar import agree, capitalize, plural
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.members import (
    compare_members,
    count_unread,
    member_rank,
    progress_phrase,
)
from torch_tb_profiler.views._shared.job.names import RANKS_TABLE, rank_names, shorten_ranks
from torch_tb_profiler.views._shared.text import Phrase, join_phrases, link, text, worker_name
from torch_tb_profiler.views.distributed.payload.job import Problem
from torch_tb_profiler.views.distributed.reasons import recording_options

MAX_LISTED_PER_KIND = 20
"""Most ranks listed with a problem of one kind; beyond that, as many as a screen holds, only their number."""

MIN_NOTABLE_CLOCK_ERROR_NS = 1_000_000
"""Corrections and errors of clocks above this are a problem; smaller ones only appear in `ranks`.

Clocks that NTP synchronizes over a network agree to about a millisecond."""


def build_problems(members: Members[RankSummary]) -> list[Problem]:
    """Return the problems in order of importance: files, ranks, clocks, collectives."""
    comparison = compare_members(members)
    problems = (
        *_find_member_problems(members),
        *_find_rank_problems(members),
        *_find_clock_problems(comparison),
        *_find_collective_problems(comparison),
    )
    return list(_shorten(problems))


_MORE_TEXTS = {
    "broken_rank": "{count} more ranks are missing",
    "left_out": "{count} more ranks are left out",
    "duplicate_rank": "{count} more ranks are claimed twice",
    "clock": "The clocks of {count} more ranks were corrected or are imprecise",
    "unmatched": "{count} more ranks aren't compared by time",
}
"""Kinds of problems that concern a rank each -> the text for those that aren't listed."""


def _shorten(problems: Sequence[Problem]) -> Iterator[Problem]:
    """Yield the first problems of each kind, then how many more there are."""
    kinds = Counter(problem.kind for problem in problems)
    seen: Counter[str] = Counter()
    for problem in problems:
        seen[problem.kind] += 1
        more = kinds[problem.kind] - MAX_LISTED_PER_KIND
        if problem.kind not in _MORE_TEXTS or more <= 1 or seen[problem.kind] <= MAX_LISTED_PER_KIND:
            yield problem
        elif seen[problem.kind] == MAX_LISTED_PER_KIND + 1:
            count = Phrase(f"{more:,}", RANKS_TABLE)
            yield Problem(problem.kind, text(_MORE_TEXTS[problem.kind], count=count), None, None)


def _find_member_problems(members: Members[RankSummary]) -> Iterator[Problem]:
    progress, duplicates = progress_phrase(members), compare_members(members).duplicates
    if progress:
        yield Problem("loading", progress, None, None)
    for member in members:
        rank, name = member_rank(member), _full_name_phrase(member_rank(member), member.worker)
        if member.state == "failed":
            sentence = text(
                "{name} is missing: {reason}", name=name, reason=member.reason or "its trace can't be read"
            )
            yield Problem("broken_rank", sentence, member.worker, rank)
        elif member.state == "ready" and member.result is None:
            sentence = text(
                "{name} is left out: {reason}", name=name, reason=member.reason or "nothing to compare"
            )
            yield Problem("left_out", sentence, member.worker, rank)
        elif member.worker in duplicates:
            sentence = text(
                "{worker} and {other} both claim to be rank {rank}; {other} is shown",
                worker=Phrase(member.worker, RANKS_TABLE),
                other=duplicates[member.worker],
                rank=str(rank),
            )
            yield Problem("duplicate_rank", sentence, member.worker, rank)


def _full_name_phrase(rank: int | None, worker: str, capital: bool = True) -> Phrase:
    """Return "Rank 3 (host0_1003)", linked to the table of ranks; the worker alone if its rank is unknown."""
    name = worker_name(rank, worker)
    if rank is not None:
        name = f"{name} ({worker})"
    return Phrase(capitalize(name) if capital and name != worker else name, RANKS_TABLE)


def _find_rank_problems(members: Members[RankSummary]) -> Iterator[Problem]:
    comparison = compare_members(members)
    worlds = world_sizes(comparison)
    if len(worlds) > 1:
        sentence = text(
            "The traces are of jobs with {sizes} ranks; only those of the job with {compared} are compared",
            sizes=join_phrases([str(size) for size in sorted(worlds)]),
            compared=str(worlds[0]),
        )
        yield Problem("world_size", sentence, None, None)
    expected = expected_ranks(comparison)
    absent = expected - {member_rank(member) for member in members if member.worker not in comparison.strangers}
    if absent and not count_unread(members) and any(source.rank is not None for source in comparison.sources):
        sentence = text(
            "{traces} {absent} {are} missing ({count} of {all}); waiting for {it} counts as transfer",
            traces=agree(len(absent), "The trace of rank", "The traces of ranks"),
            absent=Phrase(shorten_ranks(sorted(absent)).replace(",", ", "), RANKS_TABLE),
            are=agree(len(absent), "is", "are"),
            count=f"{len(absent):,}",
            all=plural(len(expected), "rank"),
            it=agree(len(absent), "it", "them"),
        )
        yield Problem("missing_rank", sentence, None, next(iter(absent)) if len(absent) == 1 else None)


def _find_clock_problems(comparison: RankComparison) -> Iterator[Problem]:
    offsets = _group_offsets_by_host(comparison)
    for source, clock in zip(comparison.sources, comparison.clocks.clocks, strict=True):
        offset, rank = clock.offset or 0, _full_name_phrase(source.rank, source.worker, capital=False)
        if clock.method == "none":
            sentence = text(
                "{name} isn't compared by time: its trace records no time of day, and it shares no collective "
                "with other ranks",
                name=_full_name_phrase(source.rank, source.worker),
            )
        elif clock.method == "collective_ends" and (
            # Processes of one host share its clock, so different offsets on one host are worth a note.
            abs(offset) > MIN_NOTABLE_CLOCK_ERROR_NS or offsets.get(source.host, set()) - {offset}
        ):
            sentence = text(
                "The clock of {rank} is {offset} {where}; it was corrected by aligning the ends of {collectives}, "
                "which now agree within {residual}",
                rank=rank,
                offset=format_duration(abs(offset)),
                where="behind" if offset > 0 else "ahead",
                collectives=plural(clock.ends, "shared collective"),
                residual=format_duration(clock.residual),
            )
        elif (
            clock.residual is not None
            and clock.residual > MIN_NOTABLE_CLOCK_ERROR_NS
            and clock.method != "reference"
        ):
            error = format_duration(clock.residual)
            sentence = text("Arrivals of {rank} are known only to within {error}", rank=rank, error=error)
        else:
            continue
        yield Problem("clock", sentence, source.worker, source.rank)


def _group_offsets_by_host(comparison: RankComparison) -> dict[str | None, set[int]]:
    """Return the clock offsets of each host's processes that share a collective's end with other ranks."""
    offsets: dict[str | None, set[int]] = {}
    for source, clock in zip(comparison.sources, comparison.clocks.clocks, strict=True):
        if source.host is not None and clock.ends > 0:
            offsets.setdefault(source.host, set()).add(clock.offset or 0)
    return offsets


def _find_collective_problems(comparison: RankComparison) -> Iterator[Problem]:
    excluded = find_exclusions(comparison)
    if excluded.unrecorded:
        yield _start_skew_problem(comparison, [comparison.sources[member] for member in excluded.late_recorders])
    if excluded.mismatched:
        sentence = text(
            "{collectives} not compared: the ranks differ in name, size, or dtype",
            collectives=Phrase(
                _count_with_verb(excluded.mismatched, "collective"),
                link("distributed", table="collectives", mismatched="true"),
            ),
        )
        yield Problem("mismatch", sentence, None, None)
    for source in (comparison.sources[member] for member in excluded.untimed):
        sentence = text(
            "{name} isn't compared by time: its operations have no device times",
            name=_full_name_phrase(source.rank, source.worker),
        )
        yield Problem("unmatched", sentence, source.worker, source.rank)
    if excluded.unaddressed:
        sentence = text(
            "{messages} not compared: the traces don't record sender and receiver ({option})",
            messages=_count_with_verb(excluded.unaddressed, "message"),
            option=recording_options(comparison, "sizes"),
        )
        yield Problem("unmatched", sentence, None, None)
    if excluded.uneven:
        sentence = text(
            "{collectives} not compared: the ranks ran different numbers of them within a step",
            collectives=_count_with_verb(excluded.uneven, "collective"),
        )
        yield Problem("unmatched", sentence, None, None)


def _start_skew_problem(comparison: RankComparison, late: list[RankSource]) -> Problem:
    sentence = text(
        "{names} started recording up to {skew} after the first rank, while others were already waiting in "
        "{collectives}; the profiler caused that wait, so it isn't attributed to any rank",
        names=rank_names(late),
        skew=format_duration(comparison.clocks.start_skew(), "up"),
        collectives=plural(find_exclusions(comparison).unrecorded, "collective"),
    )
    single = late[0] if len(late) == 1 else None
    return Problem("start_skew", sentence, single.worker if single else None, single.rank if single else None)


def _count_with_verb(count: int, noun: str) -> str:
    return f"{plural(count, noun)} {agree(count, 'is', 'are')}"
