"""Whatever ranks record, they can be compared, and the numbers add up."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.jobs import ready_member
from tests.support.traces import read
from torch_tb_profiler.analyses.distributed.rank_details import RankDetails, rank_details
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary, summarize_rank
from torch_tb_profiler.analyses.shared.breakdown import breakdown
from torch_tb_profiler.model.communication.collectives import collectives
from torch_tb_profiler.model.communication.events import is_communication_kernel
from torch_tb_profiler.model.trace import ABSENT
from torch_tb_profiler.session.cache.packed import pack, unpack
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.collectives import (
    CollectiveParams,
    CollectivesParams,
    build_collective,
    build_collectives,
)

NAMES = {
    "cpu_op": ["record_param_comms", "c10d::allreduce_", "aten::mm", "gloo:all_reduce"],
    "user_annotation": [
        "nccl:all_reduce", "nccl:coalesced", "gloo:broadcast", "forward", "ProfilerStep#1", "ProfilerStep#2",
    ],
    "cuda_runtime": ["cudaLaunchKernel"],
    "kernel": ["gemm", "ncclDevKernel_AllReduce_Sum", "ncclDevKernel_SendRecv", "ncclDevKernel_Generic"],
}  # fmt: skip
ODD: list[Any] = [None, 0, -1, 7, 2**62, 2**70, 1.5, "x", "[0, 1]", "[0, 1, ..., 7]", [0, 1], [], {}]
FACTS: dict[str, list[Any]] = {
    "Collective name": ["allreduce", "send", "recv", "all_to_allv", "wait", "barrier"],
    "In msg nelems": [0, 5, 100],
    "Out msg nelems": [0, 5, 100],
    "dtype": ["Float", "BFloat16", "Nonsense"],
    "Group size": [1, 2],
    "Process Group Name": ["0", "1"],
    "Process Group Ranks": ["[0, 1]", "[1, 2]"],
    "Seq": [1, 2, 3],
    "Src Rank": [0, 1],
    "Dst Rank": [0, 1],
    "Rank": [0, 1],
    "In split size": ["[1, 2]", "[]"],
    "Input Dims": ["[[4, 5]]", "[[1000000000000, 1000000000000]]", "[[-3]]"],
    "Input type": ['["float"]', '["double", "int"]'],
}


@st.composite
def events(draw: Any) -> dict[str, Any]:
    category = draw(st.sampled_from(list(NAMES)))
    args: dict[str, Any] = {}
    if category in ("cuda_runtime", "kernel"):
        args["correlation"] = draw(st.integers(1, 4))
    for key in draw(st.sets(st.sampled_from(list(FACTS)), max_size=8)):
        args[key] = draw(st.one_of(st.sampled_from(FACTS[key]), st.sampled_from(FACTS[key]), st.sampled_from(ODD)))
    return {
        "ph": "X",
        "cat": category,
        "name": draw(st.sampled_from(NAMES[category])),
        "pid": 0 if category == "kernel" else 1,
        "tid": draw(st.integers(1, 2)),
        "ts": draw(st.integers(0, 40)),
        "dur": draw(st.integers(-1, 20)),
        "args": args,
    }


@st.composite
def heads(draw: Any) -> dict[str, Any]:
    info: dict[str, Any] = {"backend": draw(st.sampled_from(["nccl", "gloo", "", 3]))}
    info["rank"] = draw(st.sampled_from([0, 1, 2, None, "1"]))
    info["world_size"] = draw(st.sampled_from([1, 2, 3, None, 2**40]))
    group = {
        "pg_name": "0",
        "pg_size": draw(st.sampled_from([2, "2"])),
        "ranks": draw(st.sampled_from(ODD + [[0, 1]])),
    }
    info["pg_config"] = draw(st.sampled_from([[group], [], None, [3]]))
    base = draw(st.sampled_from([{}, {"baseTimeNanoseconds": 1_700_000_000_000_000_000}]))
    return {"distributedInfo": draw(st.sampled_from([info, info, None, []])), **base}


ranks = st.lists(st.tuples(st.lists(events(), min_size=1, max_size=25), heads()), min_size=1, max_size=4)


def test_what_another_version_reduced_is_made_anew() -> None:
    """The session decodes what its cache holds by type, and makes again what does not decode."""
    packed = pack(summarize_rank(read([{"ph": "X", "name": "a", "ts": 1, "dur": 1}])))
    assert unpack(packed, RankSummary).names == ()
    with pytest.raises(ValueError, match="groups"):
        unpack(packed.replace(b'"groups":', b'"Groups":'), RankSummary)


@pytest.mark.slow
@given(ranks)
def test_any_ranks_can_be_compared(recordings: list[tuple[list[dict[str, Any]], dict[str, Any]]]) -> None:
    members: list[Member[RankSummary]] = []
    for i, (listed, head) in enumerate(recordings):
        trace = read(listed, **head)
        summary = summarize_rank(trace)
        assert unpack(pack(summary), RankSummary) == summary
        operations = collectives(trace)
        assert set(np.flatnonzero(is_communication_kernel(trace)).tolist()) >= set(
            operations.event[operations.timing == 0].tolist()
        )
        table = summary.table()
        known = table["window"] != ABSENT
        categories = unpack(pack(rank_details(trace)), RankDetails).table()["categories"]
        assert (categories[known].sum(axis=1) == table["window"][known]).all()
        timed = table["latency"] != ABSENT
        assert (table["latency"][timed] >= table["exposed"][timed]).all() and (table["exposed"][timed] >= 0).all()
        assert summary.steps.table()["duration"].tolist() == breakdown(trace).durations.tolist()
        members.append(ready_member(f"w{i}", None, trace))
    run = Members(members)
    payload = build(run, NoParams())
    msgspec.json.encode(payload)
    for row in payload.overview:
        assert row.duration_ns == row.computation_ns + row.overlap_ns + row.exposed_ns + row.other_ns
    everything = build_collectives(run, CollectivesParams())
    assert sum(row.ranks for row in everything.rows) == sum(
        rank.calls or 0 for rank in payload.ranks if rank.compared
    )
    for instance in everything.rows:
        one = build_collective(run, CollectiveParams(instance.id))
        assert one.instance == instance and len(one.participants) == instance.ranks
        for part in one.participants:
            if part.transfer_ns is not None:
                assert part.waiting_ns is not None and part.waiting_ns >= 0
                assert part.transfer_ns + part.waiting_ns == part.latency_ns
            assert part.after_first_ns is None or 0 <= part.after_first_ns <= (instance.skew_ns or 0)
