"""The headline of the overview, and the averages that would make it false."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from tests.support.traces import draw
from torch_tb_profiler.analyses.overview.finding import Advice, Basis, Finding, Gain
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import Phrase, plain
from torch_tb_profiler.views.kernels.build import build as build_kernels
from torch_tb_profiler.views.kernels.payload import KernelsParams
from torch_tb_profiler.views.overview.advice import recommendation
from torch_tb_profiler.views.overview.build import build
from torch_tb_profiler.views.overview.payload import Average, Categories, HardwareUse, Step
from torch_tb_profiler.views.overview.words import bound, explanation, gains, headline, no_advice, spent, whole_of

NONE = dict.fromkeys(Categories.__struct_fields__, 0.0)
MS = 1_000_000


def categories(**times: float) -> Categories:
    return Categories(**{**NONE, **times})


def says(
    times: dict[str, float],
    device: str | None = "CUDA",
    recorded: bool = True,
    hardware: HardwareUse | None = None,
) -> str:
    average = Average(sum(times.values()), categories(**times), 2, [], sum(times.values()))
    whole = "the average step" if recorded else "the trace"
    return plain(headline(spent(average, device, whole, hardware=hardware), []))


def use(mfu: float | None, coverage: float) -> HardwareUse:
    return HardwareUse(mfu, mfu, coverage, coverage == 1, "H100 SXM", [], {})


def step(name: str, complete: bool = True, **times: float) -> Step:
    return Step(name, 0, int(sum(times.values())), complete, categories(**times))


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ({"kernel": 91, "other": 9}, "The GPU is busy for 91% of the average step."),
        ({"kernel": 90, "memcpy": 5, "memset": 1, "other": 4}, "The GPU is busy for 96% of the average step."),
        (
            {"kernel": 60, "dataloader": 30, "other": 10},
            "The GPU waits for 40% of the average step; 75% of that is data loading.",
        ),
        (
            {"kernel": 50, "communication": 50},
            "50% of the average step is communication that no computation hides.",
        ),
        (
            {"kernel": 50, "communication": 30, "other": 20},
            "30% of the average step is communication that no computation hides.",
        ),
        (
            {"kernel": 50, "communication": 20, "other": 30},
            "The GPU waits for 30% of the average step; 100% of that is time outside of operators and calls.",
        ),
        (
            {"kernel": 75, "communication": 25},
            "The GPU is busy for 100% of the average step, "
            "25% of that in communication that no computation hides.",
        ),
    ],
)
def test_what_the_device_does(times: dict[str, float], sentence: str) -> None:
    assert says(times) == sentence


@pytest.mark.parametrize(
    ("submitted", "rest"),
    [
        (0.5, "100% of that is runtime calls."),
        (0.51, "for 51% of that, its next work is already submitted."),
    ],
)
def test_a_host_that_waits_for_the_device_is_not_why_it_waits(submitted: float, rest: str) -> None:
    average = Average(100.0, categories(kernel=2, runtime=98), 1, [], 100.0)
    said = plain(spent(average, "ROCm", "the trace", submitted=submitted))
    assert said == f"The GPU waits for 98% of the trace; {rest}"


def test_without_a_device_the_largest_part_is_named() -> None:
    assert (
        says({"cpu_exec": 8, "other": 2}, None) == "The largest part of the average step, 80%, is host operators."
    )
    assert says({"kernel": 1, "other": 1}, "other").startswith("The device waits")


def test_a_trace_without_steps_is_not_called_a_step() -> None:
    assert says({"cpu_exec": 1}, None, recorded=False) == "The largest part of the trace, 100%, is host operators."


def test_nothing_to_average() -> None:
    assert plain(headline(spent(None, "CUDA", "the average step"), [])) == "There is no complete step to analyze."
    assert says({"kernel": 0}) == "No time passes in the average step."


def test_the_first_recommendation_follows() -> None:
    found = [
        Advice(Finding("data_loading", case=case), Gain(5.0, 5.0, "share"), 0.5) for case in ("process", "workers")
    ]
    advice = [recommendation(each, "the average step") for each in found]
    answer = headline(spent(Average(1.0, categories(kernel=1), 2, [], 1.0), "CUDA", "the average step"), advice)
    assert plain(answer).endswith("of the average step. First recommendation: Load data in worker processes.")


def test_what_bounds_the_step_is_what_the_critical_path_says() -> None:
    times = {"host": 30, "device": 10, "communication": 60, "latency": 0}
    said = bound(times, "the average step")
    assert plain(said) == "60% of the step's critical path is communication."
    assert Phrase("60% of the step's critical path", "critical_path") in said
    assert plain(bound(times, "the trace")) == "60% of the trace's critical path is communication."
    assert bound(dict.fromkeys(times, 0), "the trace") == bound(None, "the trace") == ()


@pytest.mark.parametrize(
    ("communication", "exposed", "said"),
    [
        (
            0,
            0.63,
            "100% of the step's critical path is host code, and none of it is communication.",
        ),
        (0, 0.001, "100% of the step's critical path is host code."),
        (50, 0.63, "66.7% of the step's critical path is host code, 33.3% communication."),
        (200, 0.63, "66.7% of the step's critical path is communication."),
    ],
)
def test_a_bound_does_not_contradict_communication_that_nothing_hides(
    communication: int, exposed: float, said: str
) -> None:
    times = {"host": 100, "device": 0, "communication": communication, "latency": 0}
    assert plain(bound(times, "the average step", exposed)) == said


COLLECTIVE = """
host  user_annotation  ProfilerStep#1             0  1000
host  cpu_op           aten::work                 5   990
host  cuda_runtime     cudaLaunchKernel          10     5  correlation=1
gpu0  kernel           ncclDevKernel_AllReduce   20   900  correlation=1 stream=20
"""
WAIT = "host cuda_runtime cudaDeviceSynchronize 30 895"


def test_the_host_that_waits_for_communication_is_told_from_the_one_that_does_not() -> None:
    free, blocked = (plain(build(draw(COLLECTIVE + more), NoParams()).spent) for more in ("", WAIT))
    assert free == (
        "90% of the step is communication that no computation hides. "
        "100% of the step's critical path is host code, and none of it is communication."
    )
    assert "critical path is communication" in blocked and "none of it" not in blocked


def test_communication_of_the_host_is_time_of_the_host_on_the_path() -> None:
    gloo = "host2 user_annotation gloo:all_reduce 200 700"
    kernel = COLLECTIVE.replace("ncclDevKernel_AllReduce   20   900", "gemm 20 100")
    payload = build(draw(kernel + gloo), NoParams())
    assert payload.average is not None and payload.average.categories.communication == 700_000
    assert "is communication that no computation hides" in plain(payload.spent)
    assert plain(payload.spent).endswith("100% of the step's critical path is host code.")


def test_gains_say_where_they_come_from() -> None:
    found = [
        recommendation(Advice(Finding("data_parallel", value=2), Gain(5.0, 4.0, basis), 0.5), "the step")
        for basis in get_args(Basis)
    ]
    replayed = plain(gains(found, 0.987, None))
    assert replayed.startswith("A what-if replays the recorded schedule")
    assert "98.7% of the device work" in replayed
    shares = [each for each in found if each.basis == "share"]
    assert plain(gains(shares, 0.987, None)).startswith("The gain is a measured share of the step")
    assert plain(gains(shares, None, "no device work is recorded")) == (
        "Gains are measured shares of the step, as no change can be replayed: no device work is recorded."
    )
    room = recommendation(Advice(Finding("memory_limit", case="training"), None, None), "the step")
    assert gains([room], 0.987, None) == gains([], 0.987, None) == ()


def test_time_in_which_nothing_is_recorded_is_named_by_its_frame() -> None:
    average = Average(100.0, categories(kernel=20, other=80), 2, [], 100.0)
    frame = Phrase("train.py(9): preprocess", "trace?event=4")
    said = spent(average, "CUDA", "the average step", {"other": frame})
    assert plain(said) == (
        "The GPU waits for 80% of the average step; 100% of that is time outside of operators and calls, "
        "most of it in train.py(9): preprocess."
    )
    assert frame in said
    alone = spent(Average(100.0, categories(other=80), 2, [], 100.0), None, "the trace", {"other": frame})
    assert plain(alone).endswith("outside of operators and calls, most of it in train.py(9): preprocess.")
    average = Average(100.0, categories(kernel=20, dataloader=80), 2, [], 100.0)
    assert "preprocess" not in plain(spent(average, "CUDA", "the trace", {"other": frame}))


def test_without_a_device_the_operator_of_most_host_time_is_named() -> None:
    average = Average(100.0, categories(cpu_exec=80, other=20), 2, [], 100.0)
    within = {
        "cpu_exec": Phrase("aten::mm", "trace?event=4"),
        "other": Phrase("train.py(9): step", "trace?event=5"),
    }
    said = spent(average, None, "the average step", within)
    assert plain(said) == ("The largest part of the average step, 80%, is host operators, most of it in aten::mm.")
    assert within["cpu_exec"] in said


def test_no_advice_is_not_called_a_step_without_waits() -> None:
    busy, waiting = (Average(100.0, categories(kernel=time, other=100 - time), 2, [], 100.0) for time in (95, 50))
    assert plain(no_advice(busy, None, "CUDA", "the average step")) == "No rule finds 2% of the step to gain."
    assert (
        plain(no_advice(waiting, None, "CUDA", "the average step"))
        == "No rule explains what the device waits for. The timeline shows it."
    )
    assert (
        plain(no_advice(waiting, "the file is cut off", "CUDA", "the trace"))
        == "Nothing is advised: the file is cut off."
    )
    assert plain(no_advice(None, None, None, "the trace")) == "Nothing is advised: there is no complete step."
    talking = Average(100.0, categories(communication=50, other=50), 2, [], 100.0)  # of the host, as gloo does
    assert plain(no_advice(talking, None, None, "the trace")) == "No rule finds 2% of the trace to gain."


def test_how_steps_vary() -> None:
    steps = [step("1", kernel=50 * MS, other=MS), step("2", kernel=70 * MS, other=2 * MS), step("3", False)]
    assert plain(explanation(steps, None, {})) == (
        "2 steps of 51.0 ms to 72.0 ms. What varies most is kernels, 50.0 ms to 70.0 ms. "
        "1 incomplete step left out."
    )
    assert plain(explanation([step("1", kernel=MS)] * 3, None, {})) == "3 steps of about 1.00 ms, all alike."
    assert plain(explanation([step("1", kernel=MS)], None, {})) == "1 complete step recorded."
    assert plain(explanation([], None, {"steps": "none is recorded"})) == "None is recorded."


def test_an_outlier_is_named_with_the_average_without_it() -> None:
    steps = [step(name, kernel=time * MS) for name, time in (("1", 100), ("2", 100), ("3", 180), ("4", 100))]
    average = Average(120 * MS, categories(kernel=120 * MS), 4, ["3"], 100 * MS)
    assert plain(explanation(steps, average, {})).endswith(
        "Step 3 (180 ms) is far from the others: without it the average step is 100 ms, not 120 ms."
    )
    two = Average(140 * MS, categories(kernel=140 * MS), 4, ["3", "4"], 100 * MS)
    assert "Steps 3 (180 ms) and 4 (100 ms) are far from the others: without them" in plain(
        explanation(steps, two, {})
    )


def test_the_start_of_the_pipeline_does_not_vary() -> None:
    steps = [step("5", runtime=368 * MS), step("6", kernel=216 * MS), step("7", kernel=217 * MS)]
    average = Average(267 * MS, categories(kernel=267 * MS), 3, [], 216.5 * MS, "5")
    assert plain(explanation(steps, average, {})) == (
        "2 steps of about 217 ms, all alike. "
        "Step 5 before them takes 368 ms, as the device runs behind the host from then on."
    )


@pytest.mark.parametrize(
    ("hardware", "said"),
    [
        (use(0.166, 1.0), " and uses 16.6% of its peak FLOP/s"),
        (use(0.166, 0.95), " and uses at least 16.6% of its peak FLOP/s"),
        (use(0.166, 0.89), ""),  # the work that is not known may be more
        (use(None, 1.0), ""),
        (None, ""),
    ],
)
def test_what_a_busy_device_makes_of_its_peak(hardware: HardwareUse | None, said: str) -> None:
    busy = {"kernel": 95.0, "other": 5.0}
    assert says(busy, hardware=hardware) == f"The GPU is busy for 95% of the average step{said}."
    waits = {"kernel": 50.0, "other": 50.0}
    assert says(waits, hardware=hardware) == says(waits)  # what it waits for is the news


BUSY = """
host  user_annotation   ProfilerStep#0                         0  100
host  cuda_runtime      cudaLaunchKernel                       1    1  correlation=1
host  cuda_runtime      cudaLaunchKernel                       3    1  correlation=2
gpu0  kernel            ampere_sgemm_128x64_nn                 4   {sgemm}  stream=7,correlation=1
gpu0  kernel            void_softmax                          54   42  stream=7,correlation=2
"""


def test_of_a_busy_device_the_kernel_with_the_most_time_is_named_and_opens_its_slice() -> None:
    """As Kernels says it, from the same sums."""
    trace = draw(BUSY.format(sgemm=50))
    said = build(trace, NoParams()).spent
    (name,) = [phrase for phrase in said if phrase.link and "event=" in phrase.link]
    kernels = build_kernels(trace, KernelsParams()).headline
    assert plain(kernels).startswith(f"{name.text} is the top kernel: 54.3% of kernel time")
    assert f"{name.text} takes 54.3% of the kernel time." in plain(said)
    assert name.link == f"trace?event={int(np.argmax(trace.events.duration == 50_000))}"
    # Of a device that waits, what it waits for is the news.
    waits = plain(build(draw(BUSY.format(sgemm=10)), NoParams()).spent)
    assert "The GPU waits" in waits
    assert "kernel time" not in waits


def test_communication_and_the_peak_in_one_sentence() -> None:
    assert says({"kernel": 75, "communication": 25}, hardware=use(0.4, 1.0)) == (
        "The GPU is busy for 100% of the average step, 25% of that in communication that no computation hides, "
        "and uses 40% of its peak FLOP/s."
    )


@pytest.mark.parametrize(
    ("steps", "recorded", "whole"),
    [(1, True, "the step"), (2, True, "the average step"), (1, False, "the trace")],
)
def test_a_single_step_is_no_average(steps: int, recorded: bool, whole: str) -> None:
    average = Average(1.0, categories(kernel=1), steps, [], 1.0)
    assert whole_of(average, recorded) == whole
    lines = [f"host user_annotation ProfilerStep#{i} {100 * i} 100" for i in range(steps)]
    if recorded:
        trace = draw("\n".join([*lines, "gpu0 kernel k 10 80 stream=7"]))
        assert f"% of {whole}" in plain(build(trace, NoParams()).headline)
