"""A summary: the numbers of the views over all workers, in 4 kB, whatever names the traces hold."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

import torch_tb_profiler as ttp
from tests.support.jobs import Job, ddp
from tests.support.random_jobs.plan import draw_plan
from tests.support.random_jobs.surfaces import JobSurfaces
from tests.support.random_jobs.truth import JobTruth
from tests.support.serving import Workload, serving_document
from tests.support.serving_ranks import rank_document
from tests.support.simulation.simulator import Delay, Simulation
from tests.support.simulation.simulator import ddp as simulated_ddp
from tests.support.traces import document, event
from torch_tb_profiler.base.errors import NotFoundError
from torch_tb_profiler.base.format import format_ratio
from torch_tb_profiler.cli import main
from torch_tb_profiler.summary import MAX_BYTES, VERSION, Summary, as_json, as_markdown, schema, summarize
from torch_tb_profiler.training.trace_ready import advice_line
from torch_tb_profiler.views._shared.text import plain

JOB = "simulated_8_h100_late_rank"


@pytest.fixture(scope="module")
def log(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> ttp.Log:
    return ttp.open(str(samples), ttp.Settings(cache_dir=str(tmp_path_factory.mktemp("cache"))))


def test_a_job_is_summed_up_not_its_first_rank(log: ttp.Log) -> None:
    run, found = log[JOB], log[JOB].summary()
    assert (found.version, found.run, found.span, found.workers, found.read) == (VERSION, JOB, "1", 8, 8)
    overviews = {worker: run.overview(worker=worker).data for worker in run.workers}
    means = {worker: each.average.duration_ns for worker, each in overviews.items() if each.average}
    waiting = [time for worker, time in means.items() if worker != "rank5"]
    assert found.step is not None and found.step.mean_ns == pytest.approx(sum(waiting) / 7)
    assert (found.step.workers, found.step.left_out) == (7, ["rank5"])
    assert found.step.slowest == max(means, key=means.__getitem__)
    assert sum(time or 0 for time in found.step.breakdown.values()) == pytest.approx(found.step.mean_ns)
    used = [device.utilization or 0.0 for each in overviews.values() for device in each.devices]
    assert f"kernels run for {format_ratio(sum(used) / 8)} of the time in steps" in as_markdown(found)
    rows = [row for worker in run.workers for row in run.operators(worker=worker).data.rows]
    mm = [row for row in rows if row.name == "aten::mm"]
    assert (found.operators[0].name, found.operators[0].calls) == ("aten::mm", sum(row.calls for row in mm))
    assert found.operators[0].time_ns == sum(row.device_self_ns or 0 for row in mm)
    kernels = sum(run.kernels(worker=worker).data.total_ns for worker in run.workers)
    assert found.kernels[0].share == found.kernels[0].time_ns / kernels


def test_who_is_late_and_what_bounds_it(log: ttp.Log) -> None:
    found, verdict = log[JOB].summary(), log[JOB].distributed().data.verdict
    assert found.communication is not None
    assert (found.communication.late_rank, found.communication.late_cost_ns) == (5, verdict.cost_ns)
    times = [row for row in log[JOB].distributed().data.averages if row.worker != "rank5"]
    assert found.communication.exposed_ns == pytest.approx(sum(row.exposed_ns for row in times) / len(times))
    assert found.bound_worker == "rank5" and "loading data" in found.bound
    assert [advice.title for advice in found.advice if "late" in advice.title or "Loader" in advice.title] == [
        "Find out why rank 5 is late"
    ]
    assert found.advice[0].text.endswith("On rank5: Speed up the DataLoader workers.")
    # The work of the sample starts a microsecond later than all that it waits for allows: nobody's delay.
    costs = {row.rank: row.cost_ns for row in log[JOB].distributed().data.stragglers}
    assert costs.pop(5) == verdict.cost_ns and {*costs.values()} == {0}
    gains = [advice.gain_share or 0 for advice in found.advice]
    assert all(later <= earlier / 0.85 for earlier, later in pairwise(gains))  # waits rank lower
    assert found.devices is not None and (found.devices.devices, found.devices.least_worker) == (8, "rank5")


def test_of_an_engine_it_says_the_rate_and_what_to_set(tmp_path: Path) -> None:
    load = Workload(faults=dict.fromkeys(range(9, 400, 9), ("scheduler", 6000)))
    (tmp_path / "rank0.1.pt.trace.json").write_bytes(serving_document(load))
    run = ttp.open(str(tmp_path)).run()
    found, serving = run.summary(), run.serving().data
    assert found.headline[0] == plain(serving.headline) and "tokens/s" in found.headline[0]
    assert found.headline[1].startswith(
        "Start here: turn on asynchronous scheduling (`--async-scheduling`). Saves up to "
    )
    assert found.bound.startswith("GPU 0 is idle for ") and found.bound in as_markdown(found)


@pytest.mark.parametrize("slow_scheduler", [True, False])
def test_what_to_start_with_is_said_of_what_holds_the_engine_back(slow_scheduler: bool, tmp_path: Path) -> None:
    faults = dict.fromkeys(range(9, 400, 9), ("scheduler", 6000)) if slow_scheduler else {}
    (tmp_path / "rank0.1.pt.trace.json").write_bytes(serving_document(Workload(faults=faults)))
    advice = [each for each in ttp.open(str(tmp_path)).run().summary().headline if each.startswith("Start here: ")]
    assert len(advice) == 1
    assert ("turn on asynchronous scheduling" in advice[0]) == slow_scheduler
    assert ("requests at once (`--max-num-seqs`)" in advice[0]) == (not slow_scheduler)


def test_of_ranks_that_run_an_engine_it_begins_with_their_rate(tmp_path: Path) -> None:
    load = Workload(requests=12)
    for rank, slower in enumerate((1.0, 1.4, 1.0)):
        for kind, content in {
            "together": rank_document(load, slower=slower, slowest=1.4),
            "apart": rank_document(Workload(requests=12, seed=7 + rank), communicates=False),
        }.items():
            (tmp_path / kind).mkdir(exist_ok=True)
            trace = {**json.loads(content), "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 3}}
            (tmp_path / kind / f"rank{rank}.1.pt.trace.json").write_text(json.dumps(trace))
    log = ttp.open(str(tmp_path))
    together, apart = log["together"].summary().headline, log["apart"].summary().headline
    assert together[0].startswith("3 ranks run each of the ") and " tokens/s, so each counts once." in together[0]
    assert "Rank 1 is late" in together[1]
    assert apart[0].startswith("3 ranks are 3 engines with separate batches and generate ")
    assert apart[1].startswith("rank") and ": The engine generates " in apart[1]


@pytest.mark.slow
def test_of_a_hundred_ranks_it_is_the_job(tmp_path: Path) -> None:
    """More than the Overview of one rank reads of the others."""
    ranks, steps, late = 100, 3, 37
    for rank, content in Job(ranks, ddp(ranks, 2), steps=steps, straggler=late).documents().items():
        (tmp_path / f"rank{rank}.pt.trace.json").write_bytes(content)
    run = ttp.open(str(tmp_path)).run()
    found, job = run.summary(), run.distributed().data
    assert (found.workers, found.read) == (ranks, ranks)
    assert found.communication is not None and found.devices is not None and found.step is not None
    assert found.headline[0].startswith(f"Rank {late} is a straggler")
    assert found.bound_worker == f"rank{late}" == found.communication.late_worker
    assert found.communication.late_cost_ns == job.verdict.cost_ns == pytest.approx(5e6, rel=0.02)
    assert found.devices.devices == ranks and found.devices.least_worker == f"rank{late}"
    assert (found.step.workers, found.step.left_out) == (ranks - 1, [f"rank{late}"])
    gemm = next(row for row in found.kernels if row.name == "gemm")
    assert gemm.calls == ranks * steps * 2
    assert f"Find out why rank {late} is late" in {advice.title for advice in found.advice}
    for text in (as_markdown(found), as_json(found)):
        assert len(text.encode()) <= MAX_BYTES


def test_what_is_not_known_has_its_reason(log: ttp.Log) -> None:
    found = log["transformer"].summary()
    assert found.devices is None and found.communication is None and found.kernels == []
    assert {"kernels", "devices", "communication"} == set(found.reasons)
    operators = log["transformer"].operators().data
    most = max(operators.rows, key=lambda row: row.host_self_ns)
    # Of the host, as no device did anything.
    assert (found.operators[0].name, found.operators[0].time_ns) == (most.name, most.host_self_ns)
    assert found.operators[0].share == most.host_self_ns / operators.totals.host_self_ns


def test_a_rank_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    documents = Job(3, ddp(2), straggler=1).documents()
    documents[2] = b"["
    for rank, content in documents.items():
        (tmp_path / f"rank{rank}.pt.trace.json").write_bytes(content)
    run = ttp.open(str(tmp_path)).run()
    found = run.summary()
    assert (found.workers, found.read, found.health.unreadable) == (3, 2, 1)
    assert found.health.notes[0].startswith("rank2 can't be read: ")
    assert "2 of 3 workers" in as_markdown(found)
    with pytest.raises(NotFoundError, match="no span '7'"):
        run.summary(span=7)


def test_no_readable_rank_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "w.pt.trace.json").write_bytes(b"[")
    with pytest.raises(ttp.ProfilerError):
        ttp.open(str(tmp_path)).run().summary()


@pytest.mark.parametrize(
    ("name", "forbidden"),
    [
        ("x" * 50_000, "x" * 61),
        ("![](http://evil/a.png)", "](http"),
        ("<img src=x>", " <img"),
        ("a\x1b[2Jb", "\x1b"),
        ("a|b`c\n# d", "\n# d"),
    ],
)
def test_any_name_fits_and_is_no_markup(tmp_path: Path, name: str, forbidden: str) -> None:
    base = {"ph": "X", "pid": 1, "tid": 1}
    step = {"cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 900}
    events: list[dict[str, Any]] = [{**base, **step}]
    for i in range(5):
        args = {"Python id": i + 1, "Python module id": i}
        frame = {"cat": "python_function", "name": f"nn.Module: {name}{i}_0", "args": args}
        events.append({**base, **frame, "ts": 100 * i, "dur": 90})
        events.append({**base, "cat": "cpu_op", "name": f"{name}{i}", "ts": 100 * i + 10, "dur": 50 + i})
    (tmp_path / f"{'w' * 200}.pt.trace.json").write_bytes(document(events))
    found = ttp.open(str(tmp_path)).run().summary()
    for text in (as_markdown(found), as_json(found)):
        assert len(text.encode()) <= MAX_BYTES
    # In a code span nothing is markup.
    assert forbidden not in "".join(as_markdown(found).split("`")[::2])
    assert len(found.operators) == 5


@pytest.mark.parametrize("run", [JOB, "transformer", "ddp", "data_loading_slow"])
def test_the_command_prints_it(samples: Path, capsys: pytest.CaptureFixture[str], log: ttp.Log, run: str) -> None:
    assert main(["summary", str(samples), "--run", run]) == 0
    assert capsys.readouterr().out == as_markdown(log[run].summary())
    assert main(["summary", str(samples), "--run", run, "--format", "json"]) == 0
    out = capsys.readouterr().out
    assert len(out.encode()) <= MAX_BYTES + 1
    assert msgspec.json.decode(out, type=Summary).step == log[run].summary().step


def test_the_schema_is_documented(samples: Path) -> None:
    docs = samples.parent / "docs"
    committed = (docs / "summary.schema.json").read_text(encoding="utf-8")
    command = "python -m torch_tb_profiler.summary.schema > docs/summary.schema.json"
    assert committed == schema.render_schema(), f"run `{command}`"
    described = (docs / "summary.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in described for name in Summary.__struct_fields__)


def test_a_part_below_a_nanosecond_is_not_listed(log: ttp.Log) -> None:
    """It is what is left of rounding where twelve steps are averaged."""
    found = log[JOB].summary()
    assert found.step is not None
    parts = {**found.step.breakdown, "memset": 1 / 12, "memcpy": 1.0}
    markdown = as_markdown(
        msgspec.structs.replace(found, step=msgspec.structs.replace(found.step, breakdown=parts))
    )
    assert "memset" not in markdown and "memcpy 1.00 ns" in markdown


def test_why_there_is_no_advice_names_the_worker_of_which_it_is_said() -> None:
    """Ranks wait for different times, so a share is of one of them alone."""
    plan = draw_plan(21)
    surfaces = JobSurfaces(JobTruth(plan, plan.simulation.run()))
    found = summarize(surfaces)
    assert found.reasons["advice"].startswith(f"{found.bound_worker}: No known fix on this rank would save ")


def test_steps_that_averages_leave_out_are_told(tmp_path: Path) -> None:
    """Each fourth of 12 steps waits 6 ms for its data: no average shows it, and the device isn't as busy there."""
    events: list[dict[str, Any]] = []
    now = 0.0
    for number in range(1, 13):
        wait = 6000.0 if number % 4 == 0 else 50.0
        events += [
            event(f"host user_annotation ProfilerStep#{number} {now} {wait + 8000}"),
            event(f"host user_annotation load_batch {now} {wait}"),
            event(f"host cpu_op aten::mm {now + wait} 40"),
            event(f"host cuda_runtime cudaLaunchKernel {now + wait + 5} 10 correlation={number}"),
            event(f"gpu0 kernel gemm {now + wait + 50} 7900 correlation={number}"),
        ]
        now += wait + 8000
    (tmp_path / "worker.pt.trace.json").write_bytes(document(events))
    summary = ttp.open(str(tmp_path)).run().summary()
    expected = "Steps 4, 8 and 12 take 5.95 ms more than a typical step (8.05 ms), mostly in load_batch."
    assert expected in summary.headline
    shown = as_markdown(summary)
    assert "## A typical step takes 8.05 ms" in shown
    assert "kernels run for 98.1% of the time in typical steps" in shown


