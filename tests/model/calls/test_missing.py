"""Work that a recording lacks: no time in which a device seems to do nothing is told as its idle time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.producers.pftrace import rocprof_pftrace
from tests.support.producers.rocpd import write_rocpd
from tests.support.producers.rocprof import RocprofRun, draw_training, rocprof_json
from tests.support.traces import draw, read_bytes
from tests.support.views import ask, words
from torch_tb_profiler.analyses.diff.comparison import compare
from torch_tb_profiler.analyses.overview.idle import idle_times
from torch_tb_profiler.analyses.timeline.window import device_usage
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.model.calls.missing import NO_DEVICE_REASON, missing_copies_reason, missing_kernels_reason
from torch_tb_profiler.model.trace import Trace, TracePair
from torch_tb_profiler.views import all_tabs
from torch_tb_profiler.views.trace.blame import blame_tracks

RUN = draw_training(3)
MARKERS = [call for call in RUN.calls if call.message is not None]
KERNELS = "`rocprofv3 --kernel-trace` records them"
COPIES = "`rocprofv3 --memory-copy-trace` records them"

BLIND: dict[str, tuple[RocprofRun, str]] = {
    "calls and copies": (
        replace(RUN, dispatches=[]),
        f"kernels were launched but not recorded; {KERNELS}",
    ),
    "markers and copies": (
        replace(RUN, dispatches=[], calls=MARKERS),
        f"no kernels were recorded, nor calls that would show whether any ran; {KERNELS}",
    ),
    "copies": (
        RocprofRun(copies=RUN.copies),
        f"no kernels were recorded, nor calls that would show whether any ran; {KERNELS}",
    ),
}
"""What was recorded, and what is said of it."""


def _database(run: RocprofRun, folder: Path) -> bytes:
    return write_rocpd(folder / "1_results.db", run).read_bytes()


FORMATS: dict[str, Callable[[RocprofRun, Path], bytes]] = {
    "JSON": lambda run, folder: rocprof_json(run),
    "rocpd": _database,
    ".pftrace": lambda run, folder: rocprof_pftrace(run),
}


def reason(trace: Trace, slug: str) -> str | None:
    """Return why a tab has nothing to show."""
    return next(tab.reason(trace) for tab in all_tabs() if tab.view.slug == slug)


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("name", BLIND)
def test_without_kernels_the_device_times_are_unknown(name: str, format_: str, tmp_path: Path) -> None:
    run, why = BLIND[name]
    trace = read_bytes(FORMATS[format_](run, tmp_path))
    overview = ask(trace, "overview")
    for category in ("kernel", "memcpy", "memset", "communication"):
        assert overview["average"]["categories"][category] is None
        assert words(overview["reasons"][category]) == why
    linked = {each["link"] for each in (*overview["headline"], *overview["explanation"])}
    assert "operators" not in linked  # none are recorded
    average = overview["average"]
    assert sum(filter(None, average["categories"].values())) == pytest.approx(average["duration_ns"])
    assert "idle" not in words(overview["headline"]) and "critical path" not in words(overview["explanation"])
    assert words(overview["no_advice"]) == "No advice: the profiler didn't record the kernels."
    assert len(idle_times(trace).starts) == 0
    assert overview["recommendations"] == [] and overview["configuration"]["recorded"]["device"] is False
    (device,) = overview["devices"]
    assert (device["utilization"], device["computing"]) == (None, None)
    assert words(device["reasons"]["utilization"]) == why
    assert reason(trace, "idle") == why
    if name == "calls and copies":
        assert reason(trace, "critical_path") == why
    kernels = ask(trace, "kernels")
    assert words(kernels["headline"]) == f"{why[0].upper()}{why[1:]}."
    assert sum(row["calls"] for row in kernels["memory_operations"]) == len(RUN.copies)
    assert device_usage(trace, 0, 10**6) == []
    assert blame_tracks(trace) == ()
    with pytest.raises(NotFoundError, match="can't tell"):
        ask(trace, "trace/moment", device=1, at=50_000)
    assert compare(TracePair((trace,), (trace,)), 0.01).devices == ()


def test_without_copies_the_idle_time_is_an_upper_bound(tmp_path: Path) -> None:
    """The GPU copies for 100,003 ns of a step, before its first kernel; nothing else runs there."""
    whole, lacking = read_bytes(rocprof_json(RUN)), read_bytes(rocprof_json(replace(RUN, copies=[])))
    why = f"copies were made but not recorded; {COPIES}"
    overview = ask(lacking, "overview")
    assert overview["recommendations"] == [] != ask(whole, "overview")["recommendations"]
    assert "the profiler didn't record the copies" in words(overview["no_advice"])
    assert overview["average"]["categories"]["memcpy"] is None
    assert words(overview["reasons"]["memcpy"]) == why
    assert "GPU 1 is idle for at most 35.6% of an average step" in words(overview["headline"])
    assert "GPU 1 is idle for at most 35.6% of an average step" in words(ask(lacking, "idle")["headline"])
    assert words(ask(lacking, "idle")["reasons"]["idle_ns"]) == f"at most: {why}"
    more = ask(lacking, "idle")["idle_ns"] - ask(whole, "idle")["idle_ns"]
    assert more / 3 == pytest.approx(ask(whole, "overview")["average"]["categories"]["memcpy"])
    assert "GPU 1 is idle for 24.4% of an average step" in words(ask(whole, "idle")["headline"])


@pytest.mark.parametrize("calls", [[], MARKERS])
def test_with_kernels_alone_copies_are_unknown(calls: list[object]) -> None:
    trace = read_bytes(rocprof_json(RocprofRun(calls=[*calls], dispatches=RUN.dispatches)))  # type: ignore[list-item]
    why = f"no copies were recorded, nor calls that would show whether any were made; {COPIES}"
    assert words(ask(trace, "overview")["reasons"]["memcpy"]) == why


def test_without_copies_the_busy_time_is_a_lower_bound() -> None:
    trace = draw("""
    host  user_annotation  ProfilerStep#1    0  100
    host  cuda_runtime     cudaMemcpyAsync   0    0.5
    host  cuda_runtime     cudaLaunchKernel  1    0.5  correlation=1
    gpu0  kernel           gemm              2   98  correlation=1 device=0 stream=7
    """)
    assert "GPU 0 is busy for at least 98% of the step" in words(ask(trace, "overview")["headline"])
    assert "GPU 0 is busy for at least 98% of the step" in words(ask(trace, "idle")["headline"])


def test_work_that_no_call_asked_for_is_not_missing() -> None:
    whole = read_bytes(rocprof_json(RUN))
    assert (missing_kernels_reason(whole), missing_copies_reason(whole)) == (None, None)
    copying = [call for call in RUN.calls if call.name != "hipLaunchKernel"]
    assert missing_kernels_reason(read_bytes(rocprof_json(RocprofRun(calls=copying, copies=RUN.copies)))) is None
    launching = [call for call in RUN.calls if "Memcpy" not in call.name]
    none_copied = read_bytes(rocprof_json(replace(RUN, calls=launching, copies=[])))
    assert missing_copies_reason(none_copied) is None
    assert ask(none_copied, "overview")["average"]["categories"]["memcpy"] == 0


def test_pytorch_records_kernels_and_copies_by_one_option() -> None:
    """Where it recorded a device and no calls, what is not in the file did not run."""
    copies = draw("gpu0 gpu_memcpy Memcpy 0 10 device=0 stream=7")
    kernels = draw("gpu0 kernel gemm 0 10 device=0 stream=7")
    assert (missing_kernels_reason(copies), missing_copies_reason(kernels)) == (None, None)
    launched = draw("host cuda_runtime cudaLaunchKernel 0 5\nhost cuda_runtime cudaMemcpyAsync 6 5")
    assert missing_kernels_reason(launched) == NO_DEVICE_REASON and missing_copies_reason(launched) is None
