"""What a rank records of its operations: the bytes that bandwidth is computed from, and their step."""

from __future__ import annotations

import math

import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.distributed.operations import Operations
from torch_tb_profiler.analyses.distributed.rank_details import rank_details
from torch_tb_profiler.analyses.distributed.rank_summary import summarize_rank
from torch_tb_profiler.model.trace import ABSENT, NO_CODE, Trace


def operation(name: str, put: int = 1000, got: int = 1000, ranks: int = 4, **more: str) -> Operations:
    """An operation on Floats (4 bytes) in a group of so many ranks."""
    size = f'Process Group Name="tp" Group size={ranks}' if ranks else ""
    extra = " ".join(f"{key.replace('_', ' ')}={value}" for key, value in more.items())
    facts = f"Collective name={name} In msg nelems={put} Out msg nelems={got} dtype=Float {size} {extra}"
    return summarize_rank(
        draw(f"""
        host  cpu_op        record_param_comms   0  10  {facts}
        host  cuda_runtime  cudaLaunchKernel     2   5  correlation=7
        gpu0  kernel        ncclDevKernel       50  99  correlation=7 stream=20
        """)
    ).table()


@pytest.mark.parametrize(
    ("name", "put", "got", "message", "bus"),
    [
        ("allreduce", 1000, 1000, 4000, 2 * 3 / 4 * 4000),
        ("_allgather_base", 1000, 4000, 16000, 3 / 4 * 16000),  # the message is what comes out
        ("_reduce_scatter_base", 4000, 1000, 16000, 3 / 4 * 16000),
        ("all_to_all", 1000, 1000, 4000, 3 / 4 * 4000),
        ("gather", 1000, 4000, 16000, 3 / 4 * 16000),  # what the root gets
        ("gather", 1000, 0, 16000, 3 / 4 * 16000),
        ("scatter", 1000, 1000, 4000, 3 / 4 * 4000),
        ("broadcast", 1000, 1000, 4000, 4000),  # each link carries the message once, however many ranks
        ("reduce", 1000, 1000, 4000, 4000),
        ("send", 1000, 0, 4000, 4000),
        ("recv", 0, 1000, 4000, 4000),  # a receiver puts nothing in
        ("recv", 1000, 0, 4000, 4000),
    ],
)
def test_bytes_follow_the_conventions_of_nccl(name: str, put: int, got: int, message: int, bus: float) -> None:
    (row,) = operation(name, put, got)
    assert (row["message"], row["bus"]) == (message, bus)


def test_a_barrier_moves_nothing() -> None:
    (row,) = operation("barrier", 1, 1)
    assert row["message"] == ABSENT
    assert math.isnan(row["bus"])


def test_in_a_group_of_unknown_size_the_bytes_on_the_link_are_unknown() -> None:
    (row,) = operation("allreduce", ranks=0)
    assert row["message"] == 4000
    assert math.isnan(row["bus"])
    (row,) = operation("broadcast", ranks=0)
    assert row["bus"] == 4000


def test_uneven_splits_tell_what_crosses_the_link() -> None:
    """1000 elements in rows of 1, 2, 3 and 4 tenths; rank 3 keeps its own four tenths."""
    (row,) = operation("all_to_allv", In_split_size="[1,2,3,4]", Rank="3")
    assert (row["message"], row["bus"]) == (4000, 2400)


# ---- steps ----------------------------------------------------------------------------------------------


def issued(*times: int, kernel: int | None = None) -> Trace:
    """Two steps with a pause between them, and operations that the host issues at these times."""
    lines = ["host user_annotation ProfilerStep#1 0 100", "host user_annotation ProfilerStep#2 200 100"]
    lines += [f"host2 cpu_op gloo:all_reduce {time} 1" for time in times]
    if kernel is not None:
        lines.append(f"gpu0 kernel ncclDevKernel_AllReduce {kernel} 5 stream=20")
    return draw("\n".join(lines))


def test_an_operation_belongs_to_the_step_in_which_the_host_issued_it() -> None:
    """The first and the last instant of a step are in it; between two steps there is none."""
    assert summarize_rank(issued(0, 100, 101, 200, 300, 301)).table()["step"].tolist() == [
        0, 0, NO_CODE, 1, 1, NO_CODE,
    ]  # fmt: skip


def test_on_the_edge_of_two_steps_the_later_has_it() -> None:
    trace = draw("""
    host   user_annotation  ProfilerStep#1     0  100
    host   user_annotation  ProfilerStep#2   100  100
    host2  cpu_op           gloo:all_reduce  100    1
    """)
    assert summarize_rank(trace).table()["step"].tolist() == [1]


def test_an_operation_without_a_recorded_call_belongs_to_the_step_in_which_it_ran() -> None:
    assert summarize_rank(issued(kernel=50)).table()["step"].tolist() == [0]
    assert summarize_rank(issued(kernel=150)).table()["step"].tolist() == [NO_CODE]


# ---- time -----------------------------------------------------------------------------------------------


def test_exposed_is_what_no_computation_hides() -> None:
    """A kernel covers 20 of 50 us; a window goes from the rank's arrival to its next one."""
    trace = draw("""
    host  user_annotation  ProfilerStep#1            0  300
    host  cpu_op           aten::sin                60   30
    gpu0  kernel           ncclDevKernel_AllReduce   0   50  stream=20
    gpu0  kernel           gemm                     30   40  stream=7
    gpu0  kernel           ncclDevKernel_AllReduce 100   50  stream=20
    """)
    summary, before = summarize_rank(trace), rank_details(trace)
    table = summary.table()
    assert table["latency"].tolist() == [50_000, 50_000]
    assert table["exposed"].tolist() == [30_000, 50_000]
    assert table["window"].tolist() == [0, 100_000]
    assert before.table()["categories"][1].tolist()[:1] == [40_000]  # the kernel
    assert [before.names[code] for code in before.table()["host"][1].tolist() if code >= 0] == ["aten::sin"]
    (step,) = summary.steps.table()[["computation", "overlap", "exposed", "other"]].tolist()
    assert step == (20_000, 20_000, 80_000, 180_000)
    (total,) = summary.totals
    assert (total.latency, total.exposed) == (100_000, 80_000)


def test_time_of_a_frame_is_that_of_what_it_calls_but_of_no_frame_of_the_users_in_it() -> None:
    before = rank_details(
        draw("""
        host  user_annotation  ProfilerStep#1                        0  300
        host  python_function  /job/train.py(80):~train              0  300
        host  python_function  /job/train.py(42):~prepare_batch     10   50
        host  python_function  /usr/lib/python3.12/json.py(1):~dump 20   30
        host  cpu_op           aten::sort                           30   10
        gpu0  kernel           ncclDevKernel_AllReduce             100   50  stream=20
        """)
    )
    table = before.table()
    frames = {
        before.names[code]: time
        for code, time in zip(table["frames"][0].tolist(), table["frame_ns"][0].tolist(), strict=True)
        if code >= 0
    }
    assert frames == {"/job/train.py(80): train": 50_000, "/job/train.py(42): prepare_batch": 50_000}