def test_odd_steps_of_a_job_are_told_of_the_rank_that_bounds_it(tmp_path: Path) -> None:
    job = Simulation(simulated_ddp(2), steps=8, odd=(4, 40_000)).run()
    for rank in (0, 1):
        (tmp_path / f"node0_{rank}.1.pt.trace.json").write_bytes(job.file(rank))
    found = ttp.open(str(tmp_path)).run().summary()
    expected = f"{found.bound_worker}: Step 5 takes 40.0 ms more than a typical step ("
    assert any(
        each.startswith(expected) and each.endswith("mostly in save_checkpoint.") for each in found.headline
    )
    assert found.devices is not None and (found.devices.at_least, found.devices.devices) == (2, 2)


def test_files_of_another_job_and_a_second_file_of_a_rank_are_no_part_of_the_job(tmp_path: Path) -> None:
    job = Simulation(simulated_ddp(4), steps=5, delays=[Delay("host", 2, us=3000)], syncs=True).run()
    other = Simulation(simulated_ddp(2), steps=5, odd=(1, 90_000)).run()
    for rank in range(4):
        (tmp_path / f"node0_{rank}.1.pt.trace.json").write_bytes(job.file(rank))
    alone = ttp.open(str(tmp_path)).run().summary()
    (tmp_path / "node9_1.1.pt.trace.json").write_bytes(job.file(1))
    for rank in range(2):
        (tmp_path / f"job_{rank}.1.pt.trace.json").write_bytes(other.file(rank))
    found = ttp.open(str(tmp_path)).run().summary()
    assert (found.step, found.devices, found.communication) == (alone.step, alone.devices, alone.communication)
    assert found.health.notes == [
        "warning: The traces are of jobs with 2 and 4 ranks; only those of the job with 4 are compared",
        "warning: node9_1 and node0_1 both claim to be rank 1; node0_1 is shown",
    ]


