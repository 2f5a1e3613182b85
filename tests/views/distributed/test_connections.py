"""Connections between chosen ranks on one timeline, in simulated jobs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.support.jobs import Job, ddp
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.view import Members
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.distributed.build import TAB
from torch_tb_profiler.views.distributed.connections import ConnectionsParams, build_connections

STEPS, BUCKETS = 3, 3


def test_every_collective_of_the_chosen_ranks_is_connected_on_one_clock() -> None:
    members = Job(4, ddp(4, BUCKETS), steps=STEPS, clock_ns={2: 5_000_000}).members()
    names = [member.worker for member in members]
    joined = build_connections(members, ConnectionsParams(f"{names[2]},{names[0]}"))
    assert [(rank.worker, rank.state) for rank in joined.ranks] == [(names[2], "ready"), (names[0], "ready")]
    assert joined.total == len(joined.rows) == STEPS * BUCKETS
    for row in joined.rows:
        assert sorted(row.members) == [0, 1]
        # All ranks leave a collective together, whatever their clocks say.
        assert max(row.ends_ns) - min(row.ends_ns) < 5_000


def test_a_window_and_a_limit_keep_the_longest() -> None:
    members = Job(3, ddp(3, BUCKETS), steps=STEPS, straggler=1).members()
    workers = ",".join(member.worker for member in members)
    everything = build_connections(members, ConnectionsParams(workers)).rows
    few = build_connections(members, ConnectionsParams(workers, limit=2))
    assert (len(few.rows), few.total) == (2, STEPS * BUCKETS)
    assert plain(few.details).startswith("9 collectives in this window (longest 2 drawn), connected across ranks")
    lengths = {
        row.collective: max(e - s for s, e in zip(row.starts_ns, row.ends_ns, strict=True)) for row in everything
    }
    longest = sorted(lengths.values())[-2:]
    assert sorted(lengths[row.collective] for row in few.rows) == longest
    first = everything[0]
    window = ConnectionsParams(workers, begin=min(first.starts_ns), end=min(first.starts_ns) + 1)
    assert [row.collective for row in build_connections(members, window).rows] == [first.collective]


def test_an_unknown_worker_is_named_and_a_single_one_has_no_connections() -> None:
    members = Job(2, ddp(2)).members()
    with pytest.raises(NotFoundError, match="there is no worker 'nobody'"):
        build_connections(members, ConnectionsParams("nobody"))
    alone = build_connections(members, ConnectionsParams(members[0].worker))
    assert (alone.rows, plain(alone.headline)) == ([], "Rank 0 is aligned on the job's clock.")
    assert plain(alone.details).startswith("0 collectives in this window, connected across ranks")
    assert "distributed/connections" in {part.slug for part in TAB.parts}


def test_the_headline_names_what_is_on_one_clock_and_the_rest_is_left_out() -> None:
    """A rank whose file failed, and one that is still read: only of the first it is known that it has no clock."""
    five = Job(5, ddp(5)).members()
    failed = replace(five[3], state="failed", result=None)
    members = Members((*five[:3], failed, replace(five[4], state="loading", result=None)))
    joined = build_connections(members, ConnectionsParams(",".join(five[rank].worker for rank in (1, 0, 3, 4))))
    assert plain(joined.headline) == "Ranks 1 and 0 are aligned on the job's clock."
    links = [phrase.link for phrase in joined.headline if phrase.link]
    assert links == [f"trace?worker={five[rank].worker}" for rank in (1, 0)]
    assert plain(joined.details).endswith(f"Left out because their clocks can't be aligned: {failed.worker}.")
    nothing = build_connections(members, ConnectionsParams(failed.worker))
    assert plain(nothing.headline) == "The clocks of these ranks can't be aligned."


def test_a_straggler_is_named_first() -> None:
    members = Job(6, ddp(6), steps=STEPS, straggler=4).members()
    workers = [member.worker for member in members]
    joined = build_connections(members, ConnectionsParams(",".join(workers[rank] for rank in (3, 4, 5))))
    assert joined.late == [1]
    expected = "Rank 4 is a straggler. Ranks 3 and 5 are shown below it, on the job's clock."
    assert plain(joined.headline) == expected
    # Without it, and in a job of which no rank stands out, nobody is.
    without = build_connections(members, ConnectionsParams(",".join(workers[rank] for rank in (3, 5))))
    assert (without.late, plain(without.headline)) == ([], "Ranks 3 and 5 are aligned on the job's clock.")
    alone = build_connections(members, ConnectionsParams(workers[4]))
    assert (alone.late, plain(alone.headline)) == ([0], "Rank 4 is aligned on the job's clock.")
    even = Job(6, ddp(6), steps=STEPS).members()
    assert build_connections(even, ConnectionsParams(",".join(workers))).late == []


def test_of_two_ranks_the_straggler_is_shown_above_the_other() -> None:
    members = Job(2, ddp(2), steps=STEPS, straggler=1).members()
    joined = build_connections(members, ConnectionsParams(",".join(member.worker for member in members)))
    expected = "Rank 1 is a straggler. Rank 0 is shown below it, on the job's clock."
    assert (joined.late, plain(joined.headline)) == ([1], expected)
