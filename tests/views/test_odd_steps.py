"""An odd step speaks for itself only: views average the typical steps, and say why the odd one is longer."""

from __future__ import annotations

import pytest

from tests.support.random_jobs.surfaces import found_texts
from tests.support.simulation.files import RecordedJob
from tests.support.simulation.simulator import Delay, Simulation, ddp
from tests.support.traces import draw
from tests.support.views import ask, words
from torch_tb_profiler.analyses.overview.advice import advice
from torch_tb_profiler.analyses.schedule.what_if import what_if_step_time
from torch_tb_profiler.analyses.shared.odd_steps import odd_steps
from torch_tb_profiler.model.trace import Trace
from torch_tb_profiler.view import RankView, parse_params
from torch_tb_profiler.views import find_view


def draw_training(*extra: int, inside: str = "", kernel: int = 8_000) -> Trace:
    """Return steps of 10 ms with a kernel of 8 ms each, and `extra` us of host time before it.

    inside  lines of what the host does in the extra time, with {start} and {extra}
    """
    rows, start = [], 0
    for number, more in enumerate(extra):
        if more:
            rows += [line.format(start=start, extra=more) for line in inside.strip().splitlines()]
        launch = start + more
        rows += [
            f"host user_annotation ProfilerStep#{number} {start} {more + 10_000}",
            f"host user_annotation train_step {start} {more + 9_900}",
            f"host cpu_op aten::mm {launch + 10} 50",
            f"host cuda_runtime cudaLaunchKernel {launch + 20} 10 correlation={number + 1}",
            f"gpu0 kernel gemm {launch + 40} {kernel} correlation={number + 1} stream=7",
            f"host cuda_runtime cudaDeviceSynchronize {launch + 100} {kernel - 40}",
        ]
        start += more + 10_000
    return draw("\n".join(rows))


CHECKPOINT = "host user_annotation save_checkpoint {start} {extra}\nhost cpu_op aten::copy_ {start} 100"


def test_a_checkpoint_is_one_step_and_not_each() -> None:
    trace = draw_training(0, 0, 0, 300_000, 0, 0, inside=CHECKPOINT)
    text = "Step 3 takes 300 ms more than a typical step (10.0 ms), mostly in save_checkpoint."
    overview, idle, path = (ask(trace, slug) for slug in ("overview", "idle", "critical_path"))
    assert overview["average"]["duration_ns"] == 10_000_000
    assert words(overview["headline"]).startswith("GPU 0 is idle for 20% of a typical step")
    assert words(idle["headline"]).startswith("GPU 0 is idle for 20% of a typical step (2.00 ms of 10.0 ms)")
    assert (idle["counted"], idle["duration_ns"], idle["idle_ns"]) == (5, 50_000_000, 10_000_000)
    assert sum(row["time_ns"] for row in idle["causes"]) == idle["idle_ns"]
    assert path["path"]["duration_ns"] == pytest.approx(10_000_000, abs=20)
    assert (path["path"]["steps"], path["path"]["odd"]) == (5, ["3"])
    for view in (overview, idle, path):
        assert text in words(view["explanation"]), words(view["explanation"])
    for each in advice(trace):
        assert each.gain is None or each.gain.ns <= 2_000_000
        assert each.finding.subject != "save_checkpoint"
    assert what_if_step_time(trace, "operator:save_checkpoint", 100) == pytest.approx(10_000_000, abs=20)


def test_a_chosen_odd_step_is_shown_with_what_it_saves() -> None:
    trace = draw_training(0, 0, 0, 300_000, 0, 0, inside=CHECKPOINT)
    idle = ask(trace, "idle", step="3")
    assert idle["counted"] == 1
    assert words(idle["headline"]).startswith("GPU 0 is idle for 97.4% of the step (302 ms of 310 ms)")
    assert "typical" not in words(idle["explanation"])
    assert max(row["gain_ns"] or 0 for row in idle["causes"]) > 290_000_000


def test_the_same_code_in_each_step_makes_no_step_odd() -> None:
    trace = draw_training(*[300_000] * 6, inside=CHECKPOINT)
    idle = ask(trace, "idle")
    assert words(idle["headline"]).startswith("GPU 0 is idle for 97.4% of an average step")
    assert not odd_steps(trace)
    assert idle["counted"] == 6


@pytest.mark.parametrize(
    ("inside", "cause"),
    [
        ("host python_function train.py(7):~evaluate {start} {extra}", "mostly in evaluate"),
        ("host cpu_op aten::sort {start} {extra}", "mostly in aten::sort"),
        ("host cuda_runtime cudaMalloc {start} {extra}", "mostly in cudaMalloc"),
        ("host overhead Buffer~Request {start} {extra}", "mostly in Buffer Request"),
        ("gpu0 kernel eval_kernel {start} {extra} stream=7", "mostly in eval_kernel"),
        ("", "mostly in operators or annotated code on the host"),  # not in train_step, which is every step
        ("host cpu_op aten::sort {start} 40", "mostly in operators or annotated code on the host"),  # too short
    ],
)
def test_the_cause_is_what_takes_most_of_the_extra_time(inside: str, cause: str) -> None:
    trace = draw_training(0, 0, 20_000, 0, 0, 0, inside=inside)
    if not inside or "40" in inside:  # the annotation around the step would name itself
        assert odd_steps(trace)[0].name == ""
    assert words(ask(trace, "idle")["explanation"]).count(cause) == 1


