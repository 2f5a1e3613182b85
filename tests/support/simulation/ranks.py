"""A rank as the views of its job get it."""

from __future__ import annotations

from functools import partial

from torch_tb_profiler.analyses.distributed.rank_details import rank_details
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary, summarize_rank
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import Member


def ready(worker: str, rank: int | None, trace: Trace) -> Member[RankSummary]:
    """A worker whose trace is read and reduced."""
    return Member(worker, rank, "1", "ready", None, summarize_rank(trace), partial(rank_details, trace))
