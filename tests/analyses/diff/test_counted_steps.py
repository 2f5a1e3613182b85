"""The step that each event belongs to in a comparison."""

from __future__ import annotations

from tests.support.traces import draw
from torch_tb_profiler.analyses.diff.counted_steps import counted_steps
from torch_tb_profiler.model.trace import Trace


def step_of(trace: Trace) -> dict[str, str | None]:
    found = counted_steps(trace)
    return {
        trace.strings[code]: found.names[step] if step >= 0 else None
        for code, step in zip(trace.events.name.tolist(), found.of_event.tolist(), strict=True)
    }


def test_a_step_includes_its_first_instant_and_not_its_last() -> None:
    found = step_of(
        draw("""
        host  cpu_op           early              0   5
        host  user_annotation  ProfilerStep#1    10  100
        host  cpu_op           first             10    5
        host  cpu_op           across           105   20
        host  user_annotation  ProfilerStep#2   110  100
        host  cpu_op           second           110    5
        host  cpu_op           after            210    5
        """)
    )
    assert found == {
        "early": None,
        "ProfilerStep#1": "1",
        "first": "1",
        "across": "1",
        "ProfilerStep#2": "2",
        "second": "2",
        "after": None,
    }


def test_device_work_belongs_to_the_step_of_its_launch() -> None:
    found = step_of(
        draw("""
        host  user_annotation  ProfilerStep#1     0  100
        host  cuda_runtime     launch            90    5  correlation=1
        host  user_annotation  ProfilerStep#2   100  100
        host  cuda_runtime     other            110    5  correlation=2
        gpu0  kernel           launched_in_1    120   10  correlation=1 stream=7
        gpu0  kernel           launched_in_2    150   10  correlation=2 stream=7
        gpu0  kernel           lonely           125   10  correlation=9 stream=8
        """)
    )
    assert (found["launched_in_1"], found["launched_in_2"]) == ("1", "2")
    assert found["lonely"] == "1"  # step 1 lasts until its device work is done, at 130


def test_a_step_that_was_cut_off_does_not_count() -> None:
    trace = draw("""
    host  user_annotation  ProfilerStep#1     0  100
    host  cuda_runtime     launch            10    5  correlation=1
    gpu0  kernel           k                 20   10  correlation=1 stream=7
    host  user_annotation  ProfilerStep#2   100  100
    host  cpu_op           lost             150   10
    """)
    assert counted_steps(trace).names == ("1",)
    assert counted_steps(trace).durations.tolist() == [100_000]
    assert step_of(trace)["lost"] is None


def test_a_step_of_zero_length_includes_its_instant() -> None:
    trace = draw("host user_annotation ProfilerStep#1 10 0\nhost2 cpu_op here 10 5\nhost2 cpu_op there 11 5")
    assert step_of(trace) == {"ProfilerStep#1": "1", "here": "1", "there": None}
