"""The sentences of Idle time, and the traces that would make them false."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import pytest

from tests.support.traces import draw
from tests.support.views import ask, words
from torch_tb_profiler.model.trace import Trace


def sentences_of(picture: str, **params: object) -> tuple[str, str]:
    """Return the headline and the explanation of a drawn trace."""
    payload = ask(draw(picture), "idle", **params)
    return words(payload["headline"]), words(payload["explanation"])


def idle_between_kernels(host: str, busy: float = 25) -> str:
    """Return two kernels of `busy` us, the second launched 98 us after the first, and the host's work between."""
    return f"""
    host  cuda_runtime  cudaLaunchKernel   0   2  correlation=1
    gpu0  kernel        first              0  {busy}  correlation=1 stream=7
    {host}
    host  cuda_runtime  cudaLaunchKernel  98   2  correlation=2
    gpu0  kernel        second           100  {busy}  correlation=2 stream=7
    """


@pytest.mark.parametrize(
    ("host", "clause"),
    [
        ("host cpu_op enumerate(DataLoader)#_It.__next__ 25 73", "waiting for data loading"),
        ("host cpu_op aten::mm 25 73", "waiting for operators on the host"),
        ("host cuda_runtime cudaMalloc 25 73", "waiting for the allocator"),
        ("", "waiting for unrecorded host code"),
    ],
)
def test_the_headline_names_the_cause_of_most_idle_time(host: str, clause: str) -> None:
    headline, _ = sentences_of(idle_between_kernels(host))
    assert headline == f"GPU 0 is idle for 60% of the trace (75.0 µs of 125 µs), 73.0 µs of it {clause}."


def test_a_busy_device_is_not_called_idle() -> None:
    headline, _ = sentences_of(idle_between_kernels("", busy=97))
    assert headline == "GPU 0 is busy for 98.5% of the trace."


def test_a_busy_device_has_its_exposed_communication_named() -> None:
    headline, _ = sentences_of("""
    host  user_annotation  ProfilerStep#1     0  100
    host  cuda_runtime     cudaLaunchKernel   0    1  correlation=1
    gpu0  kernel           gemm               2   48  correlation=1 stream=7
    gpu0  kernel           ncclDevKernel_AllReduce_Sum_f32_RING_LL 40 58 correlation=2 stream=8
    """)
    assert headline == "GPU 0 is busy for 96% of the step; 48% of the step is exposed communication."


def test_the_explanation_names_the_second_cause_with_its_time() -> None:
    headline, explanation = sentences_of(
        idle_between_kernels("host cpu_op enumerate(DataLoader)#_It.__next__ 25 56\nhost cpu_op aten::mm 81 17")
    )
    assert headline == (
        "GPU 0 is idle for 60% of the trace (75.0 µs of 125 µs), 56.0 µs of it waiting for data loading."
    )
    assert explanation.startswith("Next: 17.0 µs waiting for operators on the host.")


def test_only_a_call_that_drained_the_queue_is_named() -> None:
    _, explanation = sentences_of(idle_between_kernels("host cuda_runtime cudaStreamSynchronize 10 20"))
    assert "100% of the idle time follows a cudaStreamSynchronize that drained the queue." in explanation
    _, explanation = sentences_of(idle_between_kernels("host cuda_runtime cudaStreamSynchronize 10 10"))
    assert "No sync caused this: the GPU simply caught up with the host." in explanation


def test_a_device_that_waits_for_another_one_is_not_idle_because_of_the_sync_before() -> None:
    """Two devices take turns: the sync of the step before is over when the first one begins to work."""
    picture = """
    host  cuda_runtime  cudaLaunchKernel        0    2  correlation=1
    gpu1  kernel        second_half             4   16  correlation=1 stream=7
    host  cuda_runtime  cudaStreamSynchronize   6   18
    host  cuda_runtime  cudaLaunchKernel       26    2  correlation=2
    gpu0  kernel        first_half             30  100  correlation=2 stream=7
    host  cuda_runtime  cudaLaunchKernel       30    2  correlation=3
    gpu1  kernel        second_half           132   68  correlation=3 stream=7
    """
    headline, explanation = sentences_of(picture, device=1)
    assert "100 µs of it in device-side waits, with work already submitted" in headline
    # From 20 to 32 us, of 116 us.
    assert "10.3% of the idle time follows a cudaStreamSynchronize that drained the queue." in explanation
    _, explanation = sentences_of(picture.replace("cudaStreamSynchronize", "cudaEventQuery"), device=1)
    assert "sync" not in explanation.lower()


def test_a_trace_is_launch_bound_only_if_the_host_launches_all_the_time() -> None:
    def steady(middle: str) -> str:
        lines = []
        for i in range(20):
            lines.append(f"host {middle} {i * 50 + 5} 44")
            lines.append(f"host cuda_runtime cudaLaunchKernel {i * 50} 4 correlation={i + 1}")
            lines.append(f"gpu0 kernel gemm {i * 50 + 6} 10 correlation={i + 1} stream=7")
        return "\n".join(lines)

    bound = "Launch-bound: the host launches one kernel every 50.0 µs; the GPU finishes one in 10.0 µs"
    assert bound in sentences_of(steady("cpu_op aten::mm"))[1]
    assert "Launch-bound" not in sentences_of(steady("cpu_op enumerate(DataLoader)#_It.__next__"))[1]
    synced = (
        steady("cpu_op aten::mm")
        + "\n"
        + "\n".join(f"host cuda_runtime cudaStreamSynchronize {i * 50 + 10} 12" for i in range(20))
    )
    assert "Launch-bound" not in sentences_of(synced)[1]


