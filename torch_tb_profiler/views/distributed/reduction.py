"""What each rank of a job contributes to the views of the job."""

from __future__ import annotations

from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary, summarize
from torch_tb_profiler.view import Reduction

RANK_SUMMARIES = Reduction("distributed", RankSummary, summarize)