def test_processes_that_do_not_communicate_may_share_a_device(tmp_path: Path) -> None:
    work = [
        event("host user_annotation ProfilerStep#1 0 100"),
        event("host cuda_runtime cudaLaunchKernel 5 10 correlation=1"),
        event("gpu0 kernel gemm 20 50 correlation=1"),
    ]
    for number in range(3):
        (tmp_path / f"host_{number}.1.pt.trace.json").write_bytes(document(work))
    assert "- 1 to 3 devices, as processes may share one: kernels run for " in as_markdown(
        ttp.open(str(tmp_path)).run().summary()
    )


@pytest.mark.parametrize(
    ("step", "end", "says"),
    [
        ("host cpu_op aten::sort {} 900", None, "Nothing stands out: no known fix would save 2% or more"),
        (
            "host user_annotation enumerate(DataLoader)#_It.__next__ {} 900",
            None,
            "Start here: Load data in worker ",
        ),
        ("host cpu_op aten::sort {} 900", -25, "No advice: the file is truncated"),
    ],
)
def test_nothing_stands_out_only_where_all_is_known(step: str, end: int | None, says: str, tmp_path: Path) -> None:
    lines = [f"host user_annotation ProfilerStep#{n} {1000 * n} 1000\n{step.format(1000 * n)}" for n in range(4)]
    content = document([event(line) for line in "\n".join(lines).splitlines()])
    (tmp_path / "w.1.pt.trace.json").write_bytes(content[:end])
    assert advice_line(ttp.open(str(tmp_path)).run().summary()).startswith(says)


