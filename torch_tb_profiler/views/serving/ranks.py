"""Serving beside other ranks: iterations that they run together count once, and the slowest rank is named."""

from __future__ import annotations

import msgspec

from torch_tb_profiler.analyses.serving.ranks import EngineRanks, RankIterations, join_ranks, rank_iterations
from torch_tb_profiler.base.format import format_duration, format_number
from torch_tb_profiler.base.grammar import plural
from torch_tb_profiler.view import Member, Members, NoParams, Reduction, RunView
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, text, worker_name

RANK_ITERATIONS = Reduction("serving", RankIterations, rank_iterations, on_load=True)


class ServingRankRow(msgspec.Struct, frozen=True):
    """A rank; times are means of the iterations that all ranks of its engine recorded.

    rank              null where neither the file nor its name says
    engine            number of the engine that it is part of
    own_ns            kernels that don't communicate
    communication_ns  kernels that do, waits for other ranks included
    """

    worker: str
    rank: int | None
    engine: int
    own_ns: float
    communication_ns: float


class ServingEngineRow(msgspec.Struct, frozen=True):
    """Ranks that run the same batches together, as tensor parallelism does; each of their tokens counts once.

    ranks                 how many
    iterations            that all of them recorded
    output_tokens_per_s, prompt_tokens_per_s  null where the labels don't say
    slowest               worker whose own kernels take longest; null if none stands out
    extra_ns              by which its kernels take longer than the median of the others', mean of an iteration
    slowest_share         share of the iterations in which it is the slowest; null without a slowest one
    """

    engine: int
    ranks: int
    iterations: int
    output_tokens_per_s: float | None
    prompt_tokens_per_s: float | None
    slowest: str | None
    extra_ns: float | None
    slowest_share: float | None


class ServingRanks(msgspec.Struct, frozen=True):
    """The engines that the ranks of a run are part of, and the slowest rank of each.

    headline              engines, tokens, and the slowest rank
    output_tokens_per_s   of all engines, each token once; null where one of them doesn't say
    unread                worker -> why it isn't compared
    """

    headline: Text
    output_tokens_per_s: float | None
    engines: list[ServingEngineRow]
    ranks: list[ServingRankRow]
    unread: dict[str, str]


def build_ranks(members: Members[RankIterations], _: NoParams) -> ServingRanks:
    """Compare the ranks that have been read."""
    read = [member for member in members if member.result is not None and member.result.parts]
    results = [member.result for member in read if member.result is not None]
    engines = join_ranks(results)
    rows = [_build_engine_row(i, each, read, results) for i, each in enumerate(engines)]
    rates = [row.output_tokens_per_s for row in rows if row.output_tokens_per_s is not None]
    total = sum(rates) if rates and len(rates) == len(rows) else None
    return ServingRanks(
        headline=_headline(engines, rows, read, total),
        output_tokens_per_s=total,
        engines=rows,
        ranks=[
            ServingRankRow(read[rank].worker, read[rank].rank, i, round(float(own)), round(float(communication)))
            for i, each in enumerate(engines)
            for rank, own, communication in zip(each.members, each.own, each.communication, strict=True)
        ],
        unread={
            member.worker: member.reason or ("no iterations" if member.state == "ready" else "it is being read")
            for member in members
            if member not in read
        },
    )


def _build_engine_row(
    number: int, engine: EngineRanks, read: list[Member[RankIterations]], results: list[RankIterations]
) -> ServingEngineRow:
    first = results[engine.members[0]]
    many = engine.iterations > 1 and first.span_ns > 0
    slowest = engine.slowest
    return ServingEngineRow(
        engine=number,
        ranks=len(engine.members),
        iterations=engine.iterations,
        output_tokens_per_s=_per_second(first.output_tokens, first.span_ns) if many else None,
        prompt_tokens_per_s=_per_second(first.prompt_tokens, first.span_ns) if many else None,
        slowest=None if slowest is None else read[engine.members[slowest]].worker,
        extra_ns=None if slowest is None else round(engine.extra_ns),
        slowest_share=None if slowest is None else engine.slowest_share,
    )


def _per_second(tokens: int | None, span: int) -> float | None:
    return None if tokens is None else 1e9 * tokens / span


def _headline(
    engines: list[EngineRanks],
    rows: list[ServingEngineRow],
    read: list[Member[RankIterations]],
    total: float | None,
) -> Text:
    """Return who runs what together, and who is the slowest."""
    if len(read) < 2:
        return text("Only {count} of this run has iterations, so there is nothing to compare.", count="one rank")
    rate = "" if total is None else f" and generate {format_number(total)} tokens/s"
    if len(engines) == 1:
        what = text(
            "{ranks} run each of the {count} together{rate}, so each counts once.",
            ranks=plural(len(read), "rank"),
            count=plural(rows[0].iterations, "iteration"),
            rate=rate,
        )
    else:
        what = text(
            "{ranks} are {engines} with separate batches{rate}.",
            ranks=plural(len(read), "rank"),
            engines=plural(len(engines), "engine"),
            rate=rate,
        )
    late = [(row.extra_ns * row.iterations, i) for i, row in enumerate(rows) if row.extra_ns is not None]
    if not late:
        shared = any(len(each.members) > 1 for each in engines)
        return sentences(what, text("None is clearly slower than the others.") if shared else ())
    row, engine = rows[max(late)[1]], engines[max(late)[1]]
    member = read[engine.members[engine.slowest or 0]]
    return sentences(
        what,
        text(
            "The slowest is {slowest}: its kernels take {time} of an iteration, {extra} more than the median of "
            "the others.",
            slowest=Phrase(worker_name(member.rank, member.worker), link("trace", worker=member.worker)),
            time=format_duration(engine.others_ns + engine.extra_ns),
            extra=format_duration(row.extra_ns),
        ),
    )


VIEW = RunView(
    "serving/ranks",
    "Serving beside other ranks",
    NoParams,
    ServingRanks,
    build_ranks,
    RANK_ITERATIONS,
    rows="ranks",
    answers="The engines that the ranks of a run are part of, and the slowest rank of each.",
)
