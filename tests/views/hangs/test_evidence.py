"""What the dumps rule out, and of whom they say so."""

from __future__ import annotations

from tests.support.dumps import hung_job
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.hangs.build import build


def test_calls_are_compared_on_the_ranks_with_a_dump() -> None:
    """Nobody knows what a rank without a dump called."""

    def agreement(*ranks: int) -> str:
        payload = build(hung_job(4, 1).dumps(ranks), NoParams())
        return next(fact.text for fact in payload.ruled_out if fact.title == "Different program paths")

    assert agreement(0, 1, 2, 3) == "The last 3 collectives of the default group are the same on all its ranks"
    without_rank_3 = (
        "The last 3 collectives of the default group are the same on all its ranks with a readable dump"
    )
    assert agreement(0, 1, 2) == without_rank_3


def test_a_rank_without_a_dump_is_not_said_to_wait() -> None:
    """It may have died, or be elsewhere."""

    def headline(*ranks: int) -> str:
        return plain(build(hung_job(4, 1).dumps(ranks), NoParams()).headline)

    assert "ranks 0, 2 and 3 have waited" in headline(0, 1, 2, 3)
    assert "ranks 0 and 2 have waited" in headline(0, 1, 2)
