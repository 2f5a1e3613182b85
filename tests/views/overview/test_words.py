"""The sentences of the Overview, and the averages that would make them false."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from tests.support.claims import beside_communication
from tests.support.jobs import Job, ddp
from tests.support.traces import draw, read_bytes
from torch_tb_profiler.analyses.overview.finding import Advice, Basis, Finding, Gain
from torch_tb_profiler.view import NoParams
from torch_tb_profiler.views._shared.text import Phrase, plain, text
from torch_tb_profiler.views.kernels.build import build as build_kernels
from torch_tb_profiler.views.kernels.payload import KernelsParams
from torch_tb_profiler.views.overview.advice import build_recommendation, no_advice_sentence, savings_note
from torch_tb_profiler.views.overview.build import build
from torch_tb_profiler.views.overview.payload import Average, Categories, HardwareUse, Step
from torch_tb_profiler.views.overview.words import (
    critical_path_sentence,
    headline,
    step_sentence,
    steps_explanation,
)

NO_TIMES = dict.fromkeys(Categories.__struct_fields__, 0.0)
MS = 1_000_000


def categories(**times: float) -> Categories:
    return Categories(**{**NO_TIMES, **times})


def sentence_of(
    times: dict[str, float],
    kind: str | None = "CUDA",
    recorded: bool = True,
    hardware: HardwareUse | None = None,
    ids: tuple[int, ...] = (0,),
) -> str:
    average = Average(sum(times.values()), categories(**times), 2, [], sum(times.values()))
    base = "an average step" if recorded else "the trace"
    return plain(headline(step_sentence(average, kind, ids, base, hardware=hardware), []))


def use(mfu: float | None, coverage: float) -> HardwareUse:
    return HardwareUse(mfu, mfu, coverage, coverage == 1, "H100 SXM", [], {})


def step(name: str, complete: bool = True, **times: float) -> Step:
    return Step(name, 0, int(sum(times.values())), complete, categories(**times))


# ---- how a step is spent --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "sentence"),
    [
        ({"kernel": 91, "other": 9}, "GPU 0 is busy for 91% of an average step."),
        ({"kernel": 90, "memcpy": 5, "memset": 1, "other": 4}, "GPU 0 is busy for 96% of an average step."),
        (
            {"kernel": 60, "dataloader": 30, "other": 10},
            "GPU 0 is idle for 40% of an average step, mainly while the host is loading data (30.0 of 40.0 ns).",
        ),
        ({"kernel": 50, "communication": 50}, "Exposed communication takes 50% of an average step."),
        ({"kernel": 50, "communication": 30, "other": 20}, "Exposed communication takes 30% of an average step."),
        (
            {"kernel": 50, "communication": 20, "other": 30},
            "GPU 0 is idle for 30% of an average step, while the host runs no operators (30.0 ns).",
        ),
        (
            {"kernel": 75, "communication": 25},
            "GPU 0 is busy for 100% of an average step, including 25.0 ns of exposed communication.",
        ),
        (
            {"kernel": 90, "memcpy": 10},
            "GPU 0 is busy for 100% of an average step, including 10.0 ns of copies while no kernel runs.",
        ),
        (
            {"kernel": 60, "communication": 20, "memcpy": 20},
            "GPU 0 is busy for 100% of an average step, including 20.0 ns of exposed communication and 20.0 ns of "
            "copies while no kernel runs.",
        ),
        (
            {"kernel": 1 * MS, "cpu_exec": 900_000, "runtime": 600_000},
            "GPU 0 is idle for 60% of an average step, mainly while the host runs operators (900 µs of 1.50 ms).",
        ),
        (  # the largest part of the idle time, and less than half of it
            {"kernel": 1 * MS, "cpu_exec": 600_000, "runtime": 500_000, "other": 400_000},
            "GPU 0 is idle for 60% of an average step, the largest part of it while the host runs operators "
            "(600 µs of 1.50 ms).",
        ),
    ],
)
def test_what_the_device_does(times: dict[str, float], sentence: str) -> None:
    assert sentence_of(times) == sentence


def test_several_devices_are_idle_together_and_busy_while_one_of_them_is() -> None:
    idle, busy = {"kernel": 50.0, "runtime": 50.0}, {"kernel": 95.0, "runtime": 5.0}
    assert sentence_of(idle, ids=(0, 1)).startswith("Both GPUs are idle for 50%")
    assert sentence_of(idle, "NPU", ids=tuple(range(8))).startswith("All 8 NPUs are idle for 50%")
    assert sentence_of(busy, ids=(0, 1)) == "At least one of 2 GPUs is busy for 95% of an average step."


def test_where_copies_are_missing_the_device_may_be_busier() -> None:
    idle, busy = (
        Average(
            100.0,
            Categories(**{**NO_TIMES, "kernel": kernel, "other": 100 - kernel, "memcpy": None}),
            2,
            [],
            100.0,
        )
        for kernel in (50, 95)
    )
    assert "is idle for at most 50% of the trace" in plain(step_sentence(idle, "CUDA", [0], "the trace"))
    assert "is busy for at least 95% of the trace" in plain(step_sentence(busy, "CUDA", [0], "the trace"))


@pytest.mark.parametrize(
    ("submitted", "sentence"),
    [
        (0.5, "GPU 0 is idle for 98% of the trace, while the host is in runtime calls (98.0 ns)."),
        (0.51, "GPU 0 is idle for 98% of the trace, with its next work already submitted for 50.0 of 98.0 ns."),
    ],
)
def test_a_host_that_has_submitted_the_next_work_is_not_the_cause(submitted: float, sentence: str) -> None:
    average = Average(100.0, categories(kernel=2, runtime=98), 1, [], 100.0)
    assert plain(step_sentence(average, "ROCm", [0], "the trace", submitted=submitted)) == sentence


def test_without_a_device_the_largest_part_is_named() -> None:
    assert (
        sentence_of({"cpu_exec": 8, "other": 2}, None)
        == "Operators on the host are the largest part of an average step: 80%."
    )
    assert sentence_of({"kernel": 1, "other": 1}, "other").startswith("The device is idle")


def test_a_trace_without_steps_is_not_called_a_step() -> None:
    assert (
        sentence_of({"cpu_exec": 1}, None, recorded=False)
        == "Operators on the host are the largest part of the trace: 100%."
    )


def test_nothing_to_average() -> None:
    sentence = headline(step_sentence(None, "CUDA", [0], "an average step"), [])
    assert plain(sentence) == "There is no complete step to analyze."
    assert sentence_of({"kernel": 0}) == "No time passes in an average step."


def test_without_a_device_the_operator_of_most_host_time_is_named() -> None:
    average = Average(100.0, categories(cpu_exec=80, other=20), 2, [], 100.0)
    within = {
        "cpu_exec": Phrase("aten::mm", "trace?event=4"),
        "other": Phrase("train.py(9): step", "trace?event=5"),
    }
    sentence = step_sentence(average, None, [], "an average step", within)
    assert plain(sentence) == (
        "Operators on the host are the largest part of an average step: 80%, most of it in aten::mm."
    )
    assert within["cpu_exec"] in sentence


FRAMES = """
host  user_annotation   ProfilerStep#0               0  100
host  python_function   train.py(9):~preprocess     25   70
host  cuda_runtime      cudaLaunchKernel             1    1  correlation=1
gpu0  kernel            gemm                         4   20  stream=7,correlation=1
"""


def test_time_in_which_nothing_is_recorded_is_named_by_its_function() -> None:
    payload = build(draw(FRAMES), NoParams())
    assert plain(payload.headline).startswith(
        "GPU 0 is idle for 80% of the step, mainly while the host runs no operators"
    )
    sentence = "Most of the time outside operators and runtime calls is spent in preprocess (train.py:9)."
    assert sentence in plain(payload.spent) and plain(payload.explanation).startswith(sentence)
    assert Phrase("preprocess (train.py:9)", "trace?event=1") in payload.explanation
    average = Average(100.0, categories(other=80, cpu_exec=20), 2, [], 100.0)
    frame = Phrase("preprocess (train.py:9)", "trace?event=4")
    alone = step_sentence(average, None, [], "the trace", {"other": frame})
    assert plain(alone) == (
        "Time outside operators and runtime calls is the largest part of the trace: 80%, "
        "most of it in preprocess (train.py:9)."
    )
    assert frame in alone
    loading = FRAMES.replace(
        "python_function   train.py(9):~preprocess ", "user_annotation   enumerate(DataLoader)#x "
    )
    assert "preprocess" not in plain(build(draw(loading), NoParams()).spent)


@pytest.mark.parametrize(
    ("hardware", "mfu"),
    [
        (use(0.166, 1.0), ", at an MFU of 16.6%"),
        (use(0.166, 0.95), ", at an MFU of at least 16.6%"),
        (use(0.166, 0.89), ""),  # the work that is not known may be more
        (use(None, 1.0), ""),
        (None, ""),
    ],
)
def test_what_a_busy_device_makes_of_its_peak(hardware: HardwareUse | None, mfu: str) -> None:
    busy = {"kernel": 95.0, "other": 5.0}
    assert sentence_of(busy, hardware=hardware) == f"GPU 0 is busy for 95% of an average step{mfu}."
    idle = {"kernel": 50.0, "other": 50.0}
    assert sentence_of(idle, hardware=hardware) == sentence_of(idle)  # why it is idle matters more


def test_communication_and_the_peak_in_one_sentence() -> None:
    assert sentence_of({"kernel": 75, "communication": 25}, hardware=use(0.4, 1.0)) == (
        "GPU 0 is busy for 100% of an average step, including 25.0 ns of exposed communication, at an MFU of 40%."
    )


BUSY = """
host  user_annotation   ProfilerStep#0                         0  100
host  cuda_runtime      cudaLaunchKernel                       1    1  correlation=1
host  cuda_runtime      cudaLaunchKernel                       3    1  correlation=2
gpu0  kernel            ampere_sgemm_128x64_nn                 4   {sgemm}  stream=7,correlation=1
gpu0  kernel            void_softmax                          54   42  stream=7,correlation=2
"""


def test_the_top_kernel_of_a_busy_device_is_named_and_opens_its_slice() -> None:
    """With the share that Kernels gives it."""
    trace = draw(BUSY.format(sgemm=50))
    payload = build(trace, NoParams())
    (name,) = [phrase for phrase in payload.spent if phrase.link and "event=" in phrase.link]
    kernels = plain(build_kernels(trace, KernelsParams()).headline)
    assert name.text in kernels and "54.3% of" in kernels
    sentence = f"{name.text} is the top kernel: 54.3% of kernel time."
    assert sentence in plain(payload.spent) and plain(payload.explanation).startswith(sentence)
    assert name.link == f"trace?event={int(np.argmax(trace.events.duration == 50_000))}"
    # For an idle device, why it is idle matters more.
    idle = plain(build(draw(BUSY.format(sgemm=10)), NoParams()).spent)
    assert "GPU 0 is idle" in idle
    assert "kernel time" not in idle


@pytest.mark.parametrize(
    ("steps", "recorded", "base"),
    [(1, True, "the step"), (2, True, "an average step"), (1, False, "the trace")],
)
def test_a_single_step_is_no_average(steps: int, recorded: bool, base: str) -> None:
    marks = [f"host user_annotation ProfilerStep#{i} {100 * i} 100" for i in range(steps)] if recorded else []
    trace = draw("\n".join([*marks, "gpu0 kernel k 10 80 stream=7"]))
    assert f"% of {base}" in plain(build(trace, NoParams()).headline)


# ---- the critical path ----------------------------------------------------------------------------------


def test_the_largest_part_of_the_critical_path_opens_it() -> None:
    times = {"host": 30, "device": 10, "communication": 60, "latency": 0}
    sentence = critical_path_sentence(times, "an average step")
    assert plain(sentence) == "60% of the step's critical path is communication."
    assert Phrase("60% of the step's critical path", "critical_path") in sentence
    assert (
        plain(critical_path_sentence(times, "the trace")) == "60% of the trace's critical path is communication."
    )
    assert critical_path_sentence(dict.fromkeys(times, 0), "the trace") == ()
    assert critical_path_sentence(None, "the trace") == ()


@pytest.mark.parametrize(
    ("communication", "exposed", "sentence"),
    [
        (0, 0.63, "100% of the step's critical path is host code, and none of it is communication."),
        (0, 0.001, "100% of the step's critical path is host code."),
        (50, 0.63, "66.7% of the step's critical path is host code, 33.3% communication."),
        (200, 0.63, "66.7% of the step's critical path is communication."),
    ],
)
def test_the_critical_path_does_not_contradict_exposed_communication(
    communication: int, exposed: float, sentence: str
) -> None:
    times = {"host": 100, "device": 0, "communication": communication, "latency": 0}
    assert plain(critical_path_sentence(times, "an average step", exposed)) == sentence


@pytest.mark.parametrize(
    ("launched", "said"), [(True, "is communication"), (False, "is known to be communication")]
)
def test_communication_without_a_launch_may_be_what_the_host_waits_for(launched: bool, said: str) -> None:
    """No path leads through it."""
    trace = beside_communication(launched)
    assert f"host code, and none of it {said}." in plain(build(trace, NoParams()).spent)


def test_short_waits_that_no_call_records_may_be_for_communication() -> None:
    """A silence of under 100 µs isn't taken for a wait, and the job draws transfers of 50 µs."""
    trace = read_bytes(Job(2, ddp(2)).documents([0])[0])
    assert "device work, and none of it is known to be communication." in plain(build(trace, NoParams()).spent)
    times = {"host": 100, "device": 0, "communication": 50, "latency": 0}
    sentence = critical_path_sentence(times, "an average step", 0.63, waits_unrecorded=True)
    assert plain(sentence).endswith("host code, 33.3% communication.")