def test_steps_of_one_cause_share_a_sentence_and_shorter_ones_have_none() -> None:
    twice = draw_training(0, 0, 20_000, 0, 0, 0, 20_000, 0, 0, 0, inside=CHECKPOINT)
    assert "Steps 2 and 6 take 20.0 ms more than a typical step (10.0 ms), mostly in save_checkpoint." in words(
        ask(twice, "overview")["explanation"]
    )
    shorter = draw_training(*[20_000] * 5, 0, inside=CHECKPOINT)
    assert "Step 5 takes 20.0 ms less than a typical step (30.0 ms)." in words(
        ask(shorter, "overview")["explanation"]
    )


def test_a_cause_that_began_before_its_step_is_found_among_later_ones_that_ended() -> None:
    rows = [f"host user_annotation ProfilerStep#{n} {10_000 * n} 10000" for n in range(5)]
    rows += ["host user_annotation ProfilerStep#5 50000 300000", "host user_annotation evaluate 49000 300500"]
    rows += [f"host user_annotation batch_{n} {49_010 + 100 * n} 50" for n in range(9)]
    (odd,) = odd_steps(draw("\n".join(rows)))
    assert (odd.step, odd.name) == ("5", "evaluate")


def test_a_built_in_function_is_named_where_nothing_else_is() -> None:
    collection = "host python_function <built-in~function~collect> {start} {extra}"
    trace = draw_training(0, 0, 0, 30_000, 0, 0, inside=collection)
    assert [each.name for each in odd_steps(trace)] == ["<built-in function collect>"]
    called = "host python_function train.py(7):~tidy {start} {extra}\n" + collection
    trace = draw_training(0, 0, 0, 30_000, 0, 0, inside=called)
    assert [each.name for each in odd_steps(trace)] == ["train.py(7): tidy"]


def late_in(*steps: int, rank: int = 1) -> RecordedJob:
    """Return a job of 4 ranks, one of which is 20 ms late in these steps."""
    delays = [Delay("host", rank, us=20_000, steps=steps)]
    return Simulation(ddp(4, 1, overlap=False), steps=10, delays=delays, syncs=True).run()


def said_beside(job: RecordedJob, slug: str, rank: int = 0, only: tuple[int, ...] | None = None) -> str:
    """Return all that a view says of a rank beside the others."""
    view = find_view(slug)
    assert isinstance(view, RankView)
    members, params = job.members(only), parse_params(view.params, {})
    worker = next(member.worker for member in members if member.rank == rank)
    payload = view.build(view.alone.build(job.trace(rank), params), worker, members, params)
    return " ".join(sentence for _, sentence in found_texts(payload, ""))


NOTE = "Most of that is communication; one rank's file can't tell transfer from waiting for another rank."


@pytest.mark.parametrize("slug", ["overview", "idle", "critical_path"])
def test_a_rank_alone_does_not_say_whether_an_odd_step_waits_or_transfers(slug: str) -> None:
    explanation = words(ask(late_in(3).trace(0), slug)["explanation"])
    assert (
        f"20.0 ms more than a typical step (6.06 ms), mostly in NCCL AllReduce Sum f32 RING LL. {NOTE}"
        in explanation
    )
    assert NOTE not in words(ask(late_in(3).trace(1), slug)["explanation"])  # the late one computes


@pytest.mark.parametrize("slug", ["overview/ranks", "idle/ranks", "critical_path/beside"])
def test_beside_the_others_an_odd_step_names_the_rank_that_it_waits_for(slug: str) -> None:
    job = late_in(3)
    waits = (
        "Of 20.4 ms of exposed communication in step 4, 20.0 ms is spent waiting for other ranks "
        "(20.0 ms for rank 1) and 400 µs transferring data."
    )
    assert waits in said_beside(job, slug)
    assert NOTE not in said_beside(job, slug)
    assert "in step 4, 20.0 ms is spent waiting" not in said_beside(job, slug, rank=1)
    assert NOTE in said_beside(job, slug, only=(0,))
    twice = said_beside(late_in(3, 5, rank=2), slug)
    assert "Of 40.8 ms of exposed communication in steps 4 and 6, 40.0 ms is spent" in twice
    assert "(40.0 ms for rank 2)" in twice
    missing = said_beside(job, slug, only=(0, 2, 3))
    assert NOTE in missing or "isn't known exactly" in missing


def test_the_collective_is_named_and_not_the_call_that_waits_for_it() -> None:
    rows = "gpu0 kernel ncclKernel_AllReduce_RING {start} {extra} stream=20"
    waiting = rows + "\nhost cuda_runtime cudaEventSynchronize {start} {extra}"
    for inside in (rows, waiting):
        (odd,) = odd_steps(draw_training(0, 0, 0, 30_000, 0, 0, inside=inside))
        assert (odd.name, odd.communicates) == ("ncclKernel_AllReduce_RING", True)
    computing = waiting.replace("ncclKernel_AllReduce_RING", "gemm_eval")
    (odd,) = odd_steps(draw_training(0, 0, 0, 30_000, 0, 0, inside=computing))
    assert (odd.name, odd.communicates) == ("cudaEventSynchronize", False)
