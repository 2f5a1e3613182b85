"""What one rank's trace contributes to the critical path of its job."""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from torch_tb_profiler.analyses.distributed.reduction.rank_summary import RankSummary, summarize
from torch_tb_profiler.analyses.schedule.categories import CATEGORIES
from torch_tb_profiler.analyses.schedule.chains import Chains, chains
from torch_tb_profiler.analyses.schedule.step_ends import recorded_spans
from torch_tb_profiler.model.steps import steps
from torch_tb_profiler.model.trace import Trace

CHAIN = np.dtype([("begin", "<i8"), ("end", "<i8"), ("source", "<i8"), ("times", "<i8", (len(CATEGORIES),))])


class RankPath(msgspec.Struct, frozen=True):
    """nodes: bytes of an array of CHAIN, as `Chains`; step_names: of the complete steps."""

    summary: RankSummary
    step_names: tuple[str, ...]
    nodes: Annotated[bytes, CHAIN]

    @property
    def steps(self) -> int:
        return len(self.step_names)

    def chains(self) -> Chains:
        """The nodes as columns (read-only)."""
        table = np.frombuffer(self.nodes, CHAIN)
        return Chains(table["begin"], table["end"], table["source"], table["times"])


def reduce_path(trace: Trace) -> RankPath:
    """The chains of a rank, and what they are matched by."""
    links, count = chains(trace), recorded_spans(trace).begin.shape[1]
    table = np.zeros(len(links.begin), CHAIN)
    for name in ("begin", "end", "source", "times"):
        table[name] = getattr(links, name)
    return RankPath(summarize(trace), tuple(steps(trace).names[:count]), table.tobytes())
