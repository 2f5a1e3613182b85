"""Sentences about a job are true of it, and their parts open the evidence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

import msgspec
import pytest
from msgspec.structs import replace

from tests.support.job_views import sentences, view
from tests.support.jobs import CULPRIT, Job, ddp, fsdp, pipeline, ready_member
from tests.support.producers import ascend
from tests.support.simulation.simulator import Action, Collective, SimulatedKernel, Simulation, Sync, Wait
from tests.support.traces import read_bytes
from torch_tb_profiler.analyses.distributed.job import RankSource
from torch_tb_profiler.analyses.distributed.rank_details import RankDetails
from torch_tb_profiler.analyses.distributed.rank_summary import RankSummary
from torch_tb_profiler.base.format import format_duration, format_ratio
from torch_tb_profiler.view import Member, Members, NoParams
from torch_tb_profiler.views._shared.job.names import RANKS_TABLE, rank_names
from torch_tb_profiler.views._shared.text import Phrase, Text, plain, worker_name
from torch_tb_profiler.views.distributed.build import build
from torch_tb_profiler.views.distributed.payload.job import DistributedPayload


def links(text: Text) -> dict[str, str]:
    return {phrase.text: phrase.link for phrase in text if phrase.link is not None}


def build_payload(members: Sequence[Member[RankSummary]]) -> DistributedPayload:
    return build(Members(members), NoParams())


def drop_result(member: Member[RankSummary], state: str) -> Member[RankSummary]:
    return replace(member, state=state, result=None)


# ---- headline -------------------------------------------------------------------------------------------


def test_the_headline_names_the_straggler_with_its_cost_and_opens_both() -> None:
    payload = view(Job(4, ddp(4), straggler=2))
    row = payload.stragglers[0]
    assert plain(payload.headline) == (
        f"Rank 2 is a straggler: it arrives last at {row.last} of {row.collectives} collectives "
        f"and costs every other rank {format_duration(row.cost_ns)} per step."
    )
    assert (payload.verdict.text, payload.verdict.cost_ns) == (payload.headline, row.cost_ns)
    assert links(payload.headline) == {
        "Rank 2": "trace?worker=host0_1002",
        f"{row.last} of {row.collectives} collectives": "distributed?table=collectives&late=host0_1002&sort=-skew",
    }


def test_with_one_other_rank_it_is_the_other() -> None:
    assert plain(view(Job(2, ddp(2), straggler=1)).headline).startswith("Rank 1 is a straggler")


def test_without_recorded_steps_the_cost_is_that_of_the_recording() -> None:
    members = [
        replace(member, result=msgspec.structs.replace(member.result, recorded_steps=False))
        for member in Job(4, ddp(4), straggler=2, steps=1).members()
        if member.result is not None
    ]
    payload = build_payload(members)
    assert plain(payload.headline).endswith("in the recording.")
    assert "of the recording in exposed communication" in plain(payload.explanation)
    assert "per step" not in sentences(payload)


def test_ranks_alike_do_not_stand_out_and_the_largest_delay_is_named() -> None:
    payload = view(Job(8, ddp(8)))
    assert plain(payload.headline) == "The ranks are balanced; no straggler."
    row = payload.stragglers[0]
    assert plain(payload.explanation).startswith(
        f"Rank {row.rank} costs the others most: {format_duration(row.cost_ns)} per step, less than 2% of a step."
    )
    two = view(Job(2, ddp(2)))
    cost = format_duration(two.stragglers[0].cost_ns)
    assert plain(two.explanation).startswith(
        f"Rank {two.stragglers[0].rank} costs the other rank {cost} per step, less than 2% of a step."
    )


def test_without_any_delay_none_is_attributed() -> None:
    """The profiler of rank 1 begins after rank 0 waits in the only collective."""
    payload = view(Job(2, ddp(2, 1), steps=1, joins_late_us={1: 8_000.0}, jitter_us=0.0))
    assert payload.stragglers[0].delay_ns == 0
    assert payload.stragglers[0].cost_ns == 0
    assert plain(payload.headline) == "The ranks are balanced; no straggler."
    assert plain(payload.explanation).startswith("No delay is attributed to any rank.")


def test_arrivals_within_the_error_of_the_clocks_are_attributed_to_nobody() -> None:
    """Both ranks arrive at the same time."""
    payload = view(Job(2, ddp(2, 1), jitter_us=0.0))
    assert [(row.last, row.collectives) for row in payload.stragglers] == [(0, 0), (0, 0)]
    assert plain(payload.headline) == "The ranks are balanced; no straggler."
    assert payload.reasons["late_rank"]


# ---- unknown --------------------------------------------------------------------------------------------


def test_sizes_on_ascend_are_no_matter_of_a_newer_pytorch() -> None:
    files = [read_bytes(json.dumps(ascend.events()).encode()) for _ in range(2)]
    payload = build_payload([ready_member(f"rank{rank}", rank, trace) for rank, trace in enumerate(files)])
    assert "`communication.json`" in plain(payload.reasons["bytes"])
    assert "PyTorch" not in plain(payload.reasons["bytes"])
    without = view(Job(2, ddp(2, 1), metadata=False))
    assert "or a newer PyTorch" in plain(without.reasons["bytes"])


def test_a_rank_alone_is_named() -> None:
    payload = build_payload(Job(4, ddp(4)).members(only=[1]))
    assert (
        plain(payload.headline) == "Only rank 1 was read. Add the other ranks' traces to see who waits for whom."
    )
    assert links(payload.headline) == {"rank 1": "trace?worker=host0_1001"}
    assert plain(payload.explanation) == "1 of 4 ranks was compared; the traces of ranks 0, 2, 3 are missing."


def test_while_ranks_are_read_nothing_is_claimed() -> None:
    first, *others = Job(4, ddp(4)).members()
    for members in (
        [first, *(drop_result(each, "loading") for each in others)],
        [drop_result(each, "waiting") for each in others],
    ):
        payload = build_payload(members)
        assert plain(payload.headline) == "Reading the ranks."
        assert plain(payload.explanation) == "Waiting can be attributed once two ranks are read."
    compared = build_payload([*others[:2], drop_result(others[2], "loading")])
    assert plain(compared.headline) == "Of the 2 ranks read so far, none is a straggler."


def test_while_ranks_are_read_a_late_rank_is_late_among_those_read() -> None:
    members = Job(4, ddp(4), straggler=2).members()
    whole, partly = build_payload(members), build_payload([*members[:3], drop_result(members[3], "loading")])
    assert plain(whole.headline).startswith("Rank 2 is a straggler: ")
    assert plain(partly.headline).startswith("Of the 3 ranks read so far, rank 2 is a straggler: it costs ")
    assert len(plain(partly.headline)) <= len(plain(whole.headline)), "or it takes a line more, and the page moves"
    assert links(partly.headline)["rank 2"] == "trace?worker=host0_1002"


@pytest.mark.parametrize(("world", "read", "straggler"), [(6, 2, None), (4, 3, 3)], ids=["few", "absent"])
def test_while_ranks_are_read_too_few_of_them_are_counted(world: int, read: int, straggler: int | None) -> None:
    members = Job(world, ddp(world), straggler=straggler).members()
    payload = build_payload([*members[:read], *(drop_result(each, "loading") for each in members[read:])])
    assert plain(payload.headline) == "Reading the ranks."
    expected = f"The {read} ranks read so far don't show whether one is a straggler."
    assert plain(payload.explanation) == expected
    lost = build_payload([*members[:read], *(drop_result(each, "failed") for each in members[read:])])
    assert "so far" not in sentences(lost)


def test_without_any_rank_there_is_none_to_compare() -> None:
    payload = build_payload([drop_result(each, "failed") for each in Job(2, ddp(2)).members()])
    assert plain(payload.headline) == "No rank of this job can be compared."
    assert links(payload.headline) == {"rank": RANKS_TABLE}


def test_messages_without_sender_and_receiver_cannot_be_attributed() -> None:
    payload = view(Job(4, pipeline(4), metadata=False, straggler=2))
    assert plain(payload.headline) == (
        "No collective could be matched between the ranks, so waiting can't be attributed."
    )


def test_a_group_without_listed_ranks_shares_ends_that_agree() -> None:
    """No file has the time of day."""
    members = [
        replace(
            member,
            result=msgspec.structs.replace(
                member.result,
                base_ns=0,
                groups=tuple(msgspec.structs.replace(group, ranks=None, size=9) for group in member.result.groups),
            ),
        )
        for member in Job(3, ddp(3), straggler=1).members()
        if member.result is not None
    ]
    payload = build_payload(members)
    assert [rank.clock.method for rank in payload.ranks if rank.clock] == ["reference", *2 * ["collective_ends"]]
    assert payload.verdict.rank == 1
    assert plain(payload.headline).endswith(" and costs every other rank 5.00 ms per step.")


# ---- explanation ----------------------------------------------------------------------------------------


def test_the_explanation_says_what_the_others_spend_and_opens_the_collective() -> None:
    payload = view(Job(4, ddp(4), straggler=2))
    shares = [row.exposed_ns / row.duration_ns for row in payload.overview if row.rank != 2]
    share = format_ratio(sum(shares) / len(shares))
    assert plain(payload.explanation).startswith(
        f"Ranks 0, 1 and 3 spend {share} of an average step in exposed communication (nccl:all_reduce). "
    )
    assert links(payload.explanation)["nccl:all_reduce"] == "distributed?table=collectives&q=nccl%3Aall_reduce"


@pytest.mark.parametrize(("steps", "base"), [(1, "of the step in"), (2, "of an average step in")])
def test_one_step_is_not_called_an_average(steps: int, base: str) -> None:
    assert base in plain(view(Job(4, ddp(4), straggler=2, steps=steps)).explanation)


def test_of_several_collectives_the_one_with_most_time_is_named() -> None:
    payload = view(Job(8, fsdp(8), straggler=2))
    times: dict[str, int] = {}
    for row in payload.collectives:
        if row.rank != 2:
            times[row.name] = times.get(row.name, 0) + (row.exposed_ns or 0)
    assert "The other 7 ranks spend" in plain(payload.explanation)
    assert f", most of it in {max(times, key=lambda name: times[name])}. " in plain(payload.explanation)


@pytest.mark.parametrize(
    ("times", "says"),
    [
        ((300, 310, 320), ", the largest part of it in nccl:reduce_scatter."),
        ((300, 310, 700), ", most of it in nccl:reduce_scatter."),
        ((0, 0, 700), " (nccl:reduce_scatter)."),
    ],
)
def test_a_collective_with_less_than_half_of_the_time_is_not_called_most_of_it(
    times: tuple[int, int, int], says: str
) -> None:
    everyone = (0, 1, 2)
    names = ("allreduce", "_allgather_base", "_reduce_scatter_base")
    program: list[Action] = [SimulatedKernel("gemm", 1000)]
    for name, us in zip(names, times, strict=True):
        program += [Collective(name, everyone, "0", us), Wait(), SimulatedKernel("gelu", 500)] if us else []
    job = Simulation([[*program, Sync()]] * 3, steps=4).run()
    assert says in plain(build(job.members(), NoParams()).explanation)


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_cause_opens_the_collective_where_the_rank_was_latest(ranks: int) -> None:
    payload = view(Job(ranks, ddp(ranks), straggler=1))
    other = "the other rank" if ranks == 2 else "the median rank"
    assert plain(payload.explanation).endswith(
        f"Before it arrives, rank 1's host spends 5.00 ms per step in {CULPRIT}; {other}'s spends less."
    )
    latest = payload.meanwhile[0].latest
    assert links(payload.explanation)[CULPRIT] == f"distributed?table=collectives&collective={latest}"


def test_without_a_name_the_category_is_the_cause() -> None:
    """The window of the straggler is longer by time in which nothing is recorded."""
    payload = view(Job(4, ddp(4), straggler=1, slow_kernel=True))
    assert "device spends" in plain(payload.explanation)
    hidden = without_names(Job(4, ddp(4), straggler=1, slow_kernel=True))
    assert "Before it arrives, rank 1 spends" in plain(hidden.explanation)
    assert "in kernels; the median rank spends" in plain(hidden.explanation)


def _nameless(details: RankDetails) -> RankDetails:
    table = details.table().copy()
    table["host"] = table["kernels"] = -1
    return msgspec.structs.replace(details, operations=memoryview(table.tobytes()))


def without_names(job: Job) -> DistributedPayload:
    """Return the job without the names of what was done before each collective."""
    members = []
    for member in job.members():
        assert member.result is not None
        members.append(replace(member, details=partial(_nameless, member.details())))
    return build_payload(members)


# ---- problems and names ---------------------------------------------------------------------------------


def test_problems_lead_to_the_ranks_and_to_the_collectives() -> None:
    broken = drop_result(Job(2, ddp(2)).members()[1], "failed")
    payload = build_payload([*Job(2, ddp(2)).members(only=[0]), replace(broken, reason="the file is empty")])
    (problem,) = payload.problems
    assert plain(problem.text) == "Rank 1 (host0_1001) is missing: the file is empty"
    assert links(problem.text) == {"Rank 1 (host0_1001)": RANKS_TABLE}
    payload = view(Job(4, ddp(4), wrong={(2, 1): ("In msg nelems", 7)}))
    (problem,) = payload.problems
    assert plain(problem.text) == "1 collective is not compared: the ranks differ in name, size, or dtype"
    assert links(problem.text) == {"1 collective is": "distributed?table=collectives&mismatched=true"}


def test_a_mismatch_says_what_differs() -> None:
    payload = view(Job(4, ddp(4), wrong={(2, 1): ("In msg nelems", 7)}))
    (mismatch,) = payload.mismatches
    assert plain(mismatch.text) == "nccl:all_reduce: ranks move different amounts of data (800000 bytes, 28 bytes)"
    evidence = f"distributed?table=collectives&collective={mismatch.collective}"
    assert links(mismatch.text) == {"nccl:all_reduce": evidence}
    (missing,) = view(Job(4, ddp(4), lost=frozenset({(1, 1)}))).mismatches
    assert plain(missing.text).endswith("a rank lacks it but has earlier and later ones")


def source(rank: int | None, worker: str | None = None) -> RankSource:
    (member,) = Job(2, ddp(2), steps=1).members(only=[0])
    assert member.result is not None
    return RankSource(f"w{rank}" if worker is None else worker, rank, None, member.result, member.details)


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([3], "Rank 3"),
        ([None], "wNone"),
        ([0, 1], "Ranks 0 and 1"),
        ([0, 1, 3], "Ranks 0, 1 and 3"),
        ([0, None], "w0 and wNone"),
        ([0, 2, 4, 6, 8, 10], "Ranks 0-10/2"),
        ([0, 1, 2, 3, 4, None], "6 workers"),
    ],
)
def test_ranks_are_named_and_each_opens_its_timeline(ranks: list[int | None], text: str) -> None:
    names = rank_names([source(rank) for rank in ranks])
    assert plain(names) == text
    expected = [f"trace?worker=w{rank}" for rank in ranks] if len(ranks) <= 5 else [RANKS_TABLE]
    assert [phrase.link for phrase in names if phrase.link] == expected
    assert plain(rank_names([source(rank) for rank in ranks], capital=False)) == text.replace("Rank", "rank")


@pytest.mark.parametrize(
    ("workers", "capital", "within"),
    [
        (["77"], "Worker 77", "worker 77"),
        (["77", "78"], "Workers 77 and 78", "workers 77 and 78"),
        (["host_77"], "host_77", "host_77"),
    ],
)
def test_a_name_that_is_a_number_is_no_rank(workers: list[str], capital: str, within: str) -> None:
    sources = [source(None, worker) for worker in workers]
    assert plain(rank_names(sources)) == capital
    assert plain(rank_names(sources, capital=False)) == within
    assert [worker_name(None, worker) for worker in workers[:1]] == [
        within.partition(" and")[0].replace("s 7", " 7")
    ]
    assert worker_name(3, workers[0]) == "rank 3"


def test_a_hostile_name_stays_a_name() -> None:
    worker = "{names}?worker=x&view=<b>"
    member = replace(Job(2, ddp(2)).members(only=[0])[0], worker=worker, rank=None)
    assert member.result is not None
    payload = build_payload([replace(member, result=msgspec.structs.replace(member.result, rank=None))])
    assert Phrase(worker, "trace?worker=%7Bnames%7D%3Fworker%3Dx%26view%3D%3Cb%3E") in payload.headline


def test_the_summary_of_what_a_rank_did_leads_to_its_latest_collective() -> None:
    row = view(Job(4, ddp(4), straggler=1)).meanwhile[0]
    assert plain(row.summary) == (
        f"It spends {format_duration(row.window_ns)} getting to {row.collectives} collectives "
        f"in {row.steps} steps; "
        f"the median rank spends {format_duration(row.median_window_ns)}."
    )
    assert links(row.summary) == {
        f"{row.collectives} collectives": f"distributed?table=collectives&collective={row.latest}"
    }
