"""What joins chosen ranks on one timeline, from jobs that are drawn."""

from __future__ import annotations

import pytest

from tests.support.jobs import Job, ddp
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.views.distributed.build import TAB
from torch_tb_profiler.views.distributed.connections import build
from torch_tb_profiler.views.distributed.payload.connections import ConnectionsParams

STEPS, BUCKETS = 3, 3


def test_every_collective_of_the_chosen_ranks_is_joined_on_one_clock() -> None:
    members = Job(4, ddp(4, BUCKETS), steps=STEPS, clock_ns={2: 5_000_000}).members()
    names = [member.worker for member in members]
    joined = build(members, ConnectionsParams(f"{names[2]},{names[0]}"))
    assert [(rank.worker, rank.state) for rank in joined.ranks] == [(names[2], "ready"), (names[0], "ready")]
    assert joined.total == len(joined.rows) == STEPS * BUCKETS
    for row in joined.rows:
        assert sorted(row.members) == [0, 1]
        # All ranks leave a collective together, whatever their clocks say.
        assert max(row.ends_ns) - min(row.ends_ns) < 5_000


def test_a_window_and_a_limit_keep_the_longest() -> None:
    members = Job(3, ddp(3, BUCKETS), steps=STEPS, straggler=1).members()
    workers = ",".join(member.worker for member in members)
    everything = build(members, ConnectionsParams(workers)).rows
    few = build(members, ConnectionsParams(workers, limit=2))
    assert (len(few.rows), few.total) == (2, STEPS * BUCKETS)
    lengths = {
        row.collective: max(e - s for s, e in zip(row.starts_ns, row.ends_ns, strict=True)) for row in everything
    }
    kept = sorted(lengths.values())[-2:]
    assert sorted(lengths[row.collective] for row in few.rows) == kept
    first = everything[0]
    window = ConnectionsParams(workers, begin=min(first.starts_ns), end=min(first.starts_ns) + 1)
    assert [row.collective for row in build(members, window).rows] == [first.collective]


def test_a_worker_that_is_not_there_is_named_and_one_alone_is_joined_with_nothing() -> None:
    members = Job(2, ddp(2)).members()
    with pytest.raises(NotFoundError, match="there is no worker 'nobody'"):
        build(members, ConnectionsParams("nobody"))
    assert build(members, ConnectionsParams(members[0].worker)).rows == []
    assert "distributed/connections" in {part.slug for part in TAB.parts}
