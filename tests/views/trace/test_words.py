"""The sentences of the timeline, and the traces that would make each of them false."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.traces import draw, read
from tests.support.views import ask, words
from torch_tb_profiler.model.trace import Trace

ONE_DEVICE = """
host  cpu_op        aten::mm      0   10
host  cuda_runtime  cudaLaunch    2    2   correlation=1
gpu0  kernel        gemm         20   40   correlation=1 stream=7
gpu0  kernel        add          80    5   stream=7
host  cpu_op        end          90   10
"""
COMMUNICATION = """
host  cpu_op        start         0    1
gpu0  kernel        gemm         10   30   device=0 stream=7
gpu0  kernel        ncclDevKernel_AllReduce_Sum  30   40   device=0 stream=8
host  cpu_op        end          99    1
"""
HOST_ONLY = """
host  cpu_op  outer   0  100
host  cpu_op  inner  10   60
"""


def headline(trace: Trace, **params: object) -> str:
    return words(ask(trace, "trace", **params)["headline"])


def window(trace: Trace, begin: int, end: int, **params: object) -> tuple[str, str]:
    """Return headline and detail of a window in ns."""
    payload = ask(trace, "trace/headline", begin=begin, end=end, **params)
    return words(payload["headline"]), words(payload["detail"])


def links(text: Any) -> list[tuple[str, str]]:
    return [(phrase["text"], phrase["link"]) for phrase in text if phrase["link"]]


def test_the_share_of_the_busy_device_in_the_whole_recording() -> None:
    trace = draw(ONE_DEVICE)
    assert headline(trace) == "GPU 0 is busy 45% of the 100 µs recorded."
    assert links(ask(trace, "trace")["headline"]) == [("45%", "trace?area=0-100000")]
    shown = ask(trace, "trace/selection", begin=0, end=100_000)["devices"][0]
    assert shown["busy_ns"] == 45_000  # what the link leads to


def test_of_several_devices_the_busiest_is_named() -> None:
    trace = draw("""
    host  cpu_op  start  0   1
    gpu0  kernel  a     10  20   device=0 stream=7
    gpu1  kernel  b     10  50   device=1 stream=7
    host  cpu_op  end   99   1
    """)
    assert headline(trace) == "GPU 1, the busiest of 2 devices, is busy 50% of the 100 µs recorded."


def test_a_recording_without_a_device() -> None:
    trace = draw(HOST_ONLY)
    assert headline(trace) == "CPU only: 2 slices in 100 µs, no GPU work."
    assert headline(trace, python=True) == headline(trace)
    assert headline(draw("host cpu_op one 0 1")).startswith("CPU only: 1 slice in")


def test_a_recording_of_which_nothing_can_be_drawn() -> None:
    untimed = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "dur": 1}
    marker = {"ph": "M", "name": "process_name", "pid": 1, "ts": 1, "args": {"name": "python"}}
    assert headline(read([untimed, marker])).startswith("No slice or instant in this trace has a timestamp")


def test_instants_alone_are_something_to_draw() -> None:
    mark = {"ph": "i", "s": "t", "name": "mark", "pid": 1, "tid": 1, "ts": 5}
    assert headline(read([mark])) == "CPU only: 1 instant in 1.00 ns, no GPU work."


def test_a_window_by_its_device_and_the_name_that_takes_the_most() -> None:
    trace = draw(ONE_DEVICE)
    says, detail = window(trace, 0, 100_000)
    assert says == "GPU 0 is busy 45% of this window; gemm takes the most time."
    assert detail == "100 µs shown: 2 slices with 2 names on streams."
    assert window(trace, 70_000, 90_000)[0] == "GPU 0 is busy 25% of this window; add takes the most time."


def test_a_window_wider_than_the_recording_is_measured_by_the_recording() -> None:
    assert window(draw(ONE_DEVICE), -100_000, 900_000)[0].startswith("GPU 0 is busy 45% ")


def test_the_phrases_of_a_window_open_their_evidence() -> None:
    payload = ask(draw(ONE_DEVICE), "trace/headline", begin=0, end=100_000)
    assert links(payload["headline"]) == [
        ("45%", "trace?area=0-100000&at=0-100000"),
        ("gemm", "trace?event=2&at=0-100000"),
    ]


def test_an_idle_device_is_not_called_an_idle_window() -> None:
    assert window(draw(ONE_DEVICE), 0, 5_000)[0] == "No device work runs in this window."
    assert window(draw(HOST_ONLY), 200_000, 300_000)[0] == "Nothing runs in this window."


def test_a_window_without_a_device_names_the_most_self_time() -> None:
    trace = draw(HOST_ONLY)
    says, detail = window(trace, 0, 100_000)
    assert says == "inner has the most self time: 60% of this window."
    assert detail == "100 µs shown: 2 slices with 2 names on threads."
    assert window(trace, 50_000, 100_000)[0] == "outer has the most self time: 60% of this window."


def test_annotations_on_a_stream_are_not_its_work() -> None:
    trace = draw(ONE_DEVICE + "gpu0 gpu_user_annotation forward 0 90 stream=7")
    assert "gemm takes the most time" in window(trace, 0, 100_000)[0]


def test_long_names_of_kernels_are_short_in_a_sentence() -> None:
    name = "at::native::vectorized_elementwise_kernel<4,at::native::FillFunctor<float>>"
    trace = draw(f"gpu0 kernel {name} 0 5 stream=7\nhost cpu_op end 9 1")
    assert "fill fp32, vec4 takes the most" in window(trace, 0, 10_000)[0]


def test_how_much_communication_overlaps_compute() -> None:
    trace = draw(COMMUNICATION)
    assert window(trace, 0, 100_000)[1].endswith("names on streams. 25% of its communication overlaps compute.")
    assert window(trace, 50_000, 100_000)[1].endswith(". 0% of its communication overlaps compute.")
    assert "communication" not in window(trace, 0, 25_000)[1]


def test_how_each_device_spends_a_selection() -> None:
    def says(text: str, begin: int, end: int) -> list[str]:
        return [words(line) for line in ask(draw(text), "trace/selection", begin=begin, end=end)["summary"]]

    assert says(ONE_DEVICE, 0, 100_000) == ["GPU 0: busy 45.0 µs (45%), idle 55.0 µs."]
    assert says(COMMUNICATION, 0, 100_000) == [
        "GPU 0: busy 60.0 µs (60%), idle 40.0 µs; communication 40.0 µs, 10.0 µs overlapped with compute."
    ]
    assert says(COMMUNICATION, 0, 25_000) == ["GPU 0: busy 15.0 µs (60%), idle 10.0 µs."]
    assert says(HOST_ONLY, 0, 100_000) == ["No device work was recorded."]


def test_why_steps_and_counters_are_missing() -> None:
    reasons = ask(draw(ONE_DEVICE), "trace")["reasons"]
    assert {name: words(reason).split(" (")[0] for name, reason in reasons.items()} == {
        "steps": "No steps in this trace",
        "sm_efficiency": "No SM efficiency: the kernels in this trace have no `blocks per SM`.",
        "memory": "No allocations were recorded",
        "wall": "No time of day: the file doesn't record when its clock started.",
    }
    assert set(ask(draw(HOST_ONLY), "trace")["reasons"]) == {"steps", "memory", "wall"}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (0, "Annotation, 200 µs (160 µs self time), in step 1."),
        (1, "Operator, 40.0 µs, in step 1."),
        (2, "Kernel, 10.0 µs."),
        (3, "Event."),
        (4, "Copy, 0 ns."),
    ],
)
def test_what_an_event_is(row: int, expected: str) -> None:
    trace = draw(
        """
    host  user_annotation  ProfilerStep#1    0  200
    host  cpu_op           aten::mm         10   40
    gpu0  kernel           late            300   10  stream=7
    """,
        {"ph": "i", "s": "t", "name": "mark", "pid": 1, "tid": 1, "ts": 250},
        {"ph": "X", "cat": "gpu_memcpy", "name": "copy", "pid": 0, "tid": 7, "ts": 320, "dur": 0},
    )
    assert words(ask(trace, "trace/event", event=row)["headline"]) == expected


def test_an_event_without_launch_and_operator_says_why() -> None:
    trace = draw(ONE_DEVICE)
    reasons = ask(trace, "trace/event", event=3)["reasons"]
    assert (
        words(reasons["launch"])
        == "No launch: no runtime or driver call with the same `correlation` was recorded."
    )
    assert words(reasons["operator"]) == "No operator encloses the launch."
    assert set(ask(trace, "trace/event", event=2)["reasons"]) == {"stack"}


def test_modules_that_are_not_recorded_and_that_do_not_enclose() -> None:
    inside = draw("host python_function nn.Module:~Net_0 0 50\nhost cpu_op a 10 5\nhost cpu_op b 60 5")
    assert ask(inside, "trace/module", event=1)["reason"] is None
    assert words(ask(inside, "trace/module", event=2)["reason"]) == "This runs outside any module."
    assert "was recorded" in words(ask(draw(HOST_ONLY), "trace/module", event=0)["reason"])


def test_what_launched_and_how_long_it_waited() -> None:
    trace = draw(ONE_DEVICE)

    def says(row: int) -> str:
        return words(ask(trace, "trace/flows", event=row)["headline"])

    assert says(2) == "It waited 18.0 µs in the queue."
    assert says(1) == says(0) == "It launched 1 device slice."
    assert says(3) == says(4) == ""


def test_a_kernel_that_begins_before_its_launch_did_not_wait() -> None:
    trace = draw("""
    host  cuda_runtime  cudaLaunch   10    2   correlation=1
    gpu0  kernel        early         7   40   correlation=1 stream=7
    """)
    assert words(ask(trace, "trace/flows", event=1)["headline"]) == (
        "Its timestamps put its start 3.00 µs before its launch: the host and device clocks disagree."
    )


@pytest.mark.parametrize(
    ("query", "regex", "expected"),
    [
        ("m", False, "2 slices and instants on 2 tracks match “m”."),
        ("GEMM", False, "1 slice or instant on 1 track matches “GEMM”."),
        ("<b>{x}", False, "No slice or instant has “<b>{x}” in its name."),
        ("^x$", True, "No slice or instant matches “^x$”."),
    ],
)
def test_what_a_search_found(query: str, regex: bool, expected: str) -> None:
    assert words(ask(draw(ONE_DEVICE), "trace/search", query=query, regex=regex)["headline"]) == expected