@pytest.mark.parametrize(("run", "title"), [("ddp", "Communication"), (JOB, "Exposed communication")])
def test_all_communication_of_a_cpu_counts_as_in_a_step(log: ttp.Log, run: str, title: str) -> None:
    """The host's threads compute meanwhile, so that hardly any is exposed, though a step waits for it."""
    found = log[run].summary()
    assert found.communication is not None and found.step is not None
    assert found.communication.exposed == (title != "Communication")
    assert found.communication.exposed_ns == pytest.approx(found.step.breakdown["communication"], rel=0.02)
    assert f"\n- {title}: " in as_markdown(found)


def test_a_rank_whose_file_is_cut_off_is_no_part_of_the_average(tmp_path: Path) -> None:
    job = Simulation(simulated_ddp(2), steps=6).run()
    for rank, end in ((0, None), (1, -20_000)):
        (tmp_path / f"node0_{rank}.1.pt.trace.json").write_bytes(job.file(rank)[:end])
    run = ttp.open(str(tmp_path)).run()
    step, average = run.summary().step, run.overview(worker="node0_0").data.average
    assert step is not None and average is not None
    assert (step.workers, step.mean_ns, step.left_out) == (1, average.duration_ns, [])
    assert step.breakdown["kernel"] == average.categories.kernel
