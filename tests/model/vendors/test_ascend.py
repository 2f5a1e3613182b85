"""Traces of Ascend's profiler, opened from a folder, against the events as drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.producers import ascend
from tests.support.producers.ascend import CALLS, COLLECTIVES, OPERATORS, SIZE, TASKS
from tests.support.traces import read
from tests.support.views import words
from tests.support.waiting import PATIENCE
from torch_tb_profiler.base.settings import Settings
from torch_tb_profiler.model.communication.collectives import collectives
from torch_tb_profiler.model.costs.call import Tensor, UnknownCostError, read_call
from torch_tb_profiler.model.devices import device_kind, devices
from torch_tb_profiler.model.kinds import Kind, rows_of_kind
from torch_tb_profiler.session import Root, Session


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("ascend")
    for rank in (0, 1):
        ascend.write(folder / "run", rank)
    with Session([Root(str(folder))], Settings(cache_bytes=0)) as session:
        session.scan()
        yield session


def payload(session: Session, slug: str) -> Any:
    answer = session.view(slug, run="run", worker="rank1", wait=True, timeout=PATIENCE)
    assert answer.payload is not None
    return json.loads(answer.payload)


def covered_ns(*spans: tuple[float, float]) -> int:
    """Return the ns that (begin, length) spans cover, by eighths of a microsecond."""
    return 125 * len({at for start, length in spans for at in range(int(8 * start), int(8 * (start + length)))})


COMPUTING = [(task.start, task.length) for task in TASKS if task.type.startswith("AI_")]
COPYING = [(task.start, task.length) for task in TASKS if task.type == "SDMA"]
TALKING = [(start, length) for _, start, length in COLLECTIVES]


def test_a_folder_per_process_is_a_worker_of_one_run(session: Session) -> None:
    (run,) = session.scan().runs
    assert run.name == "run"
    assert [(worker.name, worker.rank, len(worker.spans)) for worker in run.workers] == [
        ("rank0", 0, 1),
        ("rank1", 1, 1),
    ]


def test_all_views_have_the_same_rank(session: Session) -> None:
    assert payload(session, "overview")["configuration"]["rank"] == 1
    assert {each["worker"]: each["rank"] for each in payload(session, "distributed")["ranks"]} == {
        "rank0": 0,
        "rank1": 1,
    }


def test_a_rank_that_is_recorded_later_reaches_all_views(tmp_path: Path) -> None:
    ascend.write(tmp_path / "run", 3, named=False)
    with Session([Root(str(tmp_path))], Settings(cache_dir=str(tmp_path / "cache"))) as session:
        ranks = []
        for _ in range(2):
            (worker,) = session.scan().runs[0].workers
            answer = session.view("overview", worker=worker.name, wait=True, timeout=PATIENCE)
            assert answer.payload is not None
            ranks.append((worker.rank, json.loads(answer.payload)["configuration"]["rank"]))
            (home,) = (tmp_path / "run").iterdir()
            (home / "profiler_info_3.json").write_text("{}")
    assert ranks == [(None, None), (3, 3)]


def test_a_second_recording_is_a_second_span(tmp_path: Path) -> None:
    ascend.write(tmp_path / "run", 0)
    ascend.write(tmp_path / "run", 0, stamp="20240102040404004")
    ascend.write(tmp_path, 5, named=False)
    with Session([Root(str(tmp_path))], Settings()) as session:
        runs = {run.name: run for run in session.scan().runs}
    assert len(runs) == 2
    (worker,) = runs["run"].workers
    assert (worker.name, len(worker.spans)) == ("rank0", 2)
    (unnamed,) = next(run for name, run in runs.items() if name != "run").workers
    assert (unnamed.name, unnamed.rank) == (f"host_{ascend.PYTHON + 5}", None)


def test_the_overview_counts_tasks_by_their_type(session: Session) -> None:
    overview = payload(session, "overview")
    assert [(each["kind"], each["id"]) for each in overview["devices"]] == [("NPU", ascend.DEVICE)]
    (step,) = overview["steps"]
    times = step["categories"]
    assert times["kernel"] == covered_ns(*COMPUTING)
    assert times["memcpy"] == covered_ns(*COPYING)
    # What computes or copies at the same time counts first.
    work = covered_ns(*COMPUTING, *COPYING)
    assert times["communication"] == covered_ns(*COMPUTING, *COPYING, *TALKING) - work
    assert step["duration_ns"] == 1000 * SIZE
    assert overview["devices"][0]["utilization"] == covered_ns(*COMPUTING, *TALKING) / (1000 * SIZE)


def test_derived_slices_are_never_summed(session: Session) -> None:
    kernels = payload(session, "kernels")
    assert {row["name"]: row["total_ns"] for row in kernels["rows"]} == {
        **{task.name: 1000 * task.length for task in TASKS if task.type.startswith("AI_")},
        **{name: 1000 * length for name, _, length in COLLECTIVES},
    }
    assert [(row["name"], row["total_ns"]) for row in kernels["memory_operations"]] == [("MEMCPY_ASYNC", 12_000)]


def test_operators_own_the_work_that_their_flows_lead_to(session: Session) -> None:
    table = payload(session, "operators")
    launched = {OPERATORS[task.operator][0]: 1000 * task.length for task in TASKS if task.operator is not None}
    assert {row["name"]: row["device_self_ns"] for row in table["rows"]} == launched
    assert {row["name"]: row["host_total_ns"] for row in table["rows"]} == {
        name: 1000 * length for name, _, length in OPERATORS
    }
    assert table["unlinked"] == {"calls": 2, "device_ns": 1000 * sum(length for *_, length in COLLECTIVES)}


def test_every_slice_is_on_a_track_with_its_role(session: Session) -> None:
    timeline = payload(session, "trace")
    groups = [group["name"] for group in timeline["groups"]]
    assert groups == ["Python", "CANN", "Overlap Analysis", f"NPU {ascend.DEVICE}"]
    slices = sum(event["ph"] == "X" for event in ascend.events())
    assert sum(track["slices"] for track in timeline["tracks"]) == slices
    on_card = {
        track["name"]: track["role"]
        for track in timeline["tracks"]
        if track["kind"] == "stream" and track["device"] == ascend.DEVICE
    }
    assert on_card == {
        "stream 2": "compute",
        "stream 7": "copy",
        "stream 7, waits": "sync",
        "Group 0 Communication": "communication",
    }


def test_groups_communicate_by_huaweis_library() -> None:
    found = collectives(read(ascend.events()))
    names = [
        (found.names[back], found.names[what]) for back, what in zip(found.backend, found.collective, strict=True)
    ]
    assert names == [("hccl", "all_reduce"), ("hccl", "broadcast")]


def test_times_as_text_are_exact(session: Session) -> None:
    trace = read(ascend.events())
    tasks = rows_of_kind(trace, Kind.KERNEL, Kind.MEMCPY, Kind.SYNC)
    starts = sorted(trace.events.start[tasks].tolist())
    expected = [task.start for task in TASKS if task.type] + [start for _, start, _ in COLLECTIVES]
    assert starts == sorted(int(1000 * start) for start in expected)
    calls = [trace.strings[trace.events.name[row]] for row in rows_of_kind(trace, Kind.RUNTIME)]
    assert [name for name in calls if name not in ("Enqueue", "Dequeue")] == [name for name, *_ in CALLS]


def test_shapes_in_ascends_spelling_give_flops_and_bytes(session: Session) -> None:
    rows = {row["name"]: row for row in payload(session, "roofline")["rows"]}
    assert rows["aten::mm"]["flops"] == 2 * 64 * 128 * 256
    assert rows["aten::mm"]["bytes"] == 4 * (64 * 128 + 128 * 256 + 64 * 256)
    assert rows["aten::mm"]["device_ns"] == 40_500


@pytest.mark.parametrize("dims", ["64,128;128,x", "64,-1;128,256", "", "[64]", "9" * 30])
def test_an_invalid_shape_leaves_the_work_unknown(dims: str) -> None:
    with pytest.raises(UnknownCostError, match="shapes"):
        read_call("aten::mm", [dims, "float;float", None, None], "MatMulV3")


def test_scalars_are_not_tensors() -> None:
    call = read_call("aten::add", ["64,128;;", "float;Scalar;float", None, None], "Add")
    assert [each.shape if isinstance(each, Tensor) else None for each in call.inputs] == [(64, 128), None, ()]


def test_the_reason_for_missing_memory_names_the_tables_that_have_it(session: Session) -> None:
    reason = payload(session, "trace")["reasons"]["memory"]
    reasons = session.unavailable(session.find("run", "rank1", None))
    assert reasons is not None and "`operator_memory.csv`" in reasons["memory"]
    assert "profile_memory" not in words(reason) and "`memory_record.csv`" in words(reason)


def test_collectives_of_each_rank_have_their_times(session: Session) -> None:
    found = payload(session, "distributed")
    assert [(each["rank"], each["compared"], each["calls"]) for each in found["ranks"]] == [
        (rank, True, len(COLLECTIVES)) for rank in (0, 1)
    ]
    times = {(row["rank"], row["name"]): (row["latency_ns"], row["exposed_ns"]) for row in found["collectives"]}
    names = ("hccl:all_reduce", "hccl:broadcast")
    work = covered_ns(*COMPUTING)
    assert times == {
        (rank, name): (1000 * length, covered_ns(*COMPUTING, (start, length)) - work)
        for rank in (0, 1)
        for name, (start, length) in zip(names, TALKING, strict=True)
    }


def test_without_samples_there_are_no_counters(session: Session) -> None:
    counters = [track["name"] for track in payload(session, "trace")["tracks"] if track["kind"] == "counter"]
    assert {name for name in counters if "Utilization" not in name} == set()


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        ("AI_CORE", Kind.KERNEL),
        ("MIX_AIC", Kind.KERNEL),
        ("AI_CPU", Kind.KERNEL),
        ("PCIE_DMA_SQE", Kind.MEMCPY),
        ("MEMCPY_ASYNC", Kind.MEMCPY),
        ("NOTIFY_WAIT_SQE", Kind.SYNC),
        ("EVENT_RECORD", Kind.SYNC),
    ],
)
def test_the_task_type_gives_the_kind(type_: str, kind: Kind) -> None:
    name = {"ph": "M", "name": "process_name", "pid": 8, "tid": 0, "args": {"name": "Ascend Hardware"}}
    task = {"ph": "X", "name": "x", "pid": 8, "tid": 2, "ts": "1.5", "dur": 1, "args": {"Task Type": type_}}
    assert rows_of_kind(read([name, task]), kind).tolist() == [1]


def test_processes_of_common_names_alone_are_not_ascends() -> None:
    names = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        for pid, name in ((1, "CANN"), (2, "Communication"), (3, "Overlap Analysis"))
    ]
    slices = [{"ph": "X", "name": "x", "pid": pid, "tid": 1, "ts": 1, "dur": 1} for pid in (1, 2, 3)]
    trace = read([*names, *slices])
    assert device_kind(trace) == "other" and devices(trace) == ()
    assert len(rows_of_kind(trace, Kind.UNKNOWN)) == 3
