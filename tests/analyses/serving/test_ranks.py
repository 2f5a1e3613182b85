"""Iterations that ranks run together count once, and the slowest rank is named."""

from __future__ import annotations

import pytest

from tests.support.serving import Workload
from tests.support.serving_ranks import rank_document
from tests.support.traces import draw, read_bytes
from torch_tb_profiler.analyses.serving.ranks import RankIterations, join_ranks, rank_iterations
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.serving.ranks import ServingRanks, build_ranks

LOAD, OTHER = Workload(requests=12), Workload(requests=12, seed=2)


def rank(load: Workload = LOAD, slower: float = 1.0, skip: int = 0, communicates: bool = True) -> RankIterations:
    return rank_iterations(read_bytes(rank_document(load, slower=slower, skip=skip, communicates=communicates)))


def shown(*ranks: RankIterations) -> ServingRanks:
    members = (Member(f"rank{i}", i, "1", "ready", None, each) for i, each in enumerate(ranks))
    return build_ranks(Members(members), NoParams())


def test_ranks_with_the_same_batches_are_one_engine_and_count_once() -> None:
    one, late = rank(), rank(skip=5)
    (engine,) = join_ranks([one, late, one])
    assert engine.members == (0, 1, 2) and engine.iterations == len(late.table())
    assert engine.own[1] == engine.own[0] and engine.slowest is None
    payload = shown(one, one, one)
    assert payload.output_tokens_per_s == shown(one).output_tokens_per_s
    assert plain(payload.headline).endswith("so each counts once. None is clearly slower than the others.")


@pytest.mark.parametrize(("slower", "named"), [(1.2, True), (1.005, False), (0.8, False)])
def test_the_slowest_rank_is_named_if_it_stands_out(slower: float, named: bool) -> None:
    payload = shown(rank(), rank(), rank(slower=slower), rank())
    (engine,) = payload.engines
    assert (engine.slowest == "rank2") is named and engine.ranks == 4
    assert ("The slowest is rank 2: its kernels take " in plain(payload.headline)) is named
    if named:
        own = [row.own_ns for row in payload.ranks]
        assert engine.extra_ns == pytest.approx(own[2] - own[0], rel=0.01) and engine.slowest_share == 1.0


def test_a_rank_that_is_slow_once_does_not_keep_the_others_waiting() -> None:
    one = rank()
    table = one.table().copy()
    table["own"][3] *= 50
    once = RankIterations(one.engine, one.span_ns, one.output_tokens, one.prompt_tokens, table.tobytes())
    assert shown(one, once).engines[0].slowest is None


def test_other_batches_are_another_engine_whose_tokens_add_up() -> None:
    one, other = rank(), rank(OTHER)
    payload = shown(one, one, other)
    assert [engine.ranks for engine in payload.engines] == [2, 1]
    rates = [engine.output_tokens_per_s for engine in payload.engines]
    assert None not in rates and payload.output_tokens_per_s == sum(rate for rate in rates if rate is not None)
    assert plain(payload.headline).startswith("3 ranks are 2 engines with separate batches and generate ")


def test_without_communication_the_same_batches_are_two_engines() -> None:
    """Replicas that benchmark the same load run the same batches, and don't wait for each other."""
    alone = rank(communicates=False)
    assert len(join_ranks([alone, alone])) == 2 and len(join_ranks([rank(), alone])) == 2


def test_a_rank_without_iterations_says_so() -> None:
    nothing = rank_iterations(draw("gpu0  kernel  gemm  0  10"))
    payload = shown(rank(), nothing)
    assert payload.unread == {"rank1": "no iterations"} and len(payload.ranks) == 1
    assert "Only one rank" in plain(payload.headline)
