"""The ranks of a job side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from torch_tb_profiler.analyses.distributed.arrivals import Arrivals, arrivals
from torch_tb_profiler.analyses.distributed.clocks import Clocks, align
from torch_tb_profiler.analyses.distributed.job import Job, Source, gather
from torch_tb_profiler.analyses.distributed.matching.matching import Matching, match
from torch_tb_profiler.analyses.distributed.waiting import Split, split_waiting
from torch_tb_profiler.base.text import natural_sort_key


class Comparison(msgspec.Struct, frozen=True):
    """The job's operations, which of them are one collective, and what follows from that.

    positions   worker -> its position in the job's sources
    duplicates  worker -> the worker of the same rank that is compared in its place
    """

    job: Job
    matching: Matching
    clocks: Clocks
    split: Split
    arrivals: Arrivals
    positions: Mapping[str, int]
    duplicates: Mapping[str, str]

    @property
    def sources(self) -> tuple[Source, ...]:
        """The ranks that are compared, in order of rank."""
        return self.job.sources


def compare(candidates: Iterable[Source]) -> Comparison:
    """Compare these workers; of the same rank the first by name. A rank alone is compared with none."""
    sources: list[Source] = []
    holders: dict[int, str] = {}
    duplicates: dict[str, str] = {}
    for source in sorted(candidates, key=lambda each: natural_sort_key(each.worker)):
        if source.rank is not None and source.rank in holders:
            duplicates[source.worker] = holders[source.rank]
            continue
        if source.rank is not None:
            holders[source.rank] = source.worker
        sources.append(source)
    job = gather(sorted(sources, key=lambda each: (each.rank is None, each.rank or 0)))
    matching = match(job)
    clocks = align(job, matching)
    split = split_waiting(job, matching)
    return Comparison(
        job=job,
        matching=matching,
        clocks=clocks,
        split=split,
        arrivals=arrivals(job, matching, clocks, split),
        positions={source.worker: position for position, source in enumerate(job.sources)},
        duplicates=duplicates,
    )
