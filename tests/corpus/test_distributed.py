"""Real jobs of several ranks: the laws of the distributed view, and what is known of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import real_traces
from tests.support.job_views import sentences
from tests.support.jobs import ready_member
from torch_tb_profiler.analyses.distributed.rank_details import rank_details
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary, summarize_rank
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.base.errors import TraceError
from torch_tb_profiler.model.communication.collectives import collectives
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.trace import ABSENT, Trace
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views._shared.availability import distributed_reason as unavailable
from torch_tb_profiler.views._shared.text import plain
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.collectives import CollectivesParams, build_collectives
from torch_tb_profiler.views.distributed.payload.job import DistributedPayload

pytestmark = real_traces.MARKS

RUNS = [
    "composer_merged_dev", "gen_ddp_dev", "gen_fsdp_dev", "param_dlrm_8rank_v100", "tok_llama_tp2_4090",
    "torchrec_resnet18_2rank", "torchrec_sleep_4rank", "torchrec_sst_4rank_b", "torchrec_sst_4rank_e",
]  # fmt: skip
ALONE = ["hta_nccl_data", "hta_trace_diff_control_a100", "pippy_gloo_ref", "tl_mi300_resnet_actckpt_8rank"]

Load = Callable[[str], Members[RankSummary]]


@pytest.fixture(scope="module")
def traces(corpus: Path) -> Callable[[str], list[Trace]]:
    @cache
    def load(run: str) -> list[Trace]:
        listed: list[Trace] = []
        for path in sorted((corpus / "traces" / run).glob("*.json*")):
            listed += real_traces.ranks(path).values()
        return listed

    return load


@pytest.fixture(scope="module")
def job(traces: Callable[[str], list[Trace]]) -> Load:
    @cache
    def load(run: str) -> Members[RankSummary]:
        members: list[Member[RankSummary]] = []
        for i, trace in enumerate(traces(run)):
            assert unavailable(trace) is None
            members.append(ready_member(f"worker{i}", i, trace))
        return Members(members)

    return load


def view(members: Members[RankSummary]) -> DistributedPayload:
    return build(members, NoParams())


@pytest.mark.parametrize("run", RUNS + ALONE)
def test_steps_add_up_and_agree_with_the_overview(
    run: str, job: Load, traces: Callable[[str], list[Trace]]
) -> None:
    payload = view(job(run))
    for row in payload.overview:
        assert row.duration_ns == row.computation_ns + row.overlap_ns + row.exposed_ns + row.other_ns
        assert min(row.computation_ns, row.overlap_ns, row.exposed_ns, row.other_ns) >= 0
    ours = [row.duration_ns for row in payload.overview]
    overviews = [breakdown(trace).durations.tolist() for trace in traces(run)]
    assert ours == [duration for durations in overviews for duration in durations]


@pytest.mark.parametrize("run", RUNS + ALONE)
def test_every_communication_kernel_counts_once(run: str, traces: Callable[[str], list[Trace]]) -> None:
    """The time of the operations is that of the raw events, where kernels record them."""
    for trace in traces(run):
        kernels = np.flatnonzero(is_communication_kernel(trace))
        operations = collectives(trace)
        if len(kernels):
            on_device = operations.timing == 0
            assert sorted(operations.event[on_device].tolist()) == kernels.tolist()
            raw = trace.events.duration[kernels].sum()
            assert (operations.end - operations.start)[on_device].sum() == raw
            assert operations.parts.totals(len(operations))[on_device].sum() == raw


@pytest.mark.parametrize("run", RUNS)
def test_ranks_are_compared(run: str, job: Load) -> None:
    members = job(run)
    payload = view(members)
    assert payload.verdict.kind in ("straggler", "balanced", "uneven")
    assert payload.mismatches == []
    rows = build_collectives(members, CollectivesParams()).rows
    assert sum(row.ranks == len(members) for row in rows) >= 0.8 * len(rows)
    for row in rows:
        if row.transfer_ns is not None:
            assert row.waiting_ns is not None and row.waiting_ns >= 0
            assert row.latency_ns is not None and row.transfer_ns <= row.latency_ns
    assert all(rank.clock is not None and rank.clock.method != "none" for rank in payload.ranks)
    assert payload.heat_map is not None and len(payload.heat_map.lateness_ns) == len(members)


@pytest.mark.parametrize("run", ALONE)
def test_a_rank_alone_shows_what_it_can(run: str, job: Load) -> None:
    payload = view(job(run))
    assert payload.verdict.kind == "unknown"
    assert all(row.transfer_ns is None and row.latency_ns is not None for row in payload.collectives)
    assert "transfer_ns" in payload.reasons


def test_the_rank_that_sits_in_an_annotation_is_named_in_words(job: Load) -> None:
    payload = view(job("torchrec_sst_4rank_b"))
    assert (payload.verdict.kind, payload.verdict.rank) == ("straggler", 2)
    shares = {row.rank: row.exposed_ns / row.duration_ns for row in payload.averages if row.rank is not None}
    assert all(0.8 < shares[rank] < 0.95 for rank in (0, 1, 3)) and shares[2] < 0.05
    text = sentences(payload)
    assert text.startswith("Rank 2 is a straggler")
    assert "Ranks 0, 1 and 3 spend 8" in text and "% of a typical step in exposed communication" in text
    assert "most of it in nccl:all_to_all" in text
    assert "rank 2's host spends 1.00 s per step in # running sparse arch" in text


def test_a_known_bandwidth(job: Load) -> None:
    """6,637,568 floats over two ranks in 2636.669 µs: 10.0696 GB/s, at least."""
    rows = build_collectives(job("hta_nccl_data"), CollectivesParams()).rows
    row = next(row for row in rows if row.latency_ns == 2_636_669)
    assert row.bytes == 4 * 6_637_568 and row.lower_bound
    assert row.algorithm_bandwidth == row.bus_bandwidth == pytest.approx(10.0696e9, rel=1e-5)


def test_a_file_cut_off_loses_only_its_own_times(job: Load, corpus: Path) -> None:
    members: list[Member[RankSummary]] = []
    for i, path in enumerate(sorted((corpus / "traces" / "malformed_rank1_broken_dev").glob("*.json*"))):
        trace = real_traces.outcome(path)
        if isinstance(trace, TraceError):
            members.append(Member(path.name, i, "1", "failed", trace.message, None))
        else:
            members.append(ready_member(path.name, i, trace))
    payload = view(Members(members))
    assert payload.verdict.rank == 2
    assert {problem.rank for problem in payload.problems if problem.kind in ("unmatched", "broken_rank")} == {1}
    whole = view(job("torchrec_sleep_4rank"))
    assert payload.stragglers[0].delay_ns == pytest.approx(whole.stragglers[0].delay_ns, rel=0.01)


def test_the_verdict_of_two_ranks_that_share_their_parameters(job: Load) -> None:
    """Rank 1 costs more than 2% of a step, but three steps cannot tell that from chance; in one rank 0 is late."""
    payload = view(job("gen_fsdp_dev"))
    assert (payload.verdict.kind, plain(payload.verdict.text)) == (
        "uneven",
        "No rank is a clear straggler, but differences between the ranks cost 2.55 ms per step.",
    )
    assert plain(payload.explanation).startswith(
        "Rank 1 costs the other rank 1.64 ms per step, but 3 steps aren't enough to rule out chance."
    )


@pytest.mark.parametrize("run", ["gen_ddp_dev", "gen_fsdp_dev"])
def test_gloo_agrees_with_the_predecessor(run: str, job: Load, corpus: Path) -> None:
    """Calls, bytes and times of operations, where the predecessor knew them: to its rounding of µs."""
    oracle = json.loads(gzip.decompress((corpus / "oracle" / f"{run}.json.gz").read_bytes()))
    tables: dict[str, Any] = _find(oracle, "comm_ops")["data"]
    ours = {(row.rank, row.name): row for row in view(job(run)).collectives}
    for rank, table in enumerate(tables[worker] for worker in sorted(tables)):
        for name, calls, size, _, latency, _, transfer, _ in table["rows"]:
            row = ours[rank, name]
            assert (row.calls, row.bytes) == (calls, size)
            assert row.latency_ns is not None and row.transfer_ns is not None
            assert row.latency_ns / 1000 == pytest.approx(latency, abs=1)
            assert row.transfer_ns / 1000 == pytest.approx(transfer, abs=1)


def _find(tree: object, key: str) -> dict[str, dict[str, dict[str, list[list[object]]]]]:
    if isinstance(tree, dict):
        if key in tree:
            return tree[key]  # type: ignore[no-any-return]
        tree = list(tree.values())
    if isinstance(tree, list):
        for each in tree:
            tables = _find(each, key)
            if tables:
                return tables
    return {}


def test_no_file_of_any_kind_breaks_the_reduction(corpus: Path) -> None:
    for name, part in real_traces.recordings(corpus):
        table = summarize_rank(part).table()
        known = table["window"] != ABSENT
        categories = rank_details(part).table()["categories"]
        assert (categories[known].sum(axis=1) == table["window"][known]).all(), name
        assert len(table) >= is_communication_kernel(part).any(), name