@pytest.mark.parametrize(("length", "bound"), [(900, True), (2000, False)])
def test_a_long_operator_before_each_launch_is_no_matter_of_launching(length: int, bound: bool) -> None:
    lines = []
    for i in range(8):
        begin = i * (length + 100)
        lines.append(f"host cpu_op aten::sort {begin} {length}")
        lines.append(f"host cuda_runtime cudaLaunchKernel {begin + length} 5 correlation={i + 1}")
        lines.append(f"gpu0 kernel gemm {begin + length + 10} 50 correlation={i + 1} stream=7")
    assert ("Launch-bound" in sentences_of("\n".join(lines))[1]) == bound


def test_a_third_of_the_wait_in_launching_makes_no_trace_launch_bound() -> None:
    lines = []
    for i in range(20):
        lines.append(f"host cpu_op aten::mm {i * 50 + 5} 15")
        lines.append(f"host cpu_op enumerate(DataLoader)#_It.__next__ {i * 50 + 20} 28")
        lines.append(f"host cuda_runtime cudaLaunchKernel {i * 50} 4 correlation={i + 1}")
        lines.append(f"gpu0 kernel gemm {i * 50 + 6} 2 correlation={i + 1} stream=7")
    assert "Launch-bound" not in sentences_of("\n".join(lines))[1]


def test_a_device_that_needs_longer_than_the_host_launches_is_not_launch_bound() -> None:
    """It waits at the end of a burst: by then the host, which launched fast, does something else."""
    burst = "\n".join(
        f"host cuda_runtime cudaLaunchKernel {i * 5} 2 correlation={i + 1}\n"
        f"gpu0 kernel gemm {i * 20 + 10} 20 correlation={i + 1} stream=7"
        for i in range(10)
    )
    late = "host cpu_op aten::mm 50 240\nhost cuda_runtime cudaLaunchKernel 290 2 correlation=99"
    assert (
        "Launch-bound" not in sentences_of(f"{burst}\n{late}\ngpu0 kernel gemm 295 20 correlation=99 stream=7")[1]
    )


def test_the_cause_of_a_busy_device_is_no_next_one() -> None:
    _, explanation = sentences_of(idle_between_kernels("", busy=97))
    assert explanation.startswith("Largest idle time: 2.00 µs waiting for launch calls.")


def test_times_of_a_single_step_are_not_per_step() -> None:
    _, explanation = sentences_of(
        "host user_annotation ProfilerStep#1 0 126" + idle_between_kernels("host cpu_op aten::mm 25 73")
    )
    assert explanation.startswith("Next: ") and "per step" not in explanation.partition(". ")[0]


def test_a_device_that_has_nothing_left_to_do_has_not_caught_up() -> None:
    headline, explanation = sentences_of(idle_between_kernels("") + "host cpu_op aten::mm 126 800")
    assert headline.endswith(" of it after its last work.")
    assert "caught up" not in explanation


def opened_states(trace: Trace, **params: object) -> list[dict[str, str]]:
    """Return the state that each phrase of the headline opens."""
    payload: Any = ask(trace, "idle", **params)
    links = [phrase["link"] for phrase in payload["headline"] if phrase["link"]]
    return [dict(parse_qsl(address.removeprefix("trace?"))) for address in links]


def test_evidence_opens_the_longest_gap_of_the_device_with_its_cause() -> None:
    trace = draw(idle_between_kernels("host cpu_op aten::mm 25 73"))
    assert opened_states(trace) == [{"moment": "0:25000", "at": "6750-116250"}] * 2
    found = ask(trace, "trace/moment", device=0, at=25_000)
    assert (found["category"], found["begin_ns"], found["end_ns"]) == ("operator", 25_000, 98_000)


def test_evidence_of_a_stream_is_a_stretch_because_another_stream_may_work_then() -> None:
    trace = draw(idle_between_kernels("host cpu_op aten::mm 25 73\ngpu0 kernel other 30 60 stream=9"))
    assert opened_states(trace, stream=7) == [{"area": "25000-98000", "at": "6750-116250", "event": "2"}] * 2


def test_devices_and_streams_are_named_where_there_are_several() -> None:
    picture = """
    host  cuda_runtime  cudaLaunchKernel  0   2  correlation=1
    host  cuda_runtime  cudaLaunchKernel  3   2  correlation=2
    gpu0  kernel        a                10  30  correlation=1 stream=7
    gpu1  kernel        b                70  30  correlation=2 stream=8
    """
    assert sentences_of(picture, device=1)[0].startswith("GPU 1 is idle")
    assert sentences_of(picture, device=1, stream=8)[0].startswith("Stream 8 of GPU 1 is idle")


def test_nothing_is_explained_by_launches_where_none_is_recorded() -> None:
    queued = "gpu0 kernel gemm 100 100 stream=7\ngpu0 kernel gemm 5 95 stream=7"
    alone = ask(draw(queued), "idle")
    assert alone["explained"] is None and "The recorded launches" not in words(alone["limits"])
    launched = ask(draw(f"host cuda_runtime cudaLaunchKernel 0 1 correlation=1\n{queued} correlation=1"), "idle")
    assert launched["explained"] == 1 and "The recorded launches" in words(launched["limits"])


def test_the_explanation_says_that_the_host_is_not_recorded() -> None:
    _, explanation = sentences_of("gpu0 kernel a 0 10 stream=7\ngpu0 kernel b 50 10 stream=7")
    assert "the profiler didn't record the host" in explanation
