"""What joins chosen ranks on one timeline, from jobs that are drawn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.jobs import Job, ddp
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.text import plain
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
    assert plain(few.details).startswith("9 collectives in sight, the longest 2 of them, joined from rank to rank")
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
    alone = build(members, ConnectionsParams(members[0].worker))
    assert (alone.rows, plain(alone.headline)) == ([], "Rank 0 on the clock of the job.")
    assert plain(alone.details).startswith("0 collectives in sight, joined from rank to rank")
    assert "distributed/connections" in {part.slug for part in TAB.parts}


def test_the_headline_names_what_is_on_one_clock_and_the_rest_is_left_out() -> None:
    """A rank whose file failed, and one that is still read: only of the first it is known that it has no clock."""
    five = Job(5, ddp(5)).members()
    failed = replace(five[3], state="failed", result=None)
    members = Members((*five[:3], failed, replace(five[4], state="loading", result=None)))
    joined = build(members, ConnectionsParams(",".join(five[rank].worker for rank in (1, 0, 3, 4))))
    assert plain(joined.headline) == "Ranks 1 and 0 on the clock of the job."
    links = [phrase.link for phrase in joined.headline if phrase.link]
    assert links == [f"trace?worker={five[rank].worker}" for rank in (1, 0)]
    assert plain(joined.details).endswith(f"Left out, as their clocks cannot be aligned: {failed.worker}.")
    nothing = build(members, ConnectionsParams(failed.worker))
    assert plain(nothing.headline) == "The clocks of these ranks cannot be aligned."


def test_whoever_keeps_the_others_waiting_is_named_first() -> None:
    members = Job(6, ddp(6), steps=STEPS, straggler=4).members()
    workers = [member.worker for member in members]
    joined = build(members, ConnectionsParams(",".join(workers[rank] for rank in (3, 4, 5))))
    assert joined.late == [1]
    said = "Rank 4 keeps the others waiting; below it, ranks 3 and 5 on the clock of the job."
    assert plain(joined.headline) == said
    # Without it, and in a job of which no rank stands out, nobody is.
    without = build(members, ConnectionsParams(",".join(workers[rank] for rank in (3, 5))))
    assert (without.late, plain(without.headline)) == ([], "Ranks 3 and 5 on the clock of the job.")
    alone = build(members, ConnectionsParams(workers[4]))
    assert (alone.late, plain(alone.headline)) == ([0], "Rank 4 on the clock of the job.")
    even = Job(6, ddp(6), steps=STEPS).members()
    assert build(even, ConnectionsParams(",".join(workers))).late == []


def test_of_two_ranks_there_is_one_other() -> None:
    members = Job(2, ddp(2), steps=STEPS, straggler=1).members()
    joined = build(members, ConnectionsParams(",".join(member.worker for member in members)))
    said = "Rank 1 keeps the other waiting; below it, rank 0 on the clock of the job."
    assert (joined.late, plain(joined.headline)) == ([1], said)
