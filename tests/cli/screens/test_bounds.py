"""What a terminal says of figures that are bounds or unknown, and of idle time that no call caused."""

from __future__ import annotations

from tests.support.claims import launched, repeat
from tests.support.traces import draw
from tests.support.views import ask
from torch_tb_profiler.cli.screens import screen_of
from torch_tb_profiler.cli.screens.screen import Column, Screen, format_value
from torch_tb_profiler.model.trace import Trace


def screen(slug: str, trace: Trace) -> Screen:
    return screen_of(slug, ask(trace, slug))


def drained_by(trace: Trace) -> dict[str, str]:
    """Return what the table of Idle time says of each cause."""
    rows = screen("idle", trace).tables[0].rows
    return {row["title"]: row["drained_by"] for row in rows if not row["title"].startswith(" ")}


def test_time_on_tensor_cores_is_unknown_or_a_bound_where_kernel_names_dont_show_it() -> None:
    known, silent = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn", "my_kernel"
    facts = [
        dict(screen("kernels", repeat(*(launched(name, 100 * i, 90, 100 * i - 5, i) for i, name in names))).facts)
        for names in (((1, silent),), ((1, silent), (2, known)), ((1, known),))
    ]
    assert "On Tensor Cores" not in facts[0]
    assert facts[1]["On Tensor Cores"] == "at least 360 µs (50%)"
    assert facts[2]["On Tensor Cores"] == "360 µs (100%)"


def test_what_is_saved_at_most_is_rounded_up() -> None:
    assert format_value(Column("gain_ns", "Saves up to", rounding="up"), 116_250) == "117 µs"
    loader = "host user_annotation enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ 0 6000"
    trace = repeat(loader, launched("gemm", 7_000, 2_500, 6_990))
    for slug in ("overview", "idle"):
        columns = [each for table in screen(slug, trace).tables for each in table.columns]
        assert {each.rounding for each in columns if each.title == "Saves up to"} == {"up"}


def test_what_may_save_more_is_no_limit() -> None:
    loader = "host user_annotation enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ 0 3000"
    trace = repeat(loader, "host cuda_runtime cudaFree 3000 3000", launched("gemm", 7_000, 2_500, 6_990))
    (table,) = (each for each in screen("overview", trace).tables if each.noun == "recommendation")
    assert [(each.title, each.bound) for each in table.columns][2:] == [("Saves", "gain_is_limit")]
    assert [row["gain_is_limit"] for row in table.rows] == ["cudaMalloc" not in row["title"] for row in table.rows]


def test_a_device_catches_up_only_where_a_late_launch_ends_its_idle_time() -> None:
    queued = [
        f"host cuda_runtime cudaLaunchKernel {10 * i} 5 correlation={i}\n"
        f"gpu0 kernel k {100 + 1000 * i} 990 correlation={i} stream=7"
        for i in range(1, 4)
    ]
    causes = drained_by(repeat(*queued))
    assert causes["Kernel gaps"] == "work already submitted"
    late = drained_by(repeat(launched("k", 2_000, 900, 1_990), "host cpu_op aten::sort 0 1900"))
    assert late["Operators"] == "caught up"


def test_first_work_that_waits_was_launched_on_record() -> None:
    causes = drained_by(
        draw("""
    host  cuda_runtime  cudaLaunchKernel       10    5  correlation=1
    host  cuda_runtime  cudaDeviceSynchronize  20  900
    gpu0  kernel        gemm                  300  600  correlation=1 stream=7
    """)
    )
    assert causes["Before the first recorded work"] == "work already submitted"