COLLECTIVE = """
host  user_annotation  ProfilerStep#1             0  1000
host  cpu_op           aten::work                 5   990
host  cuda_runtime     cudaLaunchKernel          10     5  correlation=1
gpu0  kernel           ncclDevKernel_AllReduce   20   900  correlation=1 stream=20
"""
WAIT = "host cuda_runtime cudaDeviceSynchronize 30 895"


def test_a_host_that_waits_for_communication_is_told_from_one_that_does_not() -> None:
    free, blocked = (plain(build(draw(COLLECTIVE + more), NoParams()).spent) for more in ("", WAIT))
    assert free == (
        "Exposed communication takes 90% of the step. "
        "100% of the step's critical path is host code, and none of it is communication."
    )
    assert "critical path is communication" in blocked and "none of it" not in blocked


def test_communication_of_the_host_is_host_code_on_the_path() -> None:
    gloo = "host2 user_annotation gloo:all_reduce 200 700"
    kernel = COLLECTIVE.replace("ncclDevKernel_AllReduce   20   900", "gemm 20 100")
    payload = build(draw(kernel + gloo), NoParams())
    assert payload.average is not None and payload.average.categories.communication == 700_000
    assert "Exposed communication takes" in plain(payload.spent)
    assert plain(payload.spent).endswith("100% of the step's critical path is host code.")
    assert "100% of the step's critical path is host code." in plain(payload.explanation)


