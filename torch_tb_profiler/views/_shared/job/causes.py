"""Why a rank is late, in words that open the evidence."""

from __future__ import annotations

from torch_tb_profiler.analyses.distributed.causes import StragglerCause
from torch_tb_profiler.analyses.distributed.comparison import RankComparison
from torch_tb_profiler.analyses.distributed.job import RankSource
from torch_tb_profiler.base.format import format_duration
from torch_tb_profiler.views._shared.job.rank_names import rank_names
from torch_tb_profiler.views._shared.names import spoken_frame, spoken_name
from torch_tb_profiler.views._shared.text import Phrase, Text, link, sentences, text

_CATEGORY_WORDS = {
    "kernel": "in kernels",
    "memcpy": "in memory copies",
    "memset": "in memset",
    "communication": "in other communication",
    "runtime": "in runtime calls",
    "dataloader": "in the data loader",
    "cpu_exec": "in operators on the host",
    "other": "on what the profiler does not record",
}


def cause_sentence(comparison: RankComparison, cause: StragglerCause, per_step: str) -> Text:
    """What the (first) late rank does that the median rank does not."""
    rank = rank_names([comparison.sources[cause.member]], capital=False)
    other = "the other rank" if len(comparison.sources) == 2 else "the median rank"
    evidence = link("distributed", table="collectives", collective=cause.collective)
    if cause.kind == "slower_link":
        return text(
            "The collectives of {rank} transfer for longer than the same ones of other ranks: a slower link.",
            rank=rank,
        )
    if cause.kind == "slower_device":
        return text(
            "{other} runs the same kernels in less time: {rank}'s device takes {ratio} × as long, "
            "a slower device.",
            other=other[:1].upper() + other[1:], rank=rank, ratio=Phrase(f"{cause.ratio:.2f}", evidence),
        )  # fmt: skip
    time, median = format_duration(cause.time), "less" if cause.median is None else format_duration(cause.median)
    if cause.where == "category":
        return text(
            "Meanwhile {rank} spends {time} {per_step} {doing}; {other} spends {median}.",
            rank=rank, time=Phrase(time, evidence), per_step=per_step, doing=_CATEGORY_WORDS[cause.name],
            other=other, median=median,
        )  # fmt: skip
    where = text(
        "Meanwhile {rank}'s {where} spends {time} {per_step} in {name}; {other}'s spends {median}.",
        rank=rank, where="device" if cause.where == "device" else "host", time=time, per_step=per_step,
        name=Phrase(_spoken(cause), evidence),
        other=other, median=median,
    )  # fmt: skip
    if cause.operator is None:
        return where
    return sentences(
        where, text("By operator, most of the difference is {name}.", name=spoken_name(cause.operator))
    )


def because(comparison: RankComparison, cause: StragglerCause) -> Text:
    """The evidence alone, as the cell of a table."""
    evidence = link("distributed", table="collectives", collective=cause.collective)
    if cause.kind == "slower_link":
        return text("its collectives transfer for longer than the same ones of other ranks")
    if cause.kind == "slower_device":
        return text("the same kernels take {ratio} × the median", ratio=Phrase(f"{cause.ratio:.2f}", evidence))
    more = format_duration(cause.time - (cause.median or 0))
    if cause.where == "category":
        return text("{more} more {doing}", more=Phrase(more, evidence), doing=_CATEGORY_WORDS[cause.name])
    return text("{more} more in {name}", more=more, name=Phrase(_spoken(cause), evidence))


def held_up_by(source: RankSource) -> Text:
    """Of a rank that passes another's lateness on."""
    return text("waits for {rank}", rank=rank_names([source], capital=False))


def _spoken(cause: StragglerCause) -> str:
    if cause.where == "frame":
        return spoken_frame(cause.name)
    return spoken_name(cause.short_name or cause.name)
