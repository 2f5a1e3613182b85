"""Summaries of jobs with thousands of ranks: the first node is simulated, the second one repeated."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
from msgspec.structs import replace

from tests.support.jobs import Job, tensor_and_data_parallel
from torch_tb_profiler.analyses.distributed.operations import Operations, pack_operations
from torch_tb_profiler.analyses.distributed.rank_details import RankDetails
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.model.communication.groups import format_ranks
from torch_tb_profiler.view import Member, Members

NODE_SIZE = 8
"""Ranks per node."""

LATE_RANK = 5
"""The rank that keeps the others waiting, by 3 ms per step."""


@cache
def _two_nodes(steps: int) -> Members[RankSummary]:
    return Job(
        2 * NODE_SIZE,
        tensor_and_data_parallel(2 * NODE_SIZE, NODE_SIZE),
        steps=steps,
        straggler=LATE_RANK,
        slow_us=3000,
    ).members()


@cache
def _details(steps: int, number: int) -> RankDetails:
    details: RankDetails = _two_nodes(steps)[number].details()
    return details


@cache
def _operations(steps: int, number: int) -> Operations:
    """Return the operations of one of the two nodes' ranks, to copy from."""
    simulated = _two_nodes(steps)[number].result
    assert simulated is not None
    return simulated.table()


_format_ranks = cache(format_ranks)  # of which many ranks are in the same groups


def large_job(ranks: int, steps: int = 3) -> Members[RankSummary]:
    """Return a job on nodes of eight ranks.

    Each rank reduces with its node (`tp`), then with its counterparts on the other nodes (`dp`).

    ranks  a multiple of eight
    """
    rng = np.random.default_rng(1)
    members = []
    for rank in range(ranks):
        place = rank % NODE_SIZE
        number = rank if rank < NODE_SIZE else NODE_SIZE + place
        simulated = _two_nodes(steps)[number].result
        assert simulated is not None
        table = _operations(steps, number).copy()
        earlier = np.minimum(rng.integers(0, 2_000, len(table)), table["window"] // 2)
        table["start"] -= earlier
        table["latency"] += earlier
        node, counterparts = range(rank - place, rank - place + NODE_SIZE), range(place, ranks, NODE_SIZE)
        groups = tuple(
            replace(group, ranks=_format_ranks(group_ranks), size=len(group_ranks))
            for group, group_ranks in (
                (group, node if group.name == "tp" else counterparts) for group in simulated.groups
            )
        )
        summary = replace(simulated, rank=rank, world_size=ranks, groups=groups, operations=pack_operations(table))
        worker = f"host{rank // NODE_SIZE}_{1000 + rank}"
        members.append(Member(worker, rank, "1", "ready", None, summary, partial(_details, steps, number)))
    return Members(members)