# ---- advice ---------------------------------------------------------------------------------------------


def test_the_headline_ends_with_what_to_do_first() -> None:
    findings = [
        Advice(Finding("data_loading", case=case), Gain(5.0, 5.0, "share"), 0.5) for case in ("process", "workers")
    ]
    advice = [build_recommendation(each, "an average step") for each in findings]
    spent = step_sentence(Average(1.0, categories(kernel=1), 2, [], 1.0), "CUDA", [0], "an average step")
    assert plain(headline(spent, advice)).endswith(
        "of an average step. Start here: load data in worker processes."
    )
    waiting = text("12% of an average step is waiting for other ranks")
    assert plain(headline(spent, advice, waiting)).endswith(
        ". 12% of an average step is waiting for other ranks; start here: load data in worker processes."
    )
    assert plain(headline(spent, [], waiting)).endswith(". 12% of an average step is waiting for other ranks.")


def test_savings_say_where_they_come_from() -> None:
    findings = [
        build_recommendation(Advice(Finding("data_parallel", value=2), Gain(5.0, 4.0, basis), 0.5), "the step")
        for basis in get_args(Basis)
    ]
    replayed = plain(savings_note(findings, 0.987, None))
    assert replayed.startswith("Estimates replay the recorded schedule")
    assert "reproduces 98.7% of this trace" in replayed
    shares = [each for each in findings if each.basis == "share"]
    assert plain(savings_note(shares, 0.987, None)).startswith("Savings are upper bounds from measured time")
    assert plain(savings_note(shares, None, "no device work is recorded")) == (
        "This trace can't be replayed reliably: no device work is recorded. "
        "Savings are upper bounds from measured time."
    )
    job = "Savings are for this rank alone: if all ranks change, the job may save more."
    for reason in (None, "no device work is recorded"):
        assert plain(savings_note(findings, 0.987, reason, alone=True)).endswith(job)
    assert plain(savings_note(shares, 0.987, None, alone=True)).endswith(job)
    assert job not in replayed
    memory = build_recommendation(Advice(Finding("memory_limit", case="training"), None, None), "the step")
    assert savings_note([memory], 0.987, None) == savings_note([], 0.987, None) == ()


