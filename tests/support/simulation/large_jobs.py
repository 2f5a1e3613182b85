"""Jobs of thousands of ranks, as what their traces are reduced to: two nodes, the second of them repeated."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
from msgspec.structs import replace

from tests.support.jobs import Job, tensor_and_data_parallel
from torch_tb_profiler.analyses.distributed.operations import pack_operations
from torch_tb_profiler.analyses.distributed.rank_details import RankDetails
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.model.communication.groups import spell_ranks
from torch_tb_profiler.view import Member, Members

NODE = 8
LATE = 5
"""The rank that keeps the others waiting, by 3 ms per step."""


@cache
def _drawn(steps: int) -> Members[RankSummary]:
    return Job(
        2 * NODE, tensor_and_data_parallel(2 * NODE, NODE), steps=steps, straggler=LATE, slow_us=3000
    ).members()


@cache
def _details(steps: int, number: int) -> RankDetails:
    found: RankDetails = _drawn(steps)[number].details()
    return found


def large_job(ranks: int, steps: int = 3) -> Members[RankSummary]:
    """Nodes of eight ranks: each reduces with its node (`tp`), then with its like of every node (`dp`).

    ranks  a multiple of eight
    """
    dice = np.random.default_rng(1)
    members = []
    for rank in range(ranks):
        place = rank % NODE
        number = rank if rank < NODE else NODE + place
        drawn = _drawn(steps)[number].result
        assert drawn is not None
        table = drawn.table().copy()
        earlier = np.minimum(dice.integers(0, 2_000, len(table)), table["window"] // 2)
        table["start"] -= earlier
        table["latency"] += earlier
        node, like = range(rank - place, rank - place + NODE), range(place, ranks, NODE)
        groups = tuple(
            replace(group, ranks=spell_ranks(own), size=len(own))
            for group, own in ((group, node if group.name == "tp" else like) for group in drawn.groups)
        )
        summary = replace(drawn, rank=rank, world_size=ranks, groups=groups, operations=pack_operations(table))
        worker = f"host{rank // NODE}_{1000 + rank}"
        members.append(Member(worker, rank, "1", "ready", None, summary, partial(_details, steps, number)))
    return Members(members)
