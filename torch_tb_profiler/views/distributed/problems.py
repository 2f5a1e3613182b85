"""What is missing, broken, duplicated, or cannot be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from torch_tb_profiler.analyses.distributed.comparison import RankComparison, find_exclusions
from torch_tb_profiler.analyses.distributed.groups import expected_ranks, world_sizes
from torch_tb_profiler.analyses.distributed.job import RankSource
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.job.members import compare_members, count_unread, member_rank, progress_phrase
from torch_tb_profiler.views._shared.job.wording import RANKS_TABLE, rank_names, shorten_ranks
from torch_tb_profiler.views._shared.text import Phrase, link, text, worker_name
from torch_tb_profiler.views.distributed.payload.job import Problem
from torch_tb_profiler.views.distributed.reasons import options

MOST_OF_A_KIND = 20
"""So many ranks with a problem of one kind are listed; of more their number is."""

NOTABLE_NS = 1_000_000
"""Corrections and errors of clocks above this are mentioned; the others stand in `ranks`."""


def problems(members: Members[RankSummary]) -> list[Problem]:
    """In order of importance: files, ranks, clocks, collectives."""
    comparison = compare_members(members)
    of_all = (
        *_of_members(members),
        *_of_ranks(members),
        *_of_clocks(comparison),
        *_of_collectives(comparison),
    )
    return list(_bounded(of_all))


_MORE = {
    "broken_rank": "{count} more ranks are missing",
    "left_out": "{count} more ranks are left out",
    "duplicate_rank": "{count} more ranks are claimed twice",
    "clock": "The clocks of {count} more ranks are corrected or known only roughly",
    "unmatched": "{count} more ranks are not compared by time",
}
"""Of kinds that concern a rank each."""


def _bounded(problems: Sequence[Problem]) -> Iterator[Problem]:
    """The first ones of each kind, and how many more there are in place of the next."""
    kinds = Counter(problem.kind for problem in problems)
    seen: Counter[str] = Counter()
    for problem in problems:
        seen[problem.kind] += 1
        left = kinds[problem.kind] - MOST_OF_A_KIND
        if problem.kind not in _MORE or left <= 1 or seen[problem.kind] <= MOST_OF_A_KIND:
            yield problem
        elif seen[problem.kind] == MOST_OF_A_KIND + 1:
            count = Phrase(f"{left:,}", RANKS_TABLE)
            yield Problem(problem.kind, text(_MORE[problem.kind], count=count), None, None)


def _of_members(members: Members[RankSummary]) -> Iterator[Problem]:
    loading, duplicates = progress_phrase(members), compare_members(members).duplicates
    if loading:
        yield Problem("loading", loading, None, None)
    for member in members:
        rank, name = member_rank(member), _name(member_rank(member), member.worker, "Rank")
        if member.state == "failed":
            words = text(
                "{name} is missing: {reason}", name=name, reason=member.reason or "its trace cannot be read"
            )
            yield Problem("broken_rank", words, member.worker, rank)
        elif member.state == "ready" and member.result is None:
            words = text("{name} is left out: {reason}", name=name, reason=member.reason or "nothing to compare")
            yield Problem("left_out", words, member.worker, rank)
        elif member.worker in duplicates:
            words = text(
                "{worker} and {other} both claim to be rank {rank}; {other} is shown",
                worker=Phrase(member.worker, RANKS_TABLE), other=duplicates[member.worker], rank=str(rank),
            )  # fmt: skip
            yield Problem("duplicate_rank", words, member.worker, rank)


def _name(rank: int | None, worker: str, word: str) -> Phrase:
    if rank is not None:
        return Phrase(f"{word} {rank} ({worker})", RANKS_TABLE)
    name = worker_name(None, worker)
    return Phrase(name if name == worker or word == "rank" else name.capitalize(), RANKS_TABLE)


def _of_ranks(members: Members[RankSummary]) -> Iterator[Problem]:
    comparison = compare_members(members)
    worlds = world_sizes(comparison)
    if len(worlds) > 1:
        words = text(
            "The traces disagree on the number of ranks ({sizes}); do they belong to one job?",
            sizes=", ".join(map(str, worlds)),
        )
        yield Problem("world_size", words, None, None)
    expected = expected_ranks(comparison)
    absent = expected - {member_rank(member) for member in members}
    if absent and not count_unread(members) and any(source.rank is not None for source in comparison.sources):
        spelled = shorten_ranks(sorted(absent)).replace(",", ", ")
        words = text(
            "No trace of {rank} {absent} is here ({count} of {all})",
            rank="rank" if len(absent) == 1 else "ranks", absent=Phrase(spelled, RANKS_TABLE),
            count=f"{len(absent):,}", all=f"{len(expected):,}",
        )  # fmt: skip
        yield Problem("missing_rank", words, None, next(iter(absent)) if len(absent) == 1 else None)


def _of_clocks(comparison: RankComparison) -> Iterator[Problem]:
    offsets = _offsets_of_hosts(comparison)
    for source, clock in zip(comparison.sources, comparison.clocks.clocks, strict=True):
        offset, rank = clock.offset or 0, _name(source.rank, source.worker, "rank")
        if clock.method == "none":
            words = text(
                "{name} is not compared by time: its file does not record the time of day, and it shares no "
                "collective with the other ranks",
                name=_name(source.rank, source.worker, "Rank"),
            )
        elif clock.method == "collective_ends" and (
            # Another process of its host, which should share its clock, has another offset.
            abs(offset) > NOTABLE_NS or offsets.get(source.host, set()) - {offset}
        ):
            words = text(
                "The clock of {rank} is {offset} {where}; it is corrected by the ends of {collectives}, "
                "which then agree to {residual}",
                rank=rank, offset=format_duration(abs(offset)), where="behind" if offset > 0 else "ahead",
                collectives=plural(clock.ends, "shared collective"), residual=format_duration(clock.residual),
            )  # fmt: skip
        elif clock.residual is not None and clock.residual > NOTABLE_NS and clock.method != "reference":
            error = format_duration(clock.residual)
            words = text("Arrivals of {rank} are known only to within {error}", rank=rank, error=error)
        else:
            continue
        yield Problem("clock", words, source.worker, source.rank)


def _offsets_of_hosts(comparison: RankComparison) -> dict[str | None, set[int]]:
    """Host -> by how much the clocks of its processes are off that share an end with other ranks."""
    offsets: dict[str | None, set[int]] = {}
    for source, clock in zip(comparison.sources, comparison.clocks.clocks, strict=True):
        if source.host is not None and clock.ends > 0:
            offsets.setdefault(source.host, set()).add(clock.offset or 0)
    return offsets


def _of_collectives(comparison: RankComparison) -> Iterator[Problem]:
    excluded = find_exclusions(comparison)
    if excluded.unrecorded:
        yield _late_recorders(comparison, [comparison.sources[each] for each in excluded.late_recorders])
    if excluded.mismatched:
        words = text(
            "{collectives} not compared: the ranks differ in name, size, or dtype",
            collectives=Phrase(
                _are(excluded.mismatched, "collective"),
                link("distributed", table="collectives", mismatched="true"),
            ),
        )
        yield Problem("mismatch", words, None, None)
    for source in (comparison.sources[member] for member in excluded.untimed):
        name = _name(source.rank, source.worker, "Rank")
        words = text("{name} records no device time of its operations and is not compared by time", name=name)
        yield Problem("unmatched", words, source.worker, source.rank)
    if excluded.unaddressed:
        words = text(
            "{messages} not compared: the traces do not record sender and receiver ({option})",
            messages=_are(excluded.unaddressed, "message"),
            option=options(comparison, "sizes"),
        )
        yield Problem("unmatched", words, None, None)
    if excluded.uneven:
        words = text(
            "{collectives} not compared: the ranks ran different numbers of them within a step",
            collectives=_are(excluded.uneven, "collective"),
        )
        yield Problem("unmatched", words, None, None)


def _late_recorders(comparison: RankComparison, late: list[RankSource]) -> Problem:
    words = text(
        "{names} began to record up to {skew} after the first, when others were already waiting in {collectives}; "
        "that wait is caused by the profiler and is attributed to no rank",
        names=rank_names(late), skew=format_duration(comparison.clocks.start_skew()),
        collectives=plural(find_exclusions(comparison).unrecorded, "collective"),
    )  # fmt: skip
    one = late[0] if len(late) == 1 else None
    return Problem("start_skew", words, one.worker if one else None, one.rank if one else None)


def _are(count: int, noun: str) -> str:
    return f"{plural(count, noun)} {'is' if count == 1 else 'are'}"