def test_an_idle_device_without_advice_is_not_called_busy() -> None:
    busy, idle = (Average(100.0, categories(kernel=time, other=100 - time), 2, [], 100.0) for time in (95, 50))
    nothing = "Nothing stands out: no known fix would save 2% or more."
    assert plain(no_advice_sentence(busy, None, "CUDA")) == nothing
    assert (
        plain(no_advice_sentence(idle, None, "CUDA"))
        == "No known fix would save 2% or more. Look at the gaps on the timeline."
    )
    assert plain(no_advice_sentence(idle, "the file is truncated", "CUDA")) == "No advice: the file is truncated."
    assert plain(no_advice_sentence(None, None, None)) == "No advice: there is no complete step."
    host = Average(
        100.0, categories(communication=50, other=50), 2, [], 100.0
    )  # the host communicates, as by gloo
    assert plain(no_advice_sentence(host, None, None)) == nothing.replace("fix", "fix on this rank")


# ---- how the steps vary ---------------------------------------------------------------------------------


def test_how_steps_vary() -> None:
    steps = [step("1", kernel=50 * MS, other=MS), step("2", kernel=70 * MS, other=2 * MS), step("3", False)]
    assert plain(steps_explanation(steps, None, {})) == (
        "2 steps of 51.0 ms to 72.0 ms; kernels vary most, from 50.0 ms to 70.0 ms. 1 incomplete step is left out."
    )
    assert plain(steps_explanation(steps[:2], None, {}, truncated=True)) == (
        "2 steps of 51.0 ms to 72.0 ms before the file ends."
    )
    assert plain(steps_explanation([step("1", kernel=MS)] * 3, None, {})) == "3 steps of about 1.00 ms."
    alike = [step("1", kernel=MS), step("2", kernel=MS - 10_000, other=10_000)]  # as long, by other parts
    assert plain(steps_explanation(alike, None, {})) == "2 steps of about 1.00 ms."
    assert plain(steps_explanation([step("1", kernel=MS)], None, {})) == "1 complete step recorded."
    assert plain(steps_explanation([], None, {"steps": "none is recorded"})) == "None is recorded."


def test_steps_vary_without_the_odd_ones() -> None:
    steps = [step(name, kernel=time * MS) for name, time in (("1", 100), ("2", 101), ("3", 180), ("4", 100))]
    average = Average(100 * MS, categories(kernel=100 * MS), 3, ["3"], 100 * MS)
    assert plain(steps_explanation(steps, average, {})) == (
        "3 typical steps of 100 ms to 101 ms; kernels vary most, from 100 ms to 101 ms."
    )


def test_a_step_that_fills_the_pipeline_is_not_compared_with_the_others() -> None:
    steps = [step("5", runtime=368 * MS), step("6", kernel=216 * MS), step("7", kernel=217 * MS)]
    average = Average(267 * MS, categories(kernel=267 * MS), 3, [], 216.5 * MS, "5")
    assert plain(steps_explanation(steps, average, {})) == (
        "2 steps of about 217 ms. Step 5 before them takes 368 ms, because the device falls behind the host in it."
    )
