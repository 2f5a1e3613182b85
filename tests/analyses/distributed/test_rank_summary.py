"""The summary of a rank: how its steps are spent, its kernel families, and the details of its windows."""

from __future__ import annotations

from tests.support.traces import draw
from torch_tb_profiler.analyses.distributed.rank_details import rank_details
from torch_tb_profiler.analyses.distributed.rank_summary import kernel_family_totals, summarize_rank


def test_exposed_time_is_not_overlapped_with_computation() -> None:
    """A kernel overlaps 20 of 50 us; a window reaches from one arrival of the rank to the next."""
    trace = draw("""
    host  user_annotation  ProfilerStep#1            0  300
    host  cpu_op           aten::sin                60   30
    gpu0  kernel           ncclDevKernel_AllReduce   0   50  stream=20
    gpu0  kernel           gemm                     30   40  stream=7
    gpu0  kernel           ncclDevKernel_AllReduce 100   50  stream=20
    """)
    summary, details = summarize_rank(trace), rank_details(trace)
    table = summary.table()
    assert table["latency"].tolist() == [50_000, 50_000]
    assert table["exposed"].tolist() == [30_000, 50_000]
    assert table["window"].tolist() == [0, 100_000]
    assert details.table()["categories"][1].tolist()[:1] == [40_000]  # the kernel
    assert [details.names[code] for code in details.table()["host"][1].tolist() if code >= 0] == ["aten::sin"]
    (step,) = summary.steps.table()[["computation", "overlap", "exposed", "other"]].tolist()
    assert step == (20_000, 20_000, 80_000, 180_000)
    (total,) = summary.totals
    assert (total.latency, total.exposed) == (100_000, 80_000)


def test_the_time_of_a_frame_excludes_user_frames_that_it_calls_but_not_other_calls() -> None:
    details = rank_details(
        draw("""
        host  user_annotation  ProfilerStep#1                        0  300
        host  python_function  /job/train.py(80):~train              0  300
        host  python_function  /job/train.py(42):~prepare_batch     10   50
        host  python_function  /usr/lib/python3.12/json.py(1):~dump 20   30
        host  cpu_op           aten::sort                           30   10
        gpu0  kernel           ncclDevKernel_AllReduce             100   50  stream=20
        """)
    )
    table = details.table()
    frames = {
        details.names[code]: time
        for code, time in zip(table["frames"][0].tolist(), table["frame_ns"][0].tolist(), strict=True)
        if code >= 0
    }
    assert frames == {"/job/train.py(80): train": 50_000, "/job/train.py(42): prepare_batch": 50_000}


def test_families_sum_to_all_device_work_and_name_their_largest_kernel() -> None:
    trace = draw("""
    gpu0  kernel      volta_sgemm_64x64_nn                          0  50  stream=7
    gpu0  kernel      volta_sgemm_128x128_nn                       50  30  stream=7
    gpu0  kernel      volta_sgemm_128x128_nn                       80  30  stream=7
    gpu0  kernel      ncclDevKernel_AllReduce_Sum_f32_RING_LL      90  90  stream=20
    gpu0  gpu_memcpy  Memcpy~HtoD                                 200   5  stream=7
    host  cpu_op      aten::mm                                      0  500
    """)
    totals = kernel_family_totals(trace)
    assert [(total.family, total.calls, total.time) for total in totals] == [
        ("matrix product", 3, 110_000),
        ("communication", 1, 90_000),
        ("memory", 1, 5_000),
    ]
    assert (totals[0].kernel, totals[0].kernel_time) == ("GEMM fp32 128x128 nn, volta", 60_000)
    assert (totals[2].kernel, totals[2].kernel_time) == ("Memcpy HtoD", 5_000)


def test_a_rank_without_a_device_has_no_families() -> None:
    assert kernel_family_totals(draw("host cpu_op aten::mm 0 10")) == ()
