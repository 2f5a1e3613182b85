"""Every view calls a kernel by its short name; the whole one stands beside it, for copies and exports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.support.payloads import GOLDEN, RAW_NAME
from tests.support.traces import draw
from tests.support.views import ask
from torch_tb_profiler.model.kernels.short_names import (
    MAX_SHORT_NAME_LENGTH,
    display_name,
    short_kernel_names,
    short_kernel_names_of_pair,
)
from torch_tb_profiler.model.trace import TracePair

SHORT = "GEMM bf16 128x128 nn, CUTLASS sm80, align8"
_IDENTIFIERS = ("target", "link", "kernel_name")
"""Keys of what programs and addresses call a kernel by."""


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(part)


def _bare_names(payloads: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return strings with a kernel's raw name, by key, without a short name beside them."""
    found = []
    for each in _objects(payloads):
        for key, value in each.items():
            named = (
                isinstance(value, str) and RAW_NAME[:MAX_SHORT_NAME_LENGTH] in value and key not in _IDENTIFIERS
            )
            if named and len(each.get(f"short_{key}") or value) > MAX_SHORT_NAME_LENGTH:
                found.append((key, each))
    return found


def test_no_view_has_the_raw_name_of_a_kernel_alone() -> None:
    for path in GOLDEN.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        payloads = json.loads(text)
        if path.stem == "trace":  # a person asks for the names of the timeline's codes to see all of them
            del payloads["trace/names"]
        assert _bare_names(payloads) == [], path.name


def test_the_views_that_list_kernels_have_it_in_the_payloads() -> None:
    listed = {path.stem for path in GOLDEN.glob("*.json") if SHORT in path.read_text(encoding="utf-8")}
    assert listed >= {"kernels", "idle", "critical_path", "diff", "distributed", "trace"}


def test_a_short_name_is_the_kernel_s_alone_on_both_sides_of_a_comparison() -> None:
    base = draw("gpu0 kernel f<int,~true>  0 10 stream=7")
    candidate = draw("gpu0 kernel f<int,~false> 0 10 stream=7")
    assert short_kernel_names(base)["f<int, true>"] == short_kernel_names(candidate)["f<int, false>"] == "f int32"
    assert len(set(short_kernel_names_of_pair(TracePair([base], [candidate])).values())) == 2


def test_only_kernels_are_renamed() -> None:
    """An operator may be called like a kernel."""
    trace = draw("""
    host  cpu_op  ncclDevKernel_AllReduce  0  10
    gpu0  kernel  ncclDevKernel_AllReduce  0  10  stream=7
    """)
    names = [display_name(trace, row, "ncclDevKernel_AllReduce") for row in (0, 1)]
    assert names == ["ncclDevKernel_AllReduce", "NCCL AllReduce"]


def test_idle_time_names_the_kernel_that_a_stream_waits_for() -> None:
    raw = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*,~unsigned~long,~ncclWork*)"
    trace = draw(f"""
    host  cuda_runtime  cudaLaunchKernel      0  2  correlation=1
    host  cuda_runtime  cudaLaunchKernel      3  2  correlation=2
    host  cuda_runtime  cudaStreamWaitEvent   6  1  correlation=4
    host  cuda_runtime  cudaLaunchKernel      8  2  correlation=3
    gpu0  kernel        a                    10 10  correlation=1 stream=7
    gpu0  kernel        {raw}                12 88  correlation=2 stream=8
    gpu0  kernel        b                   102 10  correlation=3 stream=7
    """)
    rows = {row["cause"]: row for row in ask(trace, "idle", stream=7)["causes"]}
    waits = rows["waits_for_stream"]
    assert (waits["subject"], waits["short_subject"]) == (
        raw.replace("~", " "),
        "NCCL AllReduce Sum f32 RING LL",
    )
    gaps = ask(trace, "idle/gaps", stream=7, cause="waits_for_stream")["rows"]
    assert gaps[0]["short_name"] == waits["short_subject"]
    by_operator = ask(trace, "idle", stream=7, by="operator")["causes"]
    assert all(row["short_subject"] == row["subject"] for row in by_operator)
